"""What the systems of several papers share."""
