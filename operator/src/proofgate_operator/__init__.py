"""Operator that turns one `GovernanceGateway` manifest into gateway workers behind HAProxy.

Reading order: `api` says what a manifest may hold, `build` renders the objects of one gateway, `plan` decides
from what is seen which of them to write, `observe` and `kube` see and write, `handlers` keep doing so.
"""

__version__ = "0.1.0"
