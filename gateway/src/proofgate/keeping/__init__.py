"""Retention and erasure: the commands `hold`, `prune` and `erase`, and `keep`, which runs them by a plan."""
