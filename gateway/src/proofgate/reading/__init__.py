"""A worker's own ledger folder, served read-only to the auditor where no other pod can mount its volume."""
