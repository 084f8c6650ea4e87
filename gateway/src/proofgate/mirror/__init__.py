"""Copies of data that the auditor has verified, at a location that writers of the ledger's volume cannot
change."""
