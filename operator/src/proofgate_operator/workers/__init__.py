"""The workers themselves, asked and told over HTTP. Nothing here knows of the API server."""
