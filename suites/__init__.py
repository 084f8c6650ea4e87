"""Runs the project's checks and test suites: side by side, with times, and a failed test once more at the end."""
