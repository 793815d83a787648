"""What a draft is checked for: one function a check (`citerec.drafts.check` says what a check is)."""
