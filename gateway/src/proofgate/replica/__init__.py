"""Copies of workers' logs on the auditor's own volume, for what reads a ledger as files: the index, and SIEM
sinks.

A copy is trusted no more than a mounted ledger is: each reader verifies it against the checkpoint that the
auditor accepted.
"""
