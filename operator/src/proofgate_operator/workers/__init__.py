"""HTTP clients for the workers and related pods. This package does not use the API server."""
