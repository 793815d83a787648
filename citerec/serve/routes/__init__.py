"""The endpoints: one file for each group, each with a `router`.

To add a group, write a file with a `router`, and name it in `citerec/serve/app.py`.
"""
