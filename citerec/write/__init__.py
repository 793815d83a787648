"""Citation texts, TLDRs and related work: tasks, writers and metrics."""
