"""The store never replaces an object by an older version, in any order of events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofgate_operator.api import KIND
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome, ReadRequest
from proofgate_operator.kube.store import Store, StoreNotSynced

Manifest = dict[str, Any]


def service(version: int, name: str = "demo", uid: str = "uid", **more: Any) -> Manifest:
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": uid,
        "resourceVersion": str(version),
        "labels": {"proofgate.dev/gateway": "demo"},
        **more,
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"at": version}}


def filled(*found: Manifest) -> Store:
    store = Store()
    for manifest in found:
        store.upsert(manifest["kind"], manifest)
    return store


def test_what_the_api_server_notes_for_itself_is_not_kept() -> None:
    store = filled(service(1, managedFields=[{"manager": "somebody"}]))
    assert store.get("Service", "team", "demo") == service(1)


def test_a_late_event_changes_nothing_and_is_no_news() -> None:
    store = filled(service(5))
    assert not store.upsert("Service", service(4))
    assert not store.upsert("Service", service(5))
    assert not store.remove("Service", service(4))
    assert store.get("Service", "team", "demo") == service(5)


def test_versions_are_compared_as_numbers() -> None:
    store = filled(service(9))
    assert store.upsert("Service", service(10))


def test_what_was_deleted_does_not_come_back_by_a_late_event() -> None:
    store = filled(service(5))
    store.record_deletion("Service", "team", "demo", "uid")
    assert store.get("Service", "team", "demo") is None
    assert not store.upsert("Service", service(6))
    assert store.upsert("Service", service(7, uid="another"))


def test_a_grave_does_not_last_for_ever() -> None:
    now = [0.0]
    store = Store(clock=lambda: now[0])
    store.record_deletion("Service", "team", "demo", "uid")
    now[0] = 61
    assert store.upsert("Service", service(6))


def test_a_list_drops_what_it_does_not_hold_unless_that_is_newer_than_the_list() -> None:
    store = filled(service(5, "old"), service(20, "new"), service(6, "kept"))
    gone = store.replace("Service", None, {("team", "kept")}, "10")
    assert gone == [(("Service", "team", "old"), "demo")]
    assert [found["metadata"]["name"] for found in store.list_for_gateway("Service", "team", "demo")] == [
        "kept",
        "new",
    ]


def test_a_list_of_one_namespace_says_nothing_of_another() -> None:
    store = filled(service(5))
    assert store.replace("Service", "other", set(), "10") == []


def test_before_everything_was_listed_nothing_is_said_to_be_absent() -> None:
    store = Store()
    store.expect(["Service", "Pod"], [None])
    store.replace("Service", None, set(), "1")
    assert not store.synced
    with pytest.raises(StoreNotSynced, match="Pod"):
        store.is_watched("Service")
    store.replace("Pod", None, set(), "1")
    assert store.synced and store.is_watched("Service") and not store.is_watched("Job")


def test_of_a_secret_only_the_version_is_kept() -> None:
    store = Store()
    secret = {**service(3), "kind": "Secret", "data": {"key": "c2stc2VjcmV0"}}
    store.upsert("Secret", secret)
    assert store.get("Secret", "team", "demo") is None
    assert store.list_for_gateway("Secret", "team", "demo") == []
    assert ("Secret", "demo", "3") in store.version_mark("team", "demo", [])
    assert all(not entry.packed for entry in store._entries.values())


def test_a_mark_changes_with_an_object_and_with_a_named_secret_also_one_that_is_absent() -> None:
    store = filled(service(5))
    before = store.version_mark("team", "demo", ["keys"])
    store.upsert("Secret", {**service(6, "keys", "keys"), "kind": "Secret"})
    named = store.version_mark("team", "demo", ["keys"])
    store.upsert("Service", service(7))
    assert len({before, named, store.version_mark("team", "demo", ["keys"])}) == 3
    assert store.version_mark("team", "other", []) == ()


def test_an_object_that_changes_its_gateway_belongs_to_the_new_one() -> None:
    store = filled(service(5))
    store.upsert("Service", service(6, labels={"proofgate.dev/gateway": "other"}))
    assert store.list_for_gateway("Service", "team", "demo") == []
    assert len(store.list_for_gateway("Service", "team", "other")) == 1
    store.remove("Service", service(7))
    assert store.list_for_gateway("Service", "team", "other") == [] and store._of == {}


@given(st.permutations(range(1, 7)), st.integers(1, 6))
def test_in_any_order_the_newest_version_stays(order: list[int], repeated: int) -> None:
    store = Store()
    for version in (*order, repeated):
        store.upsert("Service", service(version))
    assert store.get("Service", "team", "demo") == service(6)


@pytest.mark.parametrize(
    ("served", "namespace", "known"),
    [(None, "team", True), ("team", "team", True), ("team", "elsewhere", False)],
    ids=["everywhere", "there", "elsewhere"],
)
def test_only_of_a_namespace_that_is_listed_a_gateway_is_known_to_be_missing(
    served: str | None, namespace: str, known: bool
) -> None:
    store = Store()
    store.expect([KIND], [served])
    assert not store.lacks_gateway((namespace, "demo")), (
        "a gateway is not missing before the namespace is listed"
    )
    store.replace(KIND, served, set(), "1")
    assert store.lacks_gateway((namespace, "demo")) is known
    metadata = {"name": "demo", "namespace": namespace, "uid": "uid", "resourceVersion": "2"}
    store.upsert(KIND, {"apiVersion": "proofgate.dev/v1alpha1", "kind": KIND, "metadata": metadata})
    assert not store.lacks_gateway((namespace, "demo"))


def test_of_a_namespace_that_refuses_to_be_listed_no_gateway_is_known_to_be_missing() -> None:
    store = Store()
    store.expect([KIND], ["team", "other"])
    for home in ("team", "other"):
        store.replace(KIND, home, set(), "1")
    store.block(KIND, "team")
    assert not store.lacks_gateway(("team", "demo"))
    assert store.lacks_gateway(("other", "demo"))


def test_a_secret_is_known_to_be_lacking_only_where_secrets_are_heard_of() -> None:
    store = Store()
    store.expect(["Secret"], ["team", "other"])
    assert not store.lacks_secret("team", "keys"), "a Secret is not missing before Secrets are listed"
    for namespace in ("team", "other"):
        store.replace("Secret", namespace, set(), "1")
    assert store.lacks_secret("team", "keys")
    assert not store.lacks_secret("elsewhere", "keys")
    failure = ReadFailed(
        ReadRequest("list", "Secret", "team"), ReadOutcome.UNAVAILABLE, ApiError(500, "", "")
    )
    store.mark_unavailable("Secret", "team", failure)
    assert not store.lacks_secret("team", "keys")
    assert store.lacks_secret("other", "keys")
    store.mark_available("Secret", "team")
    store.block("Secret", "team")
    assert not store.lacks_secret("team", "keys")
