"""Credentials that clouds issue to the worker for its identity instead of a key. They are fetched, renewed
and never logged.

The module of each cloud exchanges a token of the worker's ServiceAccount for credentials and their lifetime
in seconds. `renewal` repeats the exchange before they expire.
"""
