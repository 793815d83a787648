"""Evaluation of recommenders and of runs, class by class, under the same rules for all."""
