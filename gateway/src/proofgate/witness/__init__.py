"""The witness's process, which serves the core's witness over HTTP."""
