"""Writers of citation texts, TLDRs and related work, from the papers that were retrieved."""
