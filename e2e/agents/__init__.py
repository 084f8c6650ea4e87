"""Coding agents, unmodified from their packages, before a gateway and providers that refuse as the real ones do."""
