"""The auditor's process: what gives the core's auditor the time, and serves what it publishes."""
