"""Citation texts, TLDRs and related work as data: what is to be written, what was written, and how good it is."""
