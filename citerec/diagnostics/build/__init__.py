"""Building a diagnostic set from S2AG and S2ORC: survey, draw, extract, choose (docs/diagnostics.md)."""
