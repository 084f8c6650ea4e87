"""The profiles, tested without a lab."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import ClientError, ClientSession, web
from aiohttp.test_utils import TestServer

from e2e.cluster.layout import PACKAGE
from e2e.unkind import MEANING, PROFILES, names, permissions, profile
from e2e.unkind.slow_api import Distance


def test_every_profile_says_what_it_means_and_no_other_name_is_one() -> None:
    assert list(MEANING) == list(PROFILES)
    with pytest.raises(LookupError, match="names, permissions, api"):
        profile("nmaes", [])


def test_the_labs_own_configuration_of_the_name_server_can_be_made_to_keep_names() -> None:
    kept = names.longer((PACKAGE / "manifests" / "coredns.yaml").read_text())
    assert "ttl 30\n" in kept and "cache 30\n" in kept
    with pytest.raises(ValueError, match="without ttl 1"):
        names.longer(kept)


def test_a_binding_that_comes_back_is_as_it_was_without_what_the_server_had_added() -> None:
    found = {
        "metadata": {"name": "operator", "namespace": "a", "uid": "1", "resourceVersion": "2", "labels": {"a": "b"}},
        "roleRef": {"kind": "Role", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator"}],
    }
    assert permissions.bare(found) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "operator", "labels": {"a": "b"}},
        "roleRef": found["roleRef"],
        "subjects": found["subjects"],
    }


async def _echo(request: web.Request) -> web.Response:
    told = {"method": request.method, "path": request.raw_path, "token": request.headers.get("Authorization")}
    return web.json_response({**told, "body": (await request.read()).decode()})


def between(share: float, ask: Callable[[ClientSession, str], Awaitable[object]]) -> object:
    """The answer to a client through a distance that fails a share of its requests."""

    async def run() -> object:
        server = web.Application()
        server.router.add_route("*", "/{path:.*}", _echo)
        async with TestServer(server) as upstream, ClientSession() as session:
            distance = Distance(session, str(upstream.make_url("")).rstrip("/"), 0, share)
            application = web.Application()
            application.router.add_route("*", "/{path:.*}", distance.handle)
            async with TestServer(application) as near:
                return await ask(session, str(near.make_url("")).rstrip("/"))

    return asyncio.run(run())


def test_what_is_passed_on_is_asked_as_the_client_asked_it() -> None:
    async def ask(session: ClientSession, url: str) -> object:
        async with session.patch(f"{url}/a%2Fb?watch=1", data="{}", headers={"Authorization": "Bearer t"}) as answer:
            return await answer.json()

    assert between(0, ask) == {"method": "PATCH", "path": "/a%2Fb?watch=1", "token": "Bearer t", "body": "{}"}


def test_what_fails_fails_in_every_way_in_turn() -> None:
    async def ask(session: ClientSession, url: str) -> object:
        seen: list[object] = []
        for _ in range(4):
            try:
                async with session.post(url, data="x") as answer:
                    seen.append((answer.status, answer.headers.get("Retry-After")))
            except ClientError:
                seen.append("closed")
        return seen

    assert between(1, ask) == [(429, "1"), (500, None), (503, None), "closed"]
