"""A Kubernetes cluster for tests: kind if Docker answers, otherwise two nodes built from Go modules on this machine."""
