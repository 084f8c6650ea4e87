"""Protects the operator from deeply nested objects.

A gateway's `podTemplate` can have thousands of levels, and one response of the API server contains the
gateways of many users: no gateway may prevent the others from being read.
"""

import sys
from typing import Any

#: More levels than any meaningful object has.
MAX_DEPTH = 64
#: More than twice the levels that the API server accepts: copying an object takes two frames per level.
#: Parsing and comparing so many levels takes 5 MiB of the usual 8 MiB of stack.
_RECURSION_LIMIT = 21_000


def raise_recursion_limit() -> None:
    """Raise the recursion limit, so that parsers, including kopf's, can process any object of the API
    server."""
    sys.setrecursionlimit(_RECURSION_LIMIT)


def truncate_nesting(found: Any) -> None:
    """Empty the parts of an object that are nested too deeply."""
    level = [found]
    for _ in range(MAX_DEPTH):
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    for node in level:
        node.clear()
