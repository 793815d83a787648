"""Servers: the web API, the language server, and tools for assistants.

Of the web API, `app.py` puts it together; `routes/` has one file for each group of endpoints; `service.py` is what they
share.
"""
