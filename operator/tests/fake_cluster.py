"""An API server in memory: enough of server-side apply, and of the controllers, to run the operator's loop.

What it leaves out (validation, admission, real garbage collection) is tested against a true control plane.
"""

import copy
import itertools
import re
from typing import Any

from proofgate_operator.kube.client import RESOURCES, ApiError, Client

Manifest = dict[str, Any]
Key = tuple[str, str, str]

_KIND_OF = {(resource.api_version, resource.plural): kind for kind, resource in RESOURCES.items()}
_PATH = re.compile(
    r"/apis?/(?P<version>.+?)/namespaces/(?P<namespace>[^/]+)/(?P<plural>[^/]+)(?P<rest>/.*)?$"
)


class Killed(BaseException):
    """The operator was killed: no `except Exception` stops it, as none stops SIGKILL."""


def _merged(live: Any, before: Any, wanted: Any) -> Any:
    """Apply: set what is wanted, drop what was applied before and is not wanted now, keep the rest."""
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return copy.deepcopy(wanted)
    before = before if isinstance(before, dict) else {}
    result = {key: value for key, value in live.items() if key in wanted or key not in before}
    for key, value in wanted.items():
        result[key] = _merged(live.get(key), before.get(key), value)
    return result


class FakeCluster(Client):
    """Objects by kind, namespace and name, with the requests that the operator makes."""

    def __init__(self) -> None:
        self.objects: dict[Key, Manifest] = {}
        self.writes: list[str] = []
        #: The operator is killed by the write after this many; None: never.
        self.writes_left: int | None = None
        #: Refusals by object kind.
        self.refuse: dict[str, ApiError] = {}
        self._applied: dict[Key, Manifest] = {}
        self._versions = itertools.count(1)

    async def close(self) -> None:
        """Nothing is open."""

    def put(self, manifest: Manifest) -> None:
        """Store an object as a user would."""
        metadata = manifest["metadata"]
        key = (manifest["kind"], metadata["namespace"], metadata["name"])
        stored = copy.deepcopy(manifest)
        stored["metadata"].setdefault("uid", f"uid-{next(self._versions)}")
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[key] = stored

    def find(self, kind: str, name: str, namespace: str = "team") -> Manifest:
        """Return an object that must be there."""
        return self.objects[(kind, namespace, name)]

    def remove(self, kind: str, name: str, namespace: str = "team") -> None:
        """Delete an object as a user would."""
        self.objects.pop((kind, namespace, name), None)
        self._applied.pop((kind, namespace, name), None)

    def owned(self) -> dict[Key, Manifest]:
        """Return what the operator made, without what differs between two runs."""
        return {
            key: value
            for key, value in self.objects.items()
            if value["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "proofgate-operator"
            and key[0] != "Pod"
        }

    def _count_write(self, text: str) -> None:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise Killed
            self.writes_left -= 1
        self.writes.append(text)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Any = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Manifest:
        """Answer one request."""
        match = _PATH.match(path)
        assert match, path
        kind = _KIND_OF[(match["version"], match["plural"])]
        name, _, subresource = (match["rest"] or "").strip("/").partition("/")
        key = (kind, match["namespace"], name)
        if method == "GET" and not name:
            return {"items": self._listed(kind, match["namespace"], (query or {}).get("labelSelector", ""))}
        if method == "GET":
            if key not in self.objects:
                raise ApiError(404, "NotFound", f"{kind} {name}")
            return copy.deepcopy(self.objects[key])
        if kind in self.refuse:
            raise self.refuse[kind]
        if method == "POST":
            return self._create(kind, match["namespace"], body)
        self._count_write(f"{method} {kind} {name}{'/' + subresource if subresource else ''}")
        if method == "DELETE":
            self.remove(kind, name, match["namespace"])
            return {}
        assert method == "PATCH"
        if content_type == "application/merge-patch+json":
            return self._annotate(key, body)
        assert content_type == "application/apply-patch+yaml"
        return self._apply(key, body, subresource)

    def _annotate(self, key: Key, body: Manifest) -> Manifest:
        if key not in self.objects:
            raise ApiError(404, "NotFound", key[2])
        metadata = self.objects[key]["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), **body["metadata"]["annotations"]}
        return self.objects[key]

    def _listed(self, kind: str, namespace: str, selector: str) -> list[Manifest]:
        wanted = dict(part.split("=", 1) for part in selector.split(",") if part)
        return [
            copy.deepcopy(value)
            for (k, ns, _), value in sorted(self.objects.items())
            if k == kind and ns == namespace and wanted.items() <= value["metadata"].get("labels", {}).items()
        ]

    def _create(self, kind: str, namespace: str, body: Manifest) -> Manifest:
        name = body["metadata"]["name"]
        if (kind, namespace, name) in self.objects:
            raise ApiError(409, "AlreadyExists", name)
        if kind != "Event":
            self._count_write(f"POST {kind} {name}")
        self.put(body)
        return copy.deepcopy(body)

    def _apply(self, key: Key, body: Manifest, subresource: str) -> Manifest:
        live = self.objects.get(key)
        if subresource == "status":
            assert live is not None
            live["status"] = copy.deepcopy(body["status"])
            return live
        if live is None:
            self.put(body)
        else:
            merged = _merged(live, self._applied.get(key), body)
            if "spec" in merged and merged["spec"] != live.get("spec"):
                merged["metadata"]["generation"] = live["metadata"].get("generation", 1) + 1
            self.objects[key] = merged
        self.objects[key]["metadata"].setdefault("generation", 1)
        self._applied[key] = copy.deepcopy(body)
        return self.objects[key]

    def run_controllers(self) -> None:
        """Do what StatefulSet and Deployment controllers, the binder and the kubelet would do, at once."""
        for (kind, namespace, name), live in list(self.objects.items()):
            generation = live["metadata"].get("generation", 1)
            if kind == "PersistentVolumeClaim":
                live["status"] = {"phase": "Bound"}
            elif kind in ("StatefulSet", "Deployment"):
                count = live["spec"]["replicas"]
                live["status"] = {
                    "observedGeneration": generation,
                    "replicas": count,
                    "readyReplicas": count,
                    "updatedReplicas": count,
                }
            if kind == "StatefulSet":
                self._run_pods(namespace, name, live)

    def _run_pods(self, namespace: str, name: str, statefulset: Manifest) -> None:
        count = statefulset["spec"]["replicas"]
        for key in [key for key in self.objects if key[0] == "Pod" and key[2].startswith(f"{name}-")]:
            if int(key[2].rsplit("-", 1)[1]) >= count:
                del self.objects[key]
        for ordinal in range(count):
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-{ordinal}",
                    "namespace": namespace,
                    "labels": statefulset["spec"]["template"]["metadata"]["labels"],
                },
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            if ("Pod", namespace, f"{name}-{ordinal}") not in self.objects:
                self.put(pod)
