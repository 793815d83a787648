"""CiteSum (Mao et al. 2022): TLDRs from citing sentences; its data set, tasks, settings and tables."""
