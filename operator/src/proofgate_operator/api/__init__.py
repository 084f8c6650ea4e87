"""The `GovernanceGateway` resource: its types, its CRD and its conditions. No I/O."""

GROUP = "proofgate.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "GovernanceGateway"
PLURAL = "governancegateways"
