"""Other gateways, each from its own package, in an environment of its own, at one version."""
