"""`proofgate ledger replay`: evaluates the rules again for recorded exchanges whose bodies were stored.

`replay_exchange` reads what a ledger records of an exchange, `sources` finds its bodies, `engines` builds the rules
of its configuration or of another one, `run` replays all exchanges of a ledger, and `report` counts the
results.
"""
