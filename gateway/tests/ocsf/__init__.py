"""The published schema of OCSF, and the check of events against it."""
