"""The auditor's process. It passes the time to the core's auditor and serves what this publishes."""
