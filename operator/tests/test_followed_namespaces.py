"""The namespaces that kopf watches."""

from proofgate_operator.api import KIND
from proofgate_operator.handlers.followed_namespaces import FollowedNamespaces
from proofgate_operator.kube.store import Store
from tests.gateways import manifest


def _gateway(namespace: str, name: str = "demo", version: str = "1") -> dict[str, object]:
    head = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "resourceVersion": version}
    return {**manifest(), "metadata": head}


def test_only_namespaces_with_a_gateway_are_followed() -> None:
    store = Store()
    followed = FollowedNamespaces(store, [f"team-{number}" for number in range(2000)])
    assert followed.namespaces() == ()
    store.upsert(KIND, _gateway("team-7"))
    assert followed.namespaces() == ("team-7",)
    store.upsert(KIND, _gateway("elsewhere"))
    assert followed.namespaces() == ("team-7",)


def test_a_namespace_whose_last_gateway_went_stays_so_that_its_end_is_told() -> None:
    store = Store()
    followed = FollowedNamespaces(store, ["team"])
    store.upsert(KIND, _gateway("team"))
    assert followed.namespaces() == ("team",)
    store.remove(KIND, _gateway("team", version="2"))
    assert store.gateway_namespaces() == set()
    assert followed.namespaces() == ("team",)


def test_a_namespace_that_cannot_be_listed_is_not_followed() -> None:
    store = Store()
    store.expect([KIND], ["team", "other"])
    followed = FollowedNamespaces(store, ["team", "other"])
    store.upsert(KIND, _gateway("team"))
    store.upsert(KIND, _gateway("other"))
    store.block(KIND, "team")
    assert followed.namespaces() == ("other",)
    store.replace(KIND, "team", {("team", "demo")}, "9")
    assert followed.namespaces() == ("team", "other")


def test_where_all_are_served_only_whether_they_can_be_listed_counts() -> None:
    store = Store()
    store.expect([KIND], [None])
    followed = FollowedNamespaces(store, [])
    assert followed.namespaces() == ("",)
    store.block(KIND, None)
    assert followed.namespaces() == ()
