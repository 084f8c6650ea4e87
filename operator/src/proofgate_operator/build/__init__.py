"""Manifests of one gateway, as pure functions of its spec. No I/O: the results are plain data."""
