"""The API server: reads and writes on plain dictionaries. Nothing here decides anything."""
