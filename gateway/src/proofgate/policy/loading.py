"""Creates a policy from its configuration."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import cast

from proofgate_schema.external_policies import ExternalPolicy

from proofgate.policy.http_hook import HttpHook
from proofgate.policy.interface import Policy


def load_policy(entry: ExternalPolicy, folder: Path) -> Policy:
    """Imports and calls the factory, or creates the hook for a URL, and starts the policy.

    Paths are relative to `folder`. Raises the policy's exceptions, and TypeError if the object is not a
    policy.
    """
    policy = _create_policy(entry, folder)
    if not callable(getattr(policy, "evaluate", None)):
        raise TypeError("the object that the factory returned has no method evaluate")
    start = getattr(policy, "start", None)
    if start is not None:
        start()
    return policy


def close_policy(policy: Policy) -> None:
    """Calls `close()`, if there is one."""
    close = getattr(policy, "close", None)
    if close is not None:
        close()


def _create_policy(entry: ExternalPolicy, folder: Path) -> Policy:
    if entry.factory is None:
        return HttpHook(
            entry.name,
            entry.url or "",
            seconds=entry.deadline_milliseconds / 1000,
            ca_file=None if entry.ca_file is None else folder / entry.ca_file,
            token_file=None if entry.token_file is None else folder / entry.token_file,
        )
    module, _, name = entry.factory.partition(":")
    factory = getattr(importlib.import_module(module), name)
    return cast("Policy", factory(**entry.parameters))
