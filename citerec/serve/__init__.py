"""Servers: the web API with its page, the language server, and tools for assistants.

Of the web API, `app.py` has the endpoints and what every request passes first, `schemas.py` what they take and give,
and `service.py` what they share. `indexes.py` opens an index for all three servers.
"""
