"""Credentials that clouds issue to the worker for who it is, and not for a key: fetched, renewed, never said.

Each cloud's exchange is a function of its own module: a token of the worker's ServiceAccount goes in, what
requests to a provider carry comes out, with the seconds for which it is good. `renewal` repeats it in time.
"""
