"""Proofgate on one machine: a worker and an auditor with the explorer, as child processes of one command."""
