"""Temporarily missing permissions, as with an API server whose RBAC lags, or GitOps that recreates RoleBindings."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from e2e.kubernetes import Namespace, Object, server

#: The seconds without the RoleBindings, and the seconds with them.
_GONE, _THERE = 3, 12
_OPERATORS = "app.kubernetes.io/instance=proofgate"


@contextmanager
def blink(namespaces: Sequence[str]) -> Iterator[None]:
    """Deletes and recreates the operator's RoleBindings in `namespaces` repeatedly during the block."""
    bindings = [
        (Namespace(name), bare(found))
        for name in namespaces
        for found in Namespace(name).list("rolebindings", _OPERATORS)
    ]
    if not bindings:
        raise LookupError("the operator has no RoleBindings here")
    ended = threading.Event()
    failures: list[Exception] = []
    blinking = threading.Thread(target=_blink, args=(bindings, ended, failures), name="blinking")
    blinking.start()
    try:
        yield
    finally:
        ended.set()
        blinking.join()
        for namespace, binding in bindings:
            namespace.apply(binding)
    if failures:
        raise failures[0]


def bare(found: Object) -> Object:
    """An object in the form of a manifest that recreates it."""
    metadata = {
        name: found["metadata"][name] for name in ("name", "labels", "annotations") if name in found["metadata"]
    }
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    return {**kind, "metadata": metadata, "roleRef": found["roleRef"], "subjects": found["subjects"]}


def _blink(bindings: list[tuple[Namespace, Object]], ended: threading.Event, failures: list[Exception]) -> None:
    try:
        while not ended.wait(_THERE):
            for namespace, binding in bindings:
                server().delete("rolebinding", namespace.name, binding["metadata"]["name"])
            ended.wait(_GONE)
            for namespace, binding in bindings:
                namespace.apply(binding)
    except Exception as error:
        failures.append(error)
