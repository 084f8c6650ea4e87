"""Client for the API server: reads and writes of plain dictionaries. This package makes no decisions."""
