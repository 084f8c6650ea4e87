"""Benchmarks of the operator's costs and reaction times on a real control plane without nodes."""
