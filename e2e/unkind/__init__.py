"""What clusters are and a laboratory is not: names that are cached, permissions that blink, an API server that is far
away and fails.

A profile is laid over the lab that is up, and taken off again. `plain` is the lab as it is, in which a container has
1024 open files before it asks for more, as under systemd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from e2e.unkind import api, names, permissions

#: Lays a profile over the lab, given the namespaces that the operator serves.
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
#: What is done to the lab in each, for tables.
MEANING = {
    "plain": "the lab as it is: names cached for 1 s, 1024 open files",
    "names": "DNS answers are valid for 30 s (TTL), and the cluster's name server caches them for 30 s",
    "permissions": "the operator's RoleBindings are missing for 3 s in every 15 s",
    "api": "the operator's requests to the API server take 300 ms more, and 2 % fail",
}


def profile(name: str, namespaces: Sequence[str]) -> AbstractContextManager[None]:
    """The profile of that name, for the length of a block. The operator is installed, and serves `namespaces`.

    Raises LookupError for a name that is none.
    """
    if name not in PROFILES:
        raise LookupError(f"no profile is named {name}; there are {', '.join(PROFILES)}")
    return PROFILES[name](namespaces)
