"""A garden of HTTP parsers: what the front door accepts, every one of them must read the same."""
