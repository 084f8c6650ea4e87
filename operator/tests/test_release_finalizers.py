"""Taking the operator's leave, against an API server that only keeps finalizers, pods and a scale."""

import copy
from typing import Any

import kopf
import pytest

from proofgate_operator.api import KIND
from proofgate_operator.kube.client import ApiError, Client
from proofgate_operator.main import _configure
from proofgate_operator.release_finalizers import (
    FINALIZER,
    OperatorsRemain,
    end_operators,
    main,
    release_all,
)

THEIRS = "example.com/backup"


class Finalizers(Client):
    """Gateways by namespace and name with their finalizers, and the operators' pods."""

    def __init__(self, **gateways: list[str]) -> None:
        self.gateways = {("team", name): finalizers for name, finalizers in gateways.items()}
        self.pods: list[dict[str, Any]] = []
        self.scaled: list[Any] = []
        self.served = True
        self.barred: set[str | None] = set()
        #: Run before a patch is looked at: somebody else was quicker.
        self.meanwhile: list[Any] = []

    async def list(self, kind: str, namespace: str | None, selector: str = "") -> list[dict[str, Any]]:
        if kind == "Pod":
            return [self.pods.pop()] if self.pods else []
        if not self.served:
            raise ApiError(404, "NotFound", "no such resource")
        if namespace in self.barred:
            raise ApiError(403, "Forbidden", "cannot list")
        return [
            {"metadata": {"namespace": where, "name": name}}
            for where, name in self.gateways
            if namespace in (None, where)
        ]

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        assert kind == KIND
        finalizers = self.gateways.get((namespace, name))
        return None if finalizers is None else {"metadata": {"finalizers": copy.copy(finalizers)}}

    async def request(self, method: str, path: str, **asked: Any) -> dict[str, Any]:
        if path.endswith("/scale"):
            self.scaled.append(asked["body"]["spec"]["replicas"])
            return {}
        if self.meanwhile:
            self.meanwhile.pop(0)()
        namespace, name = path.split("/")[-3], path.split("/")[-1]
        if (namespace, name) not in self.gateways:
            raise ApiError(404, "NotFound", name)
        finalizers = self.gateways[(namespace, name)]
        test, remove = asked["body"]
        place = int(test["path"].rpartition("/")[2])
        if place >= len(finalizers) or finalizers[place] != test["value"]:
            raise ApiError(422, "Invalid", "the test failed")
        assert remove == {"op": "remove", "path": test["path"]}
        del finalizers[place]
        return {}


async def test_the_finalizer_that_is_taken_off_is_the_one_that_the_operator_puts_on() -> None:
    settings = kopf.OperatorSettings()
    await _configure(settings=settings)
    assert settings.persistence.finalizer == FINALIZER


async def test_a_namespace_that_is_gone_keeps_nobody_from_taking_leave_of_the_others() -> None:
    client = Finalizers(a=[FINALIZER])
    client.barred = {"gone"}
    assert await release_all(client, ["gone", "team"]) == 1


async def test_an_operator_of_all_namespaces_that_may_not_look_is_an_error() -> None:
    client = Finalizers(a=[FINALIZER])
    client.barred = {None}
    with pytest.raises(ApiError, match="403"):
        await release_all(client, [])


async def test_only_the_operators_own_finalizer_is_taken_off() -> None:
    client = Finalizers(a=[THEIRS, FINALIZER], b=[FINALIZER], c=[THEIRS], d=[])
    assert await release_all(client, ["team"]) == 2
    left = {name: finalizers for (_, name), finalizers in client.gateways.items()}
    assert left == {"a": [THEIRS], "b": [], "c": [THEIRS], "d": []}


async def test_gateways_of_a_namespace_that_was_not_served_are_left_alone() -> None:
    client = Finalizers(a=[FINALIZER])
    assert await release_all(client, ["other"]) == 0
    assert client.gateways[("team", "a")] == [FINALIZER]


async def test_no_namespace_means_all_of_them() -> None:
    client = Finalizers(a=[FINALIZER])
    assert await release_all(client, []) == 1


async def test_a_list_that_somebody_else_changes_meanwhile_is_read_again() -> None:
    client = Finalizers(a=[FINALIZER])
    client.meanwhile = [lambda: client.gateways[("team", "a")].insert(0, THEIRS)]
    assert await release_all(client, ["team"]) == 1
    assert client.gateways[("team", "a")] == [THEIRS]


async def test_a_gateway_that_goes_meanwhile_is_no_error() -> None:
    client = Finalizers(a=[FINALIZER], b=[FINALIZER])
    client.meanwhile = [lambda: client.gateways.pop(("team", "a"))]
    assert await release_all(client, ["team"]) == 1


async def test_without_the_crd_there_is_nothing_to_release() -> None:
    client = Finalizers()
    client.served = False
    assert await release_all(client, ["team", "other"]) == 0


async def test_nothing_is_released_before_the_last_operator_is_gone() -> None:
    client = Finalizers()
    client.pods = [{"metadata": {"name": f"operator-{number}"}} for number in range(3)]
    await end_operators(client, "home", "operator", "app=operator", seconds=60, pause=0)
    assert client.scaled == [0] and not client.pods


async def test_operators_that_do_not_end_are_named() -> None:
    client = Finalizers()
    client.pods = [{"metadata": {"name": "operator-0"}}] * 2
    with pytest.raises(OperatorsRemain, match="operator-0"):
        await end_operators(client, "home", "operator", "app=operator", seconds=-1, pause=0)


def test_a_deployment_needs_its_namespace_and_the_labels_of_its_pods() -> None:
    for arguments in (["--deployment=operator"], ["--deployment=home/operator"]):
        with pytest.raises(SystemExit) as refused:
            main(arguments)
        assert refused.value.code == 2
