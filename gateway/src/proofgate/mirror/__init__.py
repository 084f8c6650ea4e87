"""Copies of what the auditor has verified, where whoever holds the ledger's volume cannot change them."""
