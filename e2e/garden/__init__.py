"""A comparison of HTTP parsers: all must read every request that the gateway accepts in the same way."""
