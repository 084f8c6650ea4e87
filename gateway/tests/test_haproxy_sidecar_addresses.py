"""Updates of workers' addresses in HAProxy, with stand-ins for its socket and for a name server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from conftest import PATIENCE_SECONDS, serving
from runtime_double import RuntimeDouble

from proofgate.haproxy_sidecar import name_resolver, servers
from proofgate.haproxy_sidecar.addresses import DNS_FALLBACK_SECONDS, WorkerAddresses, parse_addresses
from proofgate.haproxy_sidecar.agent import create_app
from proofgate.haproxy_sidecar.follower import SyncLoop
from proofgate.haproxy_sidecar.name_resolver import NameResolver
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
from proofgate.haproxy_sidecar.tenant_map import MapFile

OLD, NEW, OTHER = "192.0.2.1", "192.0.2.2", "192.0.2.3"


class Scene:
    """A file of addresses, a stand-in for HAProxy with three servers, a name server, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "workers.map"
        self.haproxy = RuntimeDouble(folder / "admin.sock")
        self.haproxy.weights = {f"worker-{number}": 100 for number in range(3)}
        self.now = 0.0
        self.named: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self.api = RuntimeApi(self.haproxy.path)
        self.state = folder / "servers.state"
        self.target = WorkerAddresses(
            self.file, self.api, NameResolver(self._look_up), lambda: self.now, self.state
        )
        self.follower = SyncLoop([self.target], lambda: self.now)

    def _look_up(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.named:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.named[host]

    def write(self, **addresses: str) -> None:
        lines = (f"{name.replace('_', '-')} {address}\n" for name, address in addresses.items())
        self.file.write_text("".join(lines))

    @property
    def held(self) -> dict[str, str]:
        return self.haproxy.addresses

    def come_up(self) -> None:
        """Makes every worker pass its checks at its current address."""
        self.haproxy.up = dict.fromkeys(self.held, 3)

    async def pass_by(self, seconds: float) -> None:
        self.now += seconds
        await self.follower.sync_once()


@pytest.fixture
def scene(short_path: Path) -> Scene:
    return Scene(short_path)


def before_haproxy(scene: Scene, body: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with scene.haproxy:
            await body()

    asyncio.run(run())


def test_haproxy_has_the_addresses_that_are_written_and_nothing_for_the_rest(scene: Scene) -> None:
    async def body() -> None:
        scene.write(worker_0=OLD, worker_1="-")
        await scene.follower.sync_once()
        assert scene.held == {"worker-0": OLD}
        assert scene.follower.out_of_sync() == []
        scene.write(worker_0=OLD, worker_1="2001:db8::1")
        await scene.follower.sync_once()
        assert scene.held == {"worker-0": OLD, "worker-1": "2001:db8::1"}
        scene.write(worker_1="2001:db8::1")
        await scene.follower.sync_once()
        assert scene.held == {"worker-1": "2001:db8::1"}
        assert scene.asked == []

    before_haproxy(scene, body)


def test_a_new_address_is_down_until_its_worker_has_passed_its_checks(scene: Scene) -> None:
    async def body() -> None:
        scene.write(worker_0=OLD)
        await scene.follower.sync_once()
        scene.come_up()
        scene.write(worker_0=NEW, worker_1=OTHER)
        await scene.follower.sync_once()
        assert scene.held == {"worker-0": NEW, "worker-1": OTHER}
        assert not scene.haproxy.up

    before_haproxy(scene, body)


def test_a_haproxy_that_has_just_started_holds_whom_it_is_told_of_for_up(scene: Scene) -> None:
    async def body() -> None:
        scene.haproxy.checked = False
        scene.write(worker_0=OLD)
        await scene.follower.sync_once()
        assert scene.haproxy.up == {"worker-0": 2}

    before_haproxy(scene, body)


def test_what_haproxy_starts_from_names_the_workers_that_are_up_and_is_left_alone_while_nothing_changes(
    scene: Scene,
) -> None:
    async def body() -> None:
        scene.write(worker_0=OLD, worker_1=OTHER, worker_2="-")
        await scene.follower.sync_once()
        assert OLD not in scene.state.read_text(), "the worker has not passed its checks"
        scene.come_up()
        del scene.haproxy.up["worker-1"]
        await scene.pass_by(1)
        written = [line.split() for line in scene.state.read_text().splitlines()[2:]]
        assert {line[3]: line[4] for line in written} == {"worker-0": OLD, "worker-1": "-", "worker-2": "-"}
        before = scene.state.stat()
        await scene.pass_by(1)
        assert scene.state.stat() == before

    before_haproxy(scene, body)


def test_what_haproxy_would_start_from_goes_when_it_cannot_be_written_and_that_is_told(scene: Scene) -> None:
    async def body() -> None:
        scene.write(worker_0=OLD)
        await scene.follower.sync_once()
        scene.come_up()
        await scene.pass_by(1)
        assert OLD in scene.state.read_text()
        in_the_way = scene.state.with_name("servers.state.new")
        in_the_way.mkdir()
        scene.write(worker_0=NEW)
        await scene.pass_by(1)
        assert not scene.state.exists()
        assert scene.held == {"worker-0": NEW}
        assert scene.follower.out_of_sync() == []
        [trouble] = scene.target.errors()
        assert "cannot be written" in trouble
        in_the_way.rmdir()
        scene.come_up()
        await scene.pass_by(1)
        assert NEW in scene.state.read_text()
        assert scene.target.errors() == []

    before_haproxy(scene, body)


def test_a_name_server_that_tells_of_a_pod_that_is_gone_is_not_asked(scene: Scene) -> None:
    async def body() -> None:
        scene.named["worker-0.test"] = [OLD]
        scene.write(worker_0=OLD)
        await scene.follower.sync_once()
        scene.come_up()
        scene.write(worker_0="-")
        await scene.pass_by(1)
        assert scene.held == {}
        scene.write(worker_0=NEW)
        await scene.pass_by(1)
        assert scene.held == {"worker-0": NEW}
        # The worker starts slowly, and the name server would still return the previous pod's address.
        await scene.pass_by(DNS_FALLBACK_SECONDS - 2)
        assert scene.held == {"worker-0": NEW}
        assert scene.asked == []

    before_haproxy(scene, body)


def test_a_worker_that_is_not_up_for_long_is_looked_for_by_its_name(scene: Scene) -> None:
    async def body() -> None:
        scene.named["worker-0.test"] = [NEW]
        scene.write(worker_0=OLD, worker_1=OTHER)
        await scene.follower.sync_once()
        scene.come_up()
        await scene.pass_by(1)
        del scene.haproxy.up["worker-0"]
        await scene.pass_by(1)
        await scene.pass_by(DNS_FALLBACK_SECONDS)
        assert scene.held == {"worker-0": NEW, "worker-1": OTHER}
        assert scene.target.gauges() == {"entries": 2, "by_name": 1}
        scene.come_up()
        await scene.pass_by(1)
        asked = len(scene.asked)
        await scene.pass_by(DNS_FALLBACK_SECONDS * 2)
        assert scene.held["worker-0"] == NEW
        assert len(scene.asked) == asked, "the worker is up, so the name server is not queried"
        scene.write(worker_0="192.0.2.9", worker_1=OTHER)
        await scene.pass_by(1)
        assert scene.held["worker-0"] == "192.0.2.9", "the later file entry wins"

    before_haproxy(scene, body)


def test_a_name_that_leads_to_where_another_worker_is_is_not_followed(scene: Scene) -> None:
    async def body() -> None:
        scene.named["worker-0.test"] = [OTHER]
        scene.write(worker_0=OLD, worker_1=OTHER)
        await scene.pass_by(1)
        await scene.pass_by(DNS_FALLBACK_SECONDS)
        assert scene.asked
        assert scene.held == {"worker-0": OLD, "worker-1": OTHER}

    before_haproxy(scene, body)


def test_without_a_file_names_are_followed(scene: Scene) -> None:
    async def body() -> None:
        scene.named = {"worker-0.test": [OLD], "worker-1.test": [OTHER]}
        await scene.pass_by(1)
        assert scene.held == {"worker-0": OLD, "worker-1": OTHER}
        assert scene.follower.out_of_sync() == []
        scene.named = {"worker-0.test": [NEW]}
        scene.haproxy.up.clear()
        await scene.pass_by(1)
        assert scene.held == {"worker-0": NEW}

    before_haproxy(scene, body)


@pytest.mark.parametrize(
    "text",
    [
        "worker-0\n",
        "worker-0 worker.test\n",
        "worker-0 192.0.2.1; shutdown\n",
        "worker-0 192.0.2.1\nworker-0 192.0.2.2\n",
        "worker-0 192.0.2.1 port 1\n",
        "worker-0 fe80::1%eth0;x\n",
        "wörker 192.0.2.1\n",
    ],
    ids=["no address", "a name", "another command", "twice", "a port", "a zone", "not ASCII"],
)
def test_a_file_that_has_anything_else_than_addresses_is_refused_and_what_holds_stays(
    scene: Scene, text: str
) -> None:
    async def body() -> None:
        scene.write(worker_0=OLD)
        await scene.follower.sync_once()
        questions = len(scene.haproxy.questions)
        scene.file.write_text(text)
        await scene.follower.sync_once()
        assert scene.held == {"worker-0": OLD}
        assert scene.follower.standings[0].failures == {"refused": 1}
        assert not any("set" in asked for asked in scene.haproxy.questions[questions:])

    before_haproxy(scene, body)


def test_a_file_of_addresses_has_comments_and_an_address_for_each_worker() -> None:
    text = "# of today\n\nworker-0 192.0.2.1\nworker-1\t2001:DB8::0:1\nworker-2 -\n"
    assert parse_addresses(text) == {"worker-0": OLD, "worker-1": "2001:db8::1", "worker-2": None}


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_resolver, "TIMEOUT_SECONDS", 0.01)
    answered = threading.Event()

    def look_up(_: str) -> Sequence[str]:
        answered.wait(PATIENCE_SECONDS)
        return [NEW]

    async def body() -> None:
        found = NameResolver(look_up)
        assert await found.addresses("worker-0.test") is None
        assert await found.addresses("worker-0.test") is None, "the pending query is reused"
        answered.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await found.addresses("worker-0.test") != [NEW]:
                pass

    asyncio.run(body())


def told_to_the_operator(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{url}/workers", timeout=PATIENCE_SECONDS) as response:  # noqa: S310 - loopback
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_operator_is_told_where_and_how_every_worker_is(scene: Scene) -> None:
    async def body() -> None:
        scene.haproxy.addresses = {"worker-0": OLD, "worker-1": "2001:db8::1"}
        scene.haproxy.up = {"worker-0": 3, "worker-1": 2}
        app = create_app(scene.follower, servers.WorkerDiscovery(scene.api), scene.api)
        with serving(app) as url:
            status, text = await asyncio.to_thread(told_to_the_operator, url)
        assert status == 200
        assert json.loads(text)["owners"] is None
        assert json.loads(text)["workers"] == [
            {"name": "worker-0", "address": OLD, "state": "up", "seconds": 7},
            {"name": "worker-1", "address": "2001:db8::1", "state": "down", "seconds": 7},
            {"name": "worker-2", "address": None, "state": "maintenance", "seconds": 7},
        ]

    before_haproxy(scene, body)


def test_the_operator_is_told_which_map_of_owners_haproxy_holds(scene: Scene) -> None:
    async def body() -> None:
        path = scene.file.with_name("owners.map")
        path.write_text("acme worker-0.worker-1\n")
        follower = SyncLoop([MapFile(path, scene.api)], lambda: scene.now)
        app = create_app(follower, servers.WorkerDiscovery(scene.api), scene.api)
        with serving(app) as url:
            _, before = await asyncio.to_thread(told_to_the_operator, url)
            await follower.sync_once()
            path.write_text("acme worker-1\n")
            _, after = await asyncio.to_thread(told_to_the_operator, url)
        assert json.loads(before)["owners"] is None
        assert json.loads(after)["owners"] == hashlib.sha256(b"acme worker-0.worker-1\n").hexdigest()

    before_haproxy(scene, body)


def test_without_haproxy_nothing_is_told_of_workers(scene: Scene) -> None:
    with serving(create_app(scene.follower, servers.WorkerDiscovery(scene.api), scene.api)) as url:
        status, text = told_to_the_operator(url)
    assert status == 503
    assert text.startswith("HAProxy cannot be reached")
