"""Permissions that blink: an API server whose RBAC lags, or a team whose GitOps makes its RoleBindings anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from e2e.kubernetes import Namespace, Object, server

#: Seconds that they are gone, and that they are there.
_GONE, _THERE = 3, 12
_OPERATORS = "app.kubernetes.io/instance=proofgate"


@contextmanager
def blink(namespaces: Sequence[str]) -> Iterator[None]:
    """The operator's RoleBindings in `namespaces` go and come back, again and again, for the length of the block."""
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
    """An object as a manifest makes it again."""
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
