"""Unmodified coding agents that use a gateway, with stand-in providers that refuse what the real providers refuse."""
