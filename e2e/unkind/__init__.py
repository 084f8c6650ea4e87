"""Properties of real clusters that a laboratory lacks: cached names, temporarily missing permissions, and a slow API
server with failures.

A profile is applied to the running lab, and removed afterwards. `plain` is the unchanged lab, in which a container has
a soft limit of 1024 open files, as under systemd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from e2e.unkind import api, names, permissions

#: Applies a profile to the lab, for an operator that serves the given namespaces.
Layer = Callable[[Sequence[str]], AbstractContextManager[None]]


@contextmanager
def _plain(_namespaces: Sequence[str]) -> Iterator[None]:
    yield


PROFILES: dict[str, Layer] = {
    "plain": _plain,
    "names": lambda _: names.cached(),
    "permissions": permissions.blink,
    "api": api.slow,
}
#: The change to the lab in each profile, for tables.
MEANING = {
    "plain": "the lab as it is: names cached for 1 s, 1024 open files",
    "names": "DNS answers are valid for 30 s (TTL), and the cluster's name server caches them for 30 s",
    "permissions": "the operator's RoleBindings are missing for 3 s in every 15 s",
    "api": "the operator's requests to the API server take 300 ms more, and 2 % fail",
}


def profile(name: str, namespaces: Sequence[str]) -> AbstractContextManager[None]:
    """Applies the profile with that name during the block. The operator is installed, and serves `namespaces`.

    Raises LookupError for an unknown name.
    """
    if name not in PROFILES:
        raise LookupError(f"no profile is named {name}; there are {', '.join(PROFILES)}")
    return PROFILES[name](namespaces)
