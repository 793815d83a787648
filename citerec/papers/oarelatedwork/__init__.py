"""OARelatedWork (Docekal et al. 2024): related work from full texts; its data set, metrics, settings and tables."""
