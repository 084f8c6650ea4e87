"""An API server in memory, with server-side apply, watches and controllers as far as the loop needs them.

Validation, admission and real garbage collection are tested on a real control plane.
The same server answers HTTP in `tests.api_emulator`.
"""

import copy
import itertools
import re
from collections.abc import Callable
from typing import Any

from proofgate_operator.handlers.watches import SELECTORS
from proofgate_operator.kube.client import Client
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.reads import ReadRequest
from proofgate_operator.kube.resources import RESOURCES
from proofgate_operator.kube.store import Store

Manifest = dict[str, Any]
Key = tuple[str, str, str]

KIND_OF = {(resource.api_version, resource.plural): kind for kind, resource in RESOURCES.items()}
_PATH = re.compile(
    r"/apis?/(?P<version>v1|[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?P<rest>/.*)?$"
)


class Killed(BaseException):
    """The operator was killed: like SIGKILL, no `except Exception` catches it."""


def _merged(live: Any, before: Any, wanted: Any) -> Any:
    """Apply: set the wanted fields, remove fields that only the last apply had, keep all other fields."""
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return copy.deepcopy(wanted)
    before = before if isinstance(before, dict) else {}
    result = {key: value for key, value in live.items() if key in wanted or key not in before}
    for key, value in wanted.items():
        result[key] = _merged(live.get(key), before.get(key), value)
    return result


def _patched(live: Any, patch: Any) -> Any:
    """Merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(live) if isinstance(live, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _patched(result.get(key), value)
    return result


def selects(selector: str, manifest: Manifest) -> bool:
    """Return whether a selector of the form a=b,c=d selects an object."""
    wanted = dict(part.split("=", 1) for part in selector.split(",") if part)
    return bool(wanted.items() <= manifest["metadata"].get("labels", {}).items())


def has_fields(selector: str, manifest: Manifest) -> bool:
    """Return whether an object has the values of a field selector of the form a.b=c,d=e."""
    for part in filter(None, selector.split(",")):
        place, _, value = part.partition("=")
        found: Any = manifest
        for name in place.split("."):
            found = (found or {}).get(name)
        if found != value:
            return False
    return True


class FakeCluster(Client):
    """Objects by kind, namespace and name, and the requests that the operator sends.

    Tests may change `objects` in place: the next request or read of the store gives the change a version and
    notifies the watches. With `stale`, the store receives events only through `deliver`.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self.objects: dict[Key, Manifest] = {}
        self.requests: list[str] = []
        self.writes: list[str] = []
        #: The number of writes before the write that kills the operator; None: no write does.
        self.writes_left: int | None = None
        #: Refusals by object kind.
        self.refuse: dict[str, ApiError] = {}
        #: Errors for the next requests, in order and of any kind; None lets one request pass.
        self.faults: list[ApiError | None] = []
        self.stale = False
        #: The changes by the API server and its webhooks to an applied object.
        self.admit: Callable[[Manifest], None] = lambda _: None
        #: The error that a read gets instead of a result; None for a result.
        self.blink: Callable[[ReadRequest], ApiError | None] = lambda _: None
        #: Missing namespaces, in which lists and watches fail.
        self.barred: set[str] = set()
        #: Labels by namespace; None if they may not be read.
        self.namespace_labels: dict[str, dict[str, str]] | None = None
        #: The error of a list of namespaces.
        self.namespaces_fault: ApiError | None = None
        #: All events: type, version and object.
        self.history: list[tuple[str, int, Manifest]] = []
        self._told: dict[Key, Manifest] = {}
        self._delivered = 0
        self._applied: dict[Key, Manifest] = {}
        self._versions = itertools.count(1)
        self.restart()

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    def restart(self) -> None:
        """Clear the store and list everything, as a new process does."""
        self._known = Store()
        self._known.expect(SELECTORS, [None])
        self._announce()
        self._delivered = len(self.history)
        for kind, selector in SELECTORS.items():
            found = [live for key, live in self.objects.items() if key[0] == kind and selects(selector, live)]
            for live in found:
                self._known.upsert(kind, copy.deepcopy(live))
            held = {(live["metadata"]["namespace"], live["metadata"]["name"]) for live in found}
            self._known.replace(kind, None, held, str(next(self._versions)))

    def become(self, other: "FakeCluster") -> None:
        """Copy another cluster's objects, and restart the operator."""
        self.objects = copy.deepcopy(other.objects)
        self._applied = copy.deepcopy(other._applied)
        self.restart()

    @property
    def store(self) -> Store:
        """The objects that the watches have reported; without `stale`, all objects."""
        if not self.stale:
            self.deliver()
        return self._known

    @store.setter
    def store(self, store: Store) -> None:
        self._known = store

    def deliver(self, count: int | None = None) -> None:
        """Deliver this many pending events to the store; None: all of them."""
        self._announce()
        last = len(self.history) if count is None else min(self._delivered + count, len(self.history))
        for type_, _, found in self.history[self._delivered : last]:
            selector = SELECTORS.get(found["kind"])
            if selector is None:
                continue
            if type_ == "DELETED" or not selects(selector, found):
                self._known.remove(found["kind"], found)
            else:
                self._known.upsert(found["kind"], found)
        self._delivered = last

    def announce(self) -> None:
        """Give each object that was changed in place a new version, and notify the watches."""
        self._announce()

    def _announce(self) -> None:
        for key, live in self.objects.items():
            if self._told.get(key) == live:
                continue
            type_ = "MODIFIED" if key in self._told else "ADDED"
            version = next(self._versions)
            live["metadata"]["resourceVersion"] = str(version)
            live["metadata"].setdefault("uid", f"uid-{version}")
            live["apiVersion"] = RESOURCES[key[0]].api_version
            self._told[key] = copy.deepcopy(live)
            self.history.append((type_, version, self._told[key]))
        for key in [key for key in self._told if key not in self.objects]:
            gone = copy.deepcopy(self._told.pop(key))
            version = next(self._versions)
            gone["metadata"]["resourceVersion"] = str(version)
            self.history.append(("DELETED", version, gone))

    def put(self, manifest: Manifest) -> None:
        """Store an object as a user would."""
        metadata = manifest["metadata"]
        self.objects[(manifest["kind"], metadata["namespace"], metadata["name"])] = copy.deepcopy(manifest)
        self._announce()

    def find(self, kind: str, name: str, namespace: str = "team") -> Manifest:
        """Return an object that must exist."""
        return self.objects[(kind, namespace, name)]

    def remove(self, kind: str, name: str, namespace: str = "team") -> None:
        """Delete an object as a user would."""
        self.objects.pop((kind, namespace, name), None)
        self._applied.pop((kind, namespace, name), None)
        self._announce()

    def owned(self) -> dict[Key, Manifest]:
        """Return the operator's objects, without values that differ between two runs."""
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

    async def _exchange(self, method: str, path: str, **parts: Any) -> Manifest:
        # A copy, so that a caller cannot change the stored object.
        return copy.deepcopy(self.answer(method, path, **parts))

    def answer(
        self,
        method: str,
        path: str,
        *,
        query: Any = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "",
    ) -> Manifest:
        """Answer one request."""
        self._announce()
        if re.fullmatch(r"/apis/[^/]+/[^/]+", path):
            # Discovery: every required kind is known, and no optional kind.
            raise ApiError(404, "NotFound", path)
        if path == "/api/v1/namespaces":
            return self._namespaces((query or {}).get("labelSelector", ""))
        match = _PATH.match(path)
        assert match, path
        kind = KIND_OF[(match["version"], match["plural"])]
        name, _, subresource = (match["rest"] or "").strip("/").partition("/")
        namespace = match["namespace"]
        key = (kind, namespace or "", name)
        self.requests.append(f"{method} {kind} {name}{'/' + subresource if subresource else ''}")
        fault = self.faults.pop(0) if self.faults else None
        if fault:
            raise fault
        if method == "GET" and (
            blinked := self.blink(ReadRequest("get" if name else "list", kind, namespace, name))
        ):
            raise blinked
        if method == "GET" and not name and namespace in self.barred:
            raise ApiError(403, "Forbidden", f"cannot list {kind} in {namespace}")
        if method == "GET" and not name:
            selector = (query or {}).get("labelSelector", "")
            items = [
                value
                for (found, home, _), value in sorted(self.objects.items())
                if found == kind
                and namespace in (None, home)
                and selects(selector, value)
                and has_fields((query or {}).get("fieldSelector", ""), value)
            ]
            return {"metadata": {"resourceVersion": str(next(self._versions))}, "items": items}
        if method == "GET":
            if key not in self.objects:
                raise ApiError(404, "NotFound", f"{kind} {name}", subject=name)
            return self.objects[key]
        if kind in self.refuse:
            raise self.refuse[kind]
        if method == "POST":
            return self._create(kind, key[1], body)
        self._count_write(self.requests[-1])
        if method == "DELETE":
            return self._delete(key, (body or {}).get("preconditions", {}))
        live = self.objects.get(key)
        if content_type == "application/apply-patch+yaml":
            self._apply(key, body, subresource)
        elif live is None:
            raise ApiError(404, "NotFound", name)
        elif method == "PUT":
            if body["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]:
                raise ApiError(409, "Conflict", name)
            self.objects[key] = copy.deepcopy(body)
        else:
            assert content_type == "application/merge-patch+json", content_type
            asked = body.get("metadata", {}).get("resourceVersion")
            if asked is not None and live["metadata"]["resourceVersion"] != asked:
                raise ApiError(409, "Conflict", name)
            self.objects[key] = _patched(live, body)
            self._finish(key)
        self._announce()
        return self.objects.get(key, {})

    def _namespaces(self, selector: str) -> Manifest:
        self.requests.append("GET Namespace")
        if blinked := self.blink(ReadRequest("list", "Namespace", None)):
            raise blinked
        if self.namespaces_fault:
            raise self.namespaces_fault
        if self.namespace_labels is None:
            raise ApiError(403, "Forbidden", "cannot list namespaces")
        found = [
            {"metadata": {"name": name, "labels": self.namespace_labels[name]}}
            for name in self.namespace_labels
        ]
        return {"metadata": {}, "items": [item for item in found if selects(selector, item)]}

    def _create(self, kind: str, namespace: str, body: Manifest) -> Manifest:
        name = body["metadata"]["name"]
        if (kind, namespace, name) in self.objects:
            raise ApiError(409, "AlreadyExists", name)
        if kind != "Event":
            self._count_write(f"POST {kind} {name}")
        self.put(body)
        return self.objects[(kind, namespace, name)]

    def _delete(self, key: Key, preconditions: Manifest) -> Manifest:
        live = self.objects.get(key)
        if live is None:
            raise ApiError(404, "NotFound", key[2])
        for field, value in preconditions.items():
            if live["metadata"][field] != value:
                raise ApiError(409, "Conflict", f"{field} is not {value}")
        if live["metadata"].get("finalizers"):
            live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self._announce()
            return live
        self.remove(key[0], key[2], key[1])
        return {"kind": "Status", "status": "Success"}

    def _finish(self, key: Key) -> None:
        metadata = self.objects[key]["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            del self.objects[key]

    def _apply(self, key: Key, body: Manifest, subresource: str) -> None:
        live = self.objects.get(key)
        asked = body["metadata"].get("resourceVersion")
        if asked is not None and (live is None or live["metadata"]["resourceVersion"] != asked):
            raise ApiError(409, "Conflict", f"{key[2]} is not of version {asked}")
        if subresource == "status":
            if live is None:
                raise ApiError(404, "NotFound", key[2])
            if key[0] == "Pod":
                # Merge by type, so that conditions of other writers stay.
                set_ = {item["type"]: item for item in body["status"]["conditions"]}
                kept = [item for item in live["status"]["conditions"] if item["type"] not in set_]
                live["status"]["conditions"] = [*kept, *copy.deepcopy(list(set_.values()))]
                return
            live["status"] = copy.deepcopy(body["status"])
            return
        if live is None:
            made = copy.deepcopy(body)
            self.admit(made)
            self.put(made)
        else:
            merged = _merged(live, self._applied.get(key), body)
            self.admit(merged)
            if "spec" in merged and merged["spec"] != live.get("spec"):
                merged["metadata"]["generation"] = live["metadata"].get("generation", 1) + 1
            self.objects[key] = merged
        self.objects[key]["metadata"].setdefault("generation", 1)
        self._applied[key] = copy.deepcopy(body)

    def run_controllers(self) -> None:
        """Do immediately what the StatefulSet and Deployment controllers, binder and kubelet would do."""
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
        self._announce()

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
                    "ownerReferences": [{"kind": "StatefulSet", "name": name, "controller": True}],
                },
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            if ("Pod", namespace, f"{name}-{ordinal}") not in self.objects:
                self.put(pod)
