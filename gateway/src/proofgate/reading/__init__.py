"""Serves a worker's own ledger folder read-only to the auditor, if no other pod can mount the volume."""
