"""Other gateways, each from its own package, in a separate environment, at one version."""
