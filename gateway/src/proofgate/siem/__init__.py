"""What a ledger says of exchanges, for whoever watches for incidents: as it is verified, to a collector."""
