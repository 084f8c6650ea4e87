"""Keeping and forgetting: the commands `hold`, `prune` and `erase`."""
