"""Local copy of the cluster's objects, filled by watches and by the responses to writes.

Objects are stored as compressed JSON, because a thousand gateways have fifteen objects each. Only the version
of a Secret is stored. A stored object is never replaced by an older version: versions are compared as
numbers, which the API allows (KEP-5504).
"""

import time
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from sys import intern

from proofgate_operator.api import KIND
from proofgate_operator.api.tenant import TENANT_KIND, referenced_gateway
from proofgate_operator.build.naming import GATEWAY_LABEL, Manifest
from proofgate_operator.kube.attached_tenants import AttachedTenants, NamespacedName
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.nesting_limit import truncate_nesting
from proofgate_operator.kube.packing import pack, unpack
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome, ReadRequest

ObjectKey = tuple[str, str, str]
#: The state of a gateway: the versions of all its known objects.
VersionMark = tuple[tuple[str, str, str], ...]

#: Kinds whose content is not stored, only their metadata.
METADATA_ONLY_KINDS = frozenset({"Secret"})
#: Seconds during which a late event cannot restore a deleted object.
_TOMBSTONE_SECONDS = 60.0


class StoreNotSynced(Exception):
    """The store was asked for objects that it could not list yet. An empty answer would look like absence."""


@dataclass(frozen=True)
class BlockedKind:
    """A kind that the operator may not list in a namespace: the failure, its time (`blocked_at` by the
    store's clock, `blocked_at_wall` in seconds since 1970), and whether the kind has never been listed."""

    failure: ReadFailed
    blocked_at: float
    blocked_at_wall: float
    never_listed: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    version: str
    uid: str
    gateway: str
    packed: bytes


def _parse_version(version: str) -> int:
    """Return a version as a number; an invalid version counts as the newest."""
    return int(version) if version.isdecimal() else 1 << 127


def _discard(index: dict[tuple[str, str], set[ObjectKey]], home: tuple[str, str], key: ObjectKey) -> None:
    index[home].discard(key)
    if not index[home]:
        del index[home]


class Store:
    """Objects by kind, namespace and name, and by the gateway of their label.

    `clock` returns monotonic seconds, `wall` returns seconds since 1970.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.clock = clock
        self.wall = wall
        self._entries: dict[ObjectKey, _Entry] = {}
        self._of: dict[tuple[str, str], set[ObjectKey]] = {}
        #: Keyed by kind and namespace.
        self._in: dict[tuple[str, str], set[ObjectKey]] = {}
        self._graves: dict[str, float] = {}
        self._watched: frozenset[str] = frozenset()
        self._expected: set[tuple[str, str | None]] = set()
        self._behind: set[tuple[str, str | None]] = set()
        self._barred: dict[tuple[str, str | None], BlockedKind] = {}
        self._ailing: dict[tuple[str, str | None], ReadFailed] = {}
        self.attached = AttachedTenants()

    def expect(self, kinds: Iterable[str], namespaces: Iterable[str | None]) -> None:
        """Add kinds that are watched, and their namespaces; None stands for all namespaces."""
        watched = frozenset(kinds)
        added = {(kind, namespace) for namespace in namespaces for kind in watched}
        self._watched |= watched
        self._expected |= added
        self._behind |= added

    @property
    def synced(self) -> bool:
        """Whether every watched kind has been listed in every namespace that is not blocked."""
        return bool(self._watched) and not self._behind

    def block(self, kind: str, namespace: str | None, failure: ReadFailed | None = None) -> bool:
        """Record that the operator may not list or watch a kind; return whether that is new.

        The refusal does not mean that objects were deleted: the namespace, or the operator's permission in
        it, may have been deleted. So the known state stays, and other namespaces do not wait for this one.
        """
        home = (kind, namespace)
        if failure is None:
            read, refused = ReadRequest("list", kind, namespace), ApiError(403, "Forbidden", "")
            failure = ReadFailed(read, ReadOutcome.ACCESS_DENIED, refused)
        before = self._barred.get(home)
        never_listed = home in self._behind or (before is not None and before.never_listed)
        self._barred[home] = (
            BlockedKind(failure, self.clock(), self.wall(), never_listed)
            if before is None
            else replace(before, failure=failure)
        )
        self._behind.discard(home)
        if never_listed and not {home for _, home in self._expected} - self.blocked_namespaces():
            # If all namespaces are blocked, the operator is not synced.
            self._behind.add(home)
        if before is None:
            self._invalidate_tenants(kind, namespace)
        return before is None

    def blocked_namespaces(self, kind: str = "") -> set[str | None]:
        """Return the namespaces in which a kind cannot be listed; without a kind, those in which any kind
        cannot be listed."""
        return {namespace for barred, namespace in self._barred if kind in ("", barred)}

    def is_blocked(self, kind: str, namespace: str | None) -> bool:
        """Return whether a kind currently cannot be listed in a namespace."""
        return (kind, namespace) in self._barred

    def blocked_kinds(self, namespace: str, kinds: Iterable[str] | None = None) -> list[BlockedKind]:
        """Return those of `kinds` (None: of all kinds) that cannot be listed in a namespace."""
        wanted = self._watched if kinds is None else frozenset(kinds)
        return [
            self._barred[kind, home]
            for kind, home in sorted(self._barred, key=lambda found: found[0])
            if home in (None, namespace) and kind in wanted
        ]

    def mark_unavailable(self, kind: str, namespace: str | None, failure: ReadFailed) -> bool:
        """Record that the API server has not answered for a kind for some time; return whether that is new.

        The known state stays without an end: an unavailable API server must not revoke anyone's access.
        """
        new = (kind, namespace) not in self._ailing
        self._ailing[kind, namespace] = failure
        if new:
            self._invalidate_tenants(kind, namespace)
        return new

    def mark_available(self, kind: str, namespace: str | None) -> bool:
        """Record that the API server answers for a kind again; return whether that is new."""
        found = self._ailing.pop((kind, namespace), None)
        if found is not None:
            self._invalidate_tenants(kind, namespace)
        return found is not None

    def unavailable_reasons(self, namespace: str, kinds: Iterable[str] | None = None) -> list[ReadFailed]:
        """Return why the API server does not answer for `kinds` (None: for any kind) in a namespace."""
        wanted = self._watched if kinds is None else frozenset(kinds)
        found = sorted(self._ailing, key=lambda home: home[0])
        return [
            self._ailing[kind, home] for kind, home in found if home in (None, namespace) and kind in wanted
        ]

    def require(self, namespace: str) -> None:
        """Raise `StoreNotSynced` unless all objects of a namespace are known."""
        kinds = sorted(kind for kind, home in self._barred if home in (None, namespace))
        if kinds:
            raise StoreNotSynced(f"cannot be listed in {namespace}: {', '.join(kinds)}")

    def _invalidate_tenants(self, kind: str, namespace: str | None) -> None:
        """Mark tenants as changed if it changed whether their kinds can be listed."""
        if kind in (TENANT_KIND, "Secret"):
            self.attached.invalidate_namespace(namespace)

    def is_watched(self, kind: str) -> bool:
        """Return whether objects of a kind are stored; raises `StoreNotSynced` before they have been
        listed."""
        if self._behind:
            raise StoreNotSynced(f"not listed yet: {', '.join(sorted({kind for kind, _ in self._behind}))}")
        return kind in self._watched

    def lacks_gateway(self, gateway: NamespacedName) -> bool:
        """Return whether the gateway is known not to exist.

        Returns False if gateways are not listed in the namespace, or not yet.
        """
        known = not {None, gateway[0]} & self.blocked_namespaces()
        return known and self._lacks(KIND, *gateway)

    def lacks_secret(self, namespace: str, name: str) -> bool:
        """Return whether the Secret is known not to exist, so that no request is needed.

        Returns False while Secrets of the namespace cannot be listed or watched.
        """
        heard = not self.blocked_kinds(namespace, ("Secret",)) and not self.unavailable_reasons(
            namespace, ("Secret",)
        )
        return heard and self._lacks("Secret", namespace, name)

    def _lacks(self, kind: str, namespace: str, name: str) -> bool:
        listed = {(kind, None), (kind, namespace)} & self._expected
        return self.synced and bool(listed) and (kind, namespace, name) not in self._entries

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object, or None if it is not known; the caller may modify the result."""
        entry = self._entries.get((kind, namespace, name))
        return unpack(entry.packed) if entry and entry.packed else None

    def list_for_gateway(self, kind: str, namespace: str, gateway: str) -> list[Manifest]:
        """Return the objects of a kind that bear the label of a gateway, sorted by name."""
        keys = sorted(key for key in self._of.get((namespace, gateway), ()) if key[0] == kind)
        return [unpack(self._entries[key].packed) for key in keys if self._entries[key].packed]

    def gateways(self) -> dict[str, tuple[str, str]]:
        """Return namespace and name of every gateway, keyed by its uid."""
        keys = (key for (kind, _), keys in self._in.items() if kind == KIND for key in keys)
        return {self._entries[key].uid: key[1:] for key in keys}

    def gateway_namespaces(self) -> set[str]:
        """Return the namespaces that hold a gateway."""
        return {namespace for kind, namespace in self._in if kind == KIND}

    def version_mark(self, namespace: str, gateway: str, secrets: Iterable[str]) -> VersionMark:
        """Return the versions of a gateway, of its objects and of the Secrets that it names."""
        keys = {
            *self._of.get((namespace, gateway), ()),
            *(("Secret", namespace, name) for name in secrets),
        }
        known = ((key, self._entries.get(key)) for key in sorted(keys))
        mark = [(key[0], key[2], entry.version if entry else "") for key, entry in known]
        # For tenants, one number that grows with each change instead of thousands of versions.
        if epoch := self.attached.generation((namespace, gateway)):
            mark.append((TENANT_KIND, "", str(epoch)))
        silent = (*self._barred, *self._ailing)
        mark += [(kind, "", "not heard") for kind, home in silent if home in (None, namespace)]
        return tuple(mark)

    def version(self, kind: str, namespace: str, name: str) -> str:
        """Return the known version of an object; empty if it is not known."""
        entry = self._entries.get((kind, namespace, name))
        return entry.version if entry else ""

    def count(self) -> dict[str, int]:
        """Return the number of known objects of each kind."""
        counted: dict[str, int] = {}
        for (kind, _), keys in self._in.items():
            counted[kind] = counted.get(kind, 0) + len(keys)
        return counted

    def upsert(self, kind: str, found: Manifest) -> bool:
        """Store an object; return whether it is new. Old, repeated and already deleted versions are
        ignored."""
        metadata = found["metadata"]
        key = (intern(kind), intern(metadata["namespace"]), metadata["name"])
        version, uid = metadata["resourceVersion"], metadata.get("uid", "")
        before = self._entries.get(key)
        if before and _parse_version(before.version) >= _parse_version(version):
            return False
        if self._is_deleted(uid):
            return False
        if kind == KIND:
            # The schemas of other kinds cannot be nested arbitrarily.
            truncate_nesting(found)
        content = b"" if kind in METADATA_ONLY_KINDS else pack(found)
        gateway = key[2] if kind == KIND else (metadata.get("labels") or {}).get(GATEWAY_LABEL, "")
        self._evict(key)
        self._entries[key] = _Entry(version, uid, intern(gateway), content)
        self._in.setdefault(key[:2], set()).add(key)
        if gateway:
            self._of.setdefault((key[1], gateway), set()).add(key)
        if kind == TENANT_KIND:
            self.attached.update(key[1:], referenced_gateway(found))
        self._notify_secret_change(key)
        return True

    def remove(self, kind: str, found: Manifest) -> bool:
        """Remove an object that was deleted or no longer matches the watch; return whether it was known."""
        metadata = found["metadata"]
        key = (kind, metadata["namespace"], metadata["name"])
        self._graves.pop(metadata.get("uid", ""), None)
        before = self._entries.get(key)
        if before is None or _parse_version(before.version) > _parse_version(metadata["resourceVersion"]):
            return False
        self._drop(key)
        return True

    def record_deletion(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Record that the API server deleted the object with this uid at the operator's request."""
        before = self._entries.get((kind, namespace, name))
        if before and before.uid == uid:
            self._drop((kind, namespace, name))
        self._graves[uid] = self.clock()

    def replace(
        self, kind: str, namespace: str | None, found: Set[tuple[str, str]], version: str
    ) -> list[tuple[ObjectKey, str]]:
        """Replace the objects of a kind by the result of a list of `version`: the namespace and name of each
        object.

        Other objects are dropped, unless they are newer than the list. Returns the dropped objects, and the
        gateway of each one's label.
        """
        if namespace is None:
            keys = [key for home, keys in self._in.items() if home[0] == kind for key in keys]
        else:
            keys = [*self._in.get((kind, namespace), ())]
        gone = [
            (key, self._entries[key].gateway)
            for key in keys
            if key[1:] not in found and _parse_version(self._entries[key].version) <= _parse_version(version)
        ]
        for key, _ in gone:
            self._drop(key)
        self._behind.discard((kind, namespace))
        if (kind, namespace) in self._barred:
            del self._barred[(kind, namespace)]
            self._invalidate_tenants(kind, namespace)
        return gone

    def owner(self, key: ObjectKey) -> str:
        """Return the gateway of an object's label; empty if there is none or the object is unknown."""
        entry = self._entries.get(key)
        return entry.gateway if entry else ""

    def _is_deleted(self, uid: str) -> bool:
        now = self.clock()
        if self._graves and now - next(iter(self._graves.values())) > _TOMBSTONE_SECONDS:
            self._graves = {
                grave: dug for grave, dug in self._graves.items() if now - dug <= _TOMBSTONE_SECONDS
            }
        return uid in self._graves

    def _drop(self, key: ObjectKey) -> None:
        self._evict(key)
        if key[0] == TENANT_KIND:
            self.attached.update(key[1:], None)
        if key[0] == KIND:
            self.attached.remove_gateway(key[1:])
        self._notify_secret_change(key)

    def _evict(self, key: ObjectKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        _discard(self._in, key[:2], key)
        if entry.gateway:
            _discard(self._of, (key[1], entry.gateway), key)

    def _notify_secret_change(self, key: ObjectKey) -> None:
        if key[0] == "Secret":
            self.attached.invalidate_secret(key[1:])
