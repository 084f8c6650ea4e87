"""Operator that turns a `GovernanceGateway` manifest into gateway workers behind HAProxy.

Reading order: `api` defines what a manifest may contain, `build` renders the objects of one gateway, `plan`
decides from the observed state which of them to write, `observe` and `kube` read and write, and `handlers`
run all of this in a loop.
"""

__version__ = "0.1.0"
