"""Citation texts, TLDRs and related work: tasks, predictions and metrics."""
