"""Retention and erasure: the commands `hold`, `prune` and `erase`, and `retention`, which does their work by
a plan."""
