"""One small program for each library: it does what a scenario says by the library's own means, with its defaults."""
