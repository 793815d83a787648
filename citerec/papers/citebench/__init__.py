"""CiteBench (Funkquist et al. 2023): its data sets, metrics, ratings by people, and tables."""
