"""What must not happen however hard citerec is treated: losses, tracebacks, hangs, torn reads. See `__main__.py`."""
