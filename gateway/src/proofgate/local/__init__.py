"""Everything on one machine: a worker and an auditor with the explorer, as children of one command."""
