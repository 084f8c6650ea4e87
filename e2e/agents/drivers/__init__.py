"""One small program for each library: it runs a scenario with the library's own functions and defaults."""
