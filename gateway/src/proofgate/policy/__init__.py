"""Policies of one's own: what a class has to offer, what it is told of a request, and what it may answer.

docs/how-to/write-a-policy-in-python.md: how they run, how long they may take, what follows when they fail.
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
