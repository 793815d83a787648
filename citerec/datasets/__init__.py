"""Builders of data sets of texts: CiteBench, CiteSum, OARelatedWork."""
