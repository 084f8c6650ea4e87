"""The interface of external policies in Python: the required class, the requests that it gets, and the
verdicts that it can return.

docs/how-to/write-a-policy-in-python.md describes how policies run, their time limits, and the effects of
failures.
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
