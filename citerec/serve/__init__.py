"""Servers: the web API with its page, the language server, and tools for assistants.

Of the web API, `app.py` has the endpoints, `requests.py` and `answers.py` what they take and give, and `guard.py` what
every request passes first. `indexes.py` opens an index for all three servers.
"""
