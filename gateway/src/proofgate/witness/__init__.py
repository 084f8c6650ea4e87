"""The witness's process: what serves the core's witness over HTTP."""
