"""Retention and erasure: the commands `hold`, `prune` and `erase`, and `retention`, which runs them by a
plan."""
