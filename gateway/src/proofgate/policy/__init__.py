"""Policies of one's own: what a class has to offer, what it is told of a request, and what it may answer.

docs/python-policies.md tells how they are run, how long they may take and what follows when they fail.
"""

from proofgate.policy.interface import (
    Allow,
    Deny,
    Flag,
    Policy,
    PolicyRequest,
    PolicyText,
    Replace,
    Replacement,
    Verdict,
)

__all__ = [
    "Allow",
    "Deny",
    "Flag",
    "Policy",
    "PolicyRequest",
    "PolicyText",
    "Replace",
    "Replacement",
    "Verdict",
]
