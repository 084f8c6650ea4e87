"""An index of a ledger: one row for each exchange, in one SQLite file per day, created only from signed
records.

It can always be rebuilt. It proves nothing: for evidence, records are exported with their proofs.
"""
