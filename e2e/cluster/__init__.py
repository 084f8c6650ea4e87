"""A Kubernetes to test on: kind where Docker answers, else two nodes built from Go modules on this machine."""
