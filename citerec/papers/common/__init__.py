"""What several papers share: the tables of the papers, data sets of pairs, statistics of tasks."""
