"""Providers that answer by a script and refuse what the real APIs refuse, in their words; one file for each API."""
