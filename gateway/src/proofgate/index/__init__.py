"""An index of a ledger: one row for each exchange, in a file of SQLite for each day, made of signed records
only.

It can always be made anew, and proves nothing: what is to be believed is exported with its proofs.
"""
