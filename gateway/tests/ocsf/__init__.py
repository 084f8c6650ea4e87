"""The published schema of OCSF, and a check of events against it."""
