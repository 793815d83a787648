"""What a draft is checked for: one function a check (`base.py` says what a check is)."""
