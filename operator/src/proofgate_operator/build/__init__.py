"""Manifests of one gateway, as pure functions of its spec. No I/O: what they return is plain data."""
