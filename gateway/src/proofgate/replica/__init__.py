"""Copies of workers' logs on the auditor's own volume, for readers that need a ledger of files: the index and
SIEM sinks.

A copy is not trusted more than a mounted ledger: each reader verifies it against the checkpoint that the
auditor accepted.
"""
