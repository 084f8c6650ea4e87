"""A simulation of the reports of controllers, binder and kubelets, in which objects become ready immediately."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.informer import Informer
from proofgate_operator.kube.resources import RESOURCES

_SELECTOR = "app.kubernetes.io/managed-by=proofgate-operator"
_KINDS = ("StatefulSet", "Deployment", "PersistentVolumeClaim")
_MERGE_PATCH = "application/merge-patch+json"
_REVISION = "revision-1"
_CONCURRENCY = 16


class Simulation:
    """Watches the objects that have a status and reports their status; `on_change` is called first for every change."""

    def __init__(self, client: Client, on_change: Callable[[str, str, str], None]) -> None:
        self._client = client
        self._on_change = on_change
        self._todo: asyncio.Queue[tuple[str, str, str]] = asyncio.Queue()
        client.store.expect(_KINDS, [None])
        self._informers = [Informer(client, kind, None, _SELECTOR, self._hear) for kind in _KINDS]

    async def run(self) -> None:
        """Report for ever."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers:
                tasks.create_task(informer.run())
            for _ in range(_CONCURRENCY):
                tasks.create_task(self._report_all())

    def _hear(self, kind: str, namespace: str, name: str, gateway: str) -> None:
        self._on_change(kind, namespace, name)
        self._todo.put_nowait((kind, namespace, name))

    async def _report_all(self) -> None:
        while True:
            kind, namespace, name = await self._todo.get()
            try:
                await self._report(kind, namespace, name)
            except ApiError as error:
                if error.status != 404:
                    await asyncio.sleep(0.1)
                    self._todo.put_nowait((kind, namespace, name))

    async def _report(self, kind: str, namespace: str, name: str) -> None:
        live = self._client.store.get(kind, namespace, name)
        if live is None:
            return
        if kind == "PersistentVolumeClaim":
            capacity = live["spec"]["resources"]["requests"]
            wanted: dict[str, Any] = {"phase": "Bound", "capacity": capacity}
        else:
            count = live["spec"]["replicas"]
            wanted = {
                "observedGeneration": live["metadata"]["generation"],
                "replicas": count,
                "readyReplicas": count,
                "availableReplicas": count,
                "updatedReplicas": count,
            }
            if kind == "StatefulSet":
                wanted |= {"currentRevision": _REVISION, "updateRevision": _REVISION}
        have = live.get("status") or {}
        if all(have.get(field) == value for field, value in wanted.items()):
            return
        if kind == "StatefulSet":
            for ordinal in range(live["spec"]["replicas"]):
                await self._make_pod(live, namespace, f"{name}-{ordinal}")
        await self._set_status(kind, namespace, name, wanted)

    async def _make_pod(self, owner: dict[str, Any], namespace: str, name: str) -> None:
        template = owner["spec"]["template"]
        labels = {**template["metadata"]["labels"], "controller-revision-hash": _REVISION}
        head = {"name": name, "namespace": namespace, "labels": labels}
        annotations = template["metadata"].get("annotations", {})
        pod = {"metadata": {**head, "annotations": annotations}, "spec": template["spec"]}
        manifest = {"apiVersion": "v1", "kind": "Pod", **pod}
        try:
            await self._client.request("POST", RESOURCES["Pod"].path(namespace), body=manifest)
        except ApiError as error:
            if error.status != 409:
                raise
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        await self._set_status("Pod", namespace, name, {"phase": "Running", "conditions": ready})

    async def _set_status(self, kind: str, namespace: str, name: str, status: dict[str, Any]) -> None:
        path = RESOURCES[kind].path(namespace, name, "status")
        await self._client.request("PATCH", path, body={"status": status}, content_type=_MERGE_PATCH)
