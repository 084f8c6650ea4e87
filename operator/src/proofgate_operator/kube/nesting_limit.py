"""Protects the operator from objects that are nested too deeply.

A gateway's `podTemplate` can have thousands of levels, and one response of the API server contains the
gateways of many people: no gateway may prevent the others from being read.
"""

import sys
from typing import Any

#: More levels than any object has that means something.
MAX_DEPTH = 64
#: Twice the levels that the API server takes, and more: who copies an object takes two frames for each.
#: Parsers, and who compares, need 5 MiB of the stack for so many, of the usual 8.
_RECURSION_LIMIT = 21_000


def raise_recursion_limit() -> None:
    """Let parsers, kopf's among them, follow whatever the API server may hold."""
    sys.setrecursionlimit(_RECURSION_LIMIT)


def truncate_nesting(found: Any) -> None:
    """Empty what is too deep in an object."""
    level = [found]
    for _ in range(MAX_DEPTH):
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    for node in level:
        node.clear()
