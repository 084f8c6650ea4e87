"""The agent beside HAProxy, with a stand-in for HAProxy's socket; the operator's tests use a real HAProxy."""

from __future__ import annotations

import asyncio
import logging
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import certificates
import pytest
from conftest import PATIENCE_SECONDS, serving
from runtime_double import RuntimeDouble

from proofgate.haproxy_sidecar import entries_file, servers
from proofgate.haproxy_sidecar.agent import create_app
from proofgate.haproxy_sidecar.certificate import CertificateFile
from proofgate.haproxy_sidecar.follower import SyncLoop
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi, UnreachableError
from proofgate.haproxy_sidecar.target import CHECK_SECONDS, RefusedError
from proofgate.haproxy_sidecar.tenant_map import MapFile
from proofgate.haproxy_sidecar.weights import WeightsFile

DIGEST = "ab" * 32


class Scene:
    """A map file, a stand-in for HAProxy, a sync loop between them, and a fixed clock."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "tenants.map"
        self.file.write_text(f"{DIGEST} acme\n")
        self.haproxy = RuntimeDouble(folder / "admin.sock", {DIGEST: "acme"})
        self.now = 0.0
        self.api = RuntimeApi(self.haproxy.path)
        target = MapFile(self.file, self.api)
        self.follower = SyncLoop([target], lambda: self.now)

    @property
    def ready(self) -> bool:
        return self.follower.out_of_sync() == []

    @property
    def failures(self) -> dict[str, int]:
        return dict(self.follower.standings[0].failures)


@pytest.fixture
def scene(short_path: Path) -> Scene:
    return Scene(short_path)


def in_loop(body: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await body()

    asyncio.run(run())


def test_a_changed_file_replaces_the_map_as_a_whole(scene: Scene) -> None:
    async def body() -> None:
        async with scene.haproxy:
            await scene.follower.sync_once()
            assert scene.ready
            assert scene.haproxy.questions == [f"show map {scene.file}"], "equal entries are not written"
            scene.file.write_text("# of today\n\n0123 acme\n4567\tglobex\n")
            await scene.follower.sync_once()
            assert scene.haproxy.held == {"0123": "acme", "4567": "globex"}
            assert scene.ready

    in_loop(body)


def test_a_map_that_fits_no_single_command_is_sent_in_several(scene: Scene) -> None:
    async def body() -> None:
        many = {f"{number:064x}": f"tenant-{number}" for number in range(2000)}
        scene.file.write_text("".join(f"{key} {tenant}\n" for key, tenant in many.items()))
        async with scene.haproxy:
            await scene.follower.sync_once()
            assert scene.haproxy.held == many

    in_loop(body)


def test_without_haproxy_the_agent_is_not_ready_and_catches_up_when_it_answers(scene: Scene) -> None:
    async def body() -> None:
        await scene.follower.sync_once()
        await scene.follower.sync_once()
        assert not scene.ready
        assert scene.failures == {"unreachable": 1}, "a lasting failure is counted once"
        async with scene.haproxy:
            await scene.follower.sync_once()
            assert scene.ready
            scene.now = CHECK_SECONDS
        await scene.follower.sync_once()
        assert not scene.ready

    in_loop(body)


@pytest.mark.parametrize(
    "text",
    ["only-a-key\n", "a b c\n", "a b;c\n", "a b\na c\n", "ä b\n"],
    ids=["one word", "three words", "another command", "two values of a key", "not ASCII"],
)
def test_a_file_that_is_no_map_is_refused_and_what_haproxy_holds_stays(scene: Scene, text: str) -> None:
    async def body() -> None:
        async with scene.haproxy:
            await scene.follower.sync_once()
            scene.file.write_text(text)
            await scene.follower.sync_once()
            assert scene.haproxy.held == {DIGEST: "acme"}
            assert scene.ready
            assert scene.failures == {"refused": 1}
            [standing] = scene.follower.standings
            assert standing.in_sync
            assert not standing.up_to_date

    in_loop(body)


def test_a_file_that_is_gone_changes_nothing(scene: Scene) -> None:
    async def body() -> None:
        async with scene.haproxy:
            await scene.follower.sync_once()
            scene.file.unlink()
            await scene.follower.sync_once()
            assert scene.haproxy.held == {DIGEST: "acme"}
            assert scene.ready

    in_loop(body)


def test_before_it_was_in_sync_once_the_agent_is_not_ready(scene: Scene) -> None:
    async def body() -> None:
        scene.file.write_text("only-a-key\n")
        async with scene.haproxy:
            await scene.follower.sync_once()
            assert not scene.ready

    in_loop(body)


def test_what_haproxy_refuses_is_tried_again(scene: Scene) -> None:
    async def body() -> None:
        async with scene.haproxy:
            await scene.follower.sync_once()
            scene.file.write_text("0123 acme\n")
            scene.haproxy.refusal = {"commit": "'commit map' is out of order."}
            await scene.follower.sync_once()
            assert scene.haproxy.held == {DIGEST: "acme"}
            assert scene.ready
            scene.haproxy.refusal = {}
            scene.now = CHECK_SECONDS
            await scene.follower.sync_once()
            assert scene.haproxy.held == {"0123": "acme"}

    in_loop(body)


def test_what_haproxy_lost_is_given_back_at_the_next_check(scene: Scene) -> None:
    async def body() -> None:
        async with scene.haproxy:
            await scene.follower.sync_once()
            scene.haproxy.held = {}
            await scene.follower.sync_once()
            assert scene.haproxy.held == {}, "the map is not read at every sync"
            scene.now = CHECK_SECONDS
            await scene.follower.sync_once()
            assert scene.haproxy.held == {DIGEST: "acme"}

    in_loop(body)


def test_the_log_has_eight_digits_of_a_digest_and_no_more(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with scene.haproxy:
            await scene.follower.sync_once()
            scene.file.write_text(f"{'cd' * 32} acme\n")
            scene.haproxy.refusal = {"add": f"cannot add {'cd' * 32}"}
            await scene.follower.sync_once()
            scene.haproxy.refusal = {}
            scene.now = CHECK_SECONDS
            await scene.follower.sync_once()

    with caplog.at_level(logging.INFO):
        in_loop(body)
    assert "tenants.map: 1 entry: +cdcdcdcd -abababab" in caplog.text
    assert "cd" * 5 not in caplog.text
    assert "ab" * 5 not in caplog.text


def test_probes_and_metrics_tell_how_it_stands(scene: Scene) -> None:
    def get(url: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as response:  # noqa: S310 - loopback
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    async def one_look() -> None:
        async with scene.haproxy:
            await scene.follower.sync_once()

    with serving(create_app(scene.follower, servers.WorkerDiscovery(scene.api), scene.api)) as url:
        assert get(f"{url}/healthz") == (200, "ok\n")
        assert get(f"{url}/readyz") == (503, "not in sync: tenants.map\n")
        in_loop(one_look)
        status, told = get(f"{url}/readyz")
        assert status == 503
        assert told.startswith("HAProxy cannot be reached")
        text = get(f"{url}/metrics")[1]
        assert 'proofgate_haproxy_sidecar_entries{target="tenants.map"} 1\n' in text
        assert 'proofgate_haproxy_sidecar_in_sync{target="tenants.map"} 1\n' in text
        assert 'proofgate_haproxy_sidecar_updates_total{target="tenants.map"} 0\n' in text
        assert get(f"{url}/else")[0] == 404


@pytest.mark.parametrize(
    ("up", "told"),
    [
        ({}, "no worker is up"),
        ({"worker-0": 2}, "HAProxy has not checked these workers yet: worker-0"),
        ({"worker-0": 3, "worker-1": 2}, "HAProxy has not checked these workers yet: worker-1"),
        ({"worker-0": 3}, None),
        ({"worker-0": 3, "worker-1": 3}, None),
    ],
)
def test_haproxy_is_ready_when_every_worker_that_it_holds_for_up_has_passed_a_check(
    scene: Scene, up: dict[str, int], told: str | None
) -> None:
    async def body() -> None:
        scene.haproxy.weights = {"worker-0": 100, "worker-1": 100}
        scene.haproxy.up = up
        async with scene.haproxy:
            assert await servers.WorkerDiscovery(scene.api).not_ready_reason() == told

    in_loop(body)


def test_haproxy_that_has_found_its_workers_stays_ready_without_them_until_it_is_started_anew(
    scene: Scene,
) -> None:
    async def body() -> None:
        scene.haproxy.weights = {"worker-0": 100}
        scene.haproxy.up = {"worker-0": 3}
        workers = servers.WorkerDiscovery(scene.api)
        async with scene.haproxy:
            assert await workers.not_ready_reason() is None
            scene.haproxy.up = {}
            assert await workers.not_ready_reason() is None
        # A restarted HAProxy has a new socket.
        async with scene.haproxy:
            assert await workers.not_ready_reason() == "no worker is up"

    in_loop(body)


def test_haproxy_that_starts_without_workers_is_ready_once_it_had_the_time_to_find_one(scene: Scene) -> None:
    async def body() -> None:
        now = 1000.0
        scene.haproxy.weights = {"worker-0": 100}
        workers = servers.WorkerDiscovery(scene.api, lambda: now)
        async with scene.haproxy:
            assert await workers.not_ready_reason() == "no worker is up"
            now += servers.DISCOVERY_SECONDS - 1
            assert await workers.not_ready_reason() == "no worker is up"
            # The agent waits without a limit for a worker that HAProxy treats as up but has not checked yet.
            scene.haproxy.up = {"worker-0": 2}
            now += 60
            assert await workers.not_ready_reason() == "HAProxy has not checked these workers yet: worker-0"
            scene.haproxy.up = {}
            assert await workers.not_ready_reason() is None
        async with scene.haproxy:
            assert await workers.not_ready_reason() == "no worker is up"

    in_loop(body)


def test_a_socket_that_is_not_there_is_named(short_path: Path) -> None:
    async def body() -> None:
        with pytest.raises(UnreachableError, match=r"admin\.sock: No such file or directory"):
            await RuntimeApi(short_path / "admin.sock").send_command("show map")

    in_loop(body)


def test_a_haproxy_that_was_started_anew_is_asked_at_once(scene: Scene) -> None:
    async def body() -> None:
        lives = iter(["first", "first", "second"])
        target = MapFile(scene.file, RuntimeApi(scene.haproxy.path))
        follower = SyncLoop([target], lambda: scene.now, lambda: next(lives))
        async with scene.haproxy:
            await follower.sync_once()
            scene.haproxy.held = {}
            await follower.sync_once()
            assert scene.haproxy.held == {}
            await follower.sync_once()
            assert scene.haproxy.held == {DIGEST: "acme"}

    in_loop(body)


def test_each_start_of_haproxy_is_another_life(short_path: Path) -> None:
    api = RuntimeApi(short_path / "admin.sock")
    assert api.instance_id() is None

    async def one() -> object:
        async with RuntimeDouble(short_path / "admin.sock"):
            life = api.instance_id()
            assert life == api.instance_id()
            return life

    first, second = asyncio.run(one()), asyncio.run(one())
    assert first is not None
    assert first != second
    assert api.instance_id() is None


# --- Weights


def weights_in(folder: Path, text: str) -> tuple[WeightsFile, RuntimeDouble]:
    file = folder / "weights.map"
    file.write_text(text)
    haproxy = RuntimeDouble(folder / "admin.sock")
    haproxy.weights = {"worker-0": 100, "worker-1": 67, "worker-2": 100}
    return WeightsFile(file, RuntimeApi(haproxy.path)), haproxy


def test_what_a_file_of_weights_does_not_name_has_the_configured_weight(short_path: Path) -> None:
    async def body() -> None:
        target, haproxy = weights_in(short_path, "worker-2 34\nworker-9 34\n")
        async with haproxy:
            content = target.read()
            assert content is not None
            assert await target.reconcile(content) == "worker-1=100 worker-2=34"
            assert haproxy.weights == {"worker-0": 100, "worker-1": 100, "worker-2": 34}
            asked = len(haproxy.questions)
            assert await target.reconcile(content) is None
            assert haproxy.questions[asked:] == ["show servers state workers"], (
                "equal weights are not written"
            )

    in_loop(body)


@pytest.mark.parametrize("text", ["worker-1\n", "worker-1 many\n", "worker-1 257\n", "worker-1 -1\n"])
def test_what_is_no_weight_never_reaches_haproxy(short_path: Path, text: str) -> None:
    async def body() -> None:
        target, haproxy = weights_in(short_path, text)
        async with haproxy:
            with pytest.raises(RefusedError):
                await target.reconcile(text)
            assert haproxy.questions == []

    in_loop(body)


@pytest.mark.parametrize(
    ("question", "answer"),
    [("show", "Unknown command"), ("set", "No such server."), ("set", "")],
    ids=["no state", "refused", "not done"],
)
def test_weights_that_haproxy_does_not_take_on_are_refused(
    short_path: Path, question: str, answer: str
) -> None:
    async def body() -> None:
        target, haproxy = weights_in(short_path, "worker-2 34\n")
        haproxy.refusal = {question: answer}
        async with haproxy:
            with pytest.raises(RefusedError):
                await target.reconcile("worker-2 34\n")

    in_loop(body)


# --- The certificate


def certificate_in(folder: Path) -> tuple[CertificateFile, Path]:
    chain, key = certificates.write_identity(folder)
    path = folder / "tls.pem"
    chain.replace(path)
    key.replace(folder / "tls.pem.key")
    return CertificateFile(path, RuntimeApi(folder / "admin.sock")), path


@pytest.mark.parametrize("spoilt", ["", "no certificate\n", "; shutdown\n", "A" * 40_000])
def test_what_is_no_certificate_never_reaches_haproxy(short_path: Path, spoilt: str) -> None:
    async def body() -> None:
        target, path = certificate_in(short_path)
        path.write_text(spoilt)
        async with RuntimeDouble(short_path / "admin.sock") as haproxy:
            content = target.read()
            assert content is not None
            with pytest.raises(RefusedError):
                await target.reconcile(content)
            assert not any(question.startswith("set") for question in haproxy.questions)

    in_loop(body)


def test_a_certificate_without_a_key_cannot_be_read(short_path: Path) -> None:
    target, path = certificate_in(short_path)
    path.with_name("tls.pem.key").unlink()
    with pytest.raises(RefusedError, match="its key cannot be read: No such file"):
        target.read()


def test_a_map_is_read_as_haproxy_reads_it() -> None:
    assert entries_file.parse_entries("# a comment\n\na b\n\tc \t d \r\n") == {"a": "b", "c": "d"}
