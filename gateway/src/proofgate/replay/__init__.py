"""`proofgate ledger replay`: comes to the verdicts of recorded exchanges again, over bodies that were kept.

`recorded` is what a ledger says of an exchange, `sources` where its bodies are, `engines` the rules of its
configuration or of another, `run` goes through a ledger, and `report` counts what came out.
"""
