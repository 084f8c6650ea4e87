"""Scripted providers that refuse what the real APIs refuse, with the same error messages; one file for each API."""
