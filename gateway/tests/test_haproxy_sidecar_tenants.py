"""Changing tenants in shards: HAProxy's maps get only the differences; an invalid shard affects no other."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from runtime_double import RuntimeDouble

from proofgate.haproxy_sidecar.follower import SyncLoop
from proofgate.haproxy_sidecar.map_sources import _contains_entry
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
from proofgate.haproxy_sidecar.target import CHECK_SECONDS
from proofgate.haproxy_sidecar.tenant_map import MapFile

TENANT = "team-a/chat"


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class Scene:
    """The map of keys from a file and from shards, a stand-in for HAProxy, and fixed clocks."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "tenants.map"
        self.file.write_text(f"{digest('acme')} acme\n")
        self.shards = folder / "shards"
        self.haproxy = RuntimeDouble(folder / "admin.sock", {digest("acme"): "acme"})
        self.haproxy.map = self.file
        self.now = 0.0
        self.target = MapFile(self.file, RuntimeApi(self.haproxy.path), self.shards, lambda: self.now)
        self.follower = SyncLoop([self.target], lambda: self.now)
        self.keys: dict[str, str] = {}

    def give(self, key: str, tenant: str | None = TENANT) -> None:
        """Gives a key to a tenant, or removes the key."""
        self.keys.pop(digest(key), None)
        if tenant is not None:
            self.keys[digest(key)] = tenant
        self.write(int(digest(key)[:2], 16) >> 3)

    def write(self, number: int, text: str | None = None, file: str = "keys") -> None:
        """Replaces a file of a shard as the kubelet does."""
        lines = [
            f"{key} {tenant} ci\n"
            for key, tenant in sorted(self.keys.items())
            if int(key[:2], 16) >> 3 == number
        ]
        folder = self.shards / f"{number:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "new").write_text("".join(lines) if text is None else text)
        (folder / "new").replace(folder / file)

    async def look(self) -> list[str]:
        """Runs one sync, and returns the commands that it sent to HAProxy, except `show map`."""
        self.haproxy.questions.clear()
        await self.follower.sync_once()
        return [question for question in self.haproxy.questions if question != "show map"]

    @property
    def wanted(self) -> dict[str, str]:
        return {**self.keys, digest("acme"): "acme"}


@pytest.fixture
def scene(short_path: Path) -> Scene:
    return Scene(short_path)


def in_loop(scene: Scene, body: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with scene.haproxy:
            await body()

    asyncio.run(run())


def test_a_tenant_of_a_shard_is_found_by_its_name_for_tokens_that_name_it(scene: Scene) -> None:
    number = hashlib.sha256(TENANT.encode()).digest()[0] >> 3
    scene.give("key")

    async def body() -> None:
        scene.write(number, f"{TENANT} gold\n", "tenants")
        await scene.look()
        assert scene.haproxy.held == {**scene.wanted, TENANT: TENANT}
        scene.write(number, "", "tenants")
        await scene.look()
        assert scene.haproxy.held == scene.wanted

    in_loop(scene, body)


def test_a_map_gets_the_entries_of_its_file_and_of_all_shards_at_once(scene: Scene) -> None:
    for number in range(300):
        scene.give(f"key-{number}")

    async def body() -> None:
        asked = [question.split()[0] for question in await scene.look()]
        assert scene.haproxy.held == scene.wanted
        assert asked[:2] == ["show", "prepare"], "the agent prepares a new version"
        assert asked[-1] == "commit", "the new version replaces the old one atomically"
        assert scene.target.gauges()["entries"] == 301

    in_loop(scene, body)


def test_of_a_changed_shard_only_the_entries_that_differ_are_sent(scene: Scene) -> None:
    for number in range(300):
        scene.give(f"key-{number}")

    async def body() -> None:
        await scene.look()
        scene.give("new")
        path = scene.file
        assert await scene.look() == [f"add map {path} <<"]
        assert scene.haproxy.held == scene.wanted
        scene.give("new", "team-b/chat")
        assert await scene.look() == [f"set map {path} {digest('new')} team-b/chat"]
        scene.give("new", None)
        assert await scene.look() == [f"del map {path} {digest('new')}"]
        assert scene.haproxy.held == scene.wanted
        assert scene.follower.standings[0].updates == 4

    in_loop(scene, body)


def test_a_check_asks_haproxy_for_a_word_and_not_for_every_entry(scene: Scene) -> None:
    scene.give("one")

    async def body() -> None:
        await scene.look()
        scene.now += CHECK_SECONDS
        assert await scene.look() == []
        assert scene.haproxy.questions == ["show map"] * 2
        scene.haproxy.held.pop(digest("one"))
        scene.now += CHECK_SECONDS
        assert "prepare" in " ".join(await scene.look())
        assert scene.haproxy.held == scene.wanted
        scene.now += 300
        assert await scene.look() == [f"show map {scene.file}"], "the agent reads the whole map periodically"

    in_loop(scene, body)


@pytest.mark.parametrize(
    "bad",
    [
        "x\n",
        "00" * 32 + " team-a/chat\n",
        "00" * 32 + " chat ci\n",
        "00" * 32 + " team-a/chat ci",
        ("00" * 32 + " team-a/chat ci\n") * 2,
        "00" * 32 + " team-a/ch\u00e4t ci\n",
        "00" * 32 + " team-a/chat ci; del map x y\n",
        "00" * 32 + " team-a/chat ci not_after=2027-01-31T00:00:00Z\n",
        "00" * 32 + " team-a/chat ci not_after=01\n",
    ],
    ids=[
        "no line",
        "no key's name",
        "no namespace",
        "no end",
        "twice",
        "not ASCII",
        "a command",
        "a date",
        "a zero before a number",
    ],
)
def test_a_shard_that_is_bad_keeps_its_entries_and_the_others_go_on(scene: Scene, bad: str) -> None:
    scene.keys["00" * 31 + "07"] = TENANT
    scene.write(0)

    async def body() -> None:
        await scene.look()
        before = dict(scene.haproxy.held)
        scene.write(0, bad)
        await scene.look()
        assert scene.haproxy.held == before
        failures = scene.follower.standings[0].failures
        assert dict(failures) == {"refused": 1}
        assert scene.target.gauges()["refused_shards"] == 1
        assert scene.follower.out_of_sync() == []
        scene.keys["ff" * 32] = TENANT
        scene.write(31)
        await scene.look()
        assert scene.haproxy.held == scene.wanted
        assert dict(failures) == {"refused": 1}, "a lasting failure is counted once"
        scene.write(0)
        await scene.look()
        assert scene.target.gauges()["refused_shards"] == 0

    in_loop(scene, body)


def test_a_key_that_moves_to_another_shard_is_in_the_map_all_the_time(scene: Scene) -> None:
    line = "00" * 32 + f" {TENANT} ci\n"
    for name in (f"key-{number}" for number in range(300)):
        if int(digest(name)[:2], 16) >> 3 not in (0, 31):
            scene.give(name)
    scene.write(0, line)
    scene.keys["00" * 32] = TENANT

    async def body() -> None:
        await scene.look()
        assert scene.haproxy.held == scene.wanted
        scene.write(31, line)
        await scene.look()
        assert scene.haproxy.held == scene.wanted
        scene.write(0, "")
        await scene.look()
        assert scene.haproxy.held == scene.wanted
        scene.write(0, line)
        scene.write(31, "")
        assert await scene.look() == [], "a move within one sync changes nothing"
        assert scene.follower.standings[0].failures == {}

    in_loop(scene, body)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_an_entry_is_found_among_sorted_lines(count: int) -> None:
    names = sorted(f"team-{number}/chat" for number in range(count))
    content = "".join(f"{name} gold\n" for name in names).encode()
    assert all(_contains_entry(content, name.encode()) for name in names)
    others = ["a", "team-1/cha", "team-1/chat0", "team-", "z", "gold"]
    assert not any(_contains_entry(content, name.encode()) for name in others)


def test_a_key_that_ends_is_routed_as_any_other(scene: Scene) -> None:
    scene.keys["00" * 32] = TENANT
    scene.write(0, "00" * 32 + f" {TENANT} ci not_after=1801353600\n")

    async def body() -> None:
        await scene.look()
        assert scene.haproxy.held == scene.wanted
        assert scene.target.gauges()["refused_shards"] == 0

    in_loop(scene, body)


def test_an_entry_of_the_maps_own_file_counts_before_one_of_a_shard(scene: Scene) -> None:
    scene.give("acme", "team-a/thief")

    async def body() -> None:
        await scene.look()
        assert scene.haproxy.held == {digest("acme"): "acme"}
        scene.give("acme", "team-b/thief")
        assert await scene.look() == []
        scene.file.write_text("")
        await scene.look()
        assert scene.haproxy.held == {digest("acme"): "team-b/thief"}

    in_loop(scene, body)


def test_what_haproxy_refuses_of_a_difference_is_made_good_as_a_whole(scene: Scene) -> None:
    scene.give("one")

    async def body() -> None:
        await scene.look()
        scene.give("two")
        scene.haproxy.refusal = {"add map /": "out of memory"}
        await scene.look()
        assert dict(scene.follower.standings[0].failures) == {"refused": 1}
        scene.haproxy.refusal = {}
        scene.now += CHECK_SECONDS
        await scene.look()
        assert scene.haproxy.held == scene.wanted

    in_loop(scene, body)


def test_owners_stand_in_the_shard_of_their_names_digest(short_path: Path) -> None:
    file = short_path / "owners.map"
    file.write_text("acme worker-0\n")
    number = hashlib.sha256(TENANT.encode()).digest()[0] >> 3
    (short_path / f"{number:02}").mkdir()
    (short_path / f"{number:02}" / "owners").write_text(f"{TENANT} worker-2.worker-0\n")
    haproxy = RuntimeDouble(short_path / "admin.sock")
    haproxy.map = file
    target = MapFile(file, RuntimeApi(haproxy.path), short_path)

    async def run() -> None:
        async with haproxy:
            await SyncLoop([target]).sync_once()

    asyncio.run(run())
    assert haproxy.held == {"acme": "worker-0", TENANT: "worker-2.worker-0"}


def kept_scene(folder: Path, kept: Path) -> tuple[Scene, MapFile]:
    """A scene whose agent also writes the file from which HAProxy starts."""
    scene = Scene(folder)
    scene.haproxy.map = kept
    target = MapFile(scene.file, RuntimeApi(scene.haproxy.path), scene.shards, lambda: scene.now, kept)
    scene.follower = SyncLoop([target], lambda: scene.now)
    return scene, target


def lines(entries: dict[str, str]) -> str:
    return "".join(f"{key} {tenant}\n" for key, tenant in entries.items())


def test_a_map_that_cannot_be_kept_is_told_and_haproxy_has_it(short_path: Path) -> None:
    kept = short_path / "kept" / "tenants.map"
    scene, target = kept_scene(short_path, kept)
    scene.give("key")

    async def body() -> None:
        await scene.look()
        assert scene.haproxy.held == scene.wanted
        assert scene.follower.out_of_sync() == []
        assert target.errors() == [f"{kept} cannot be written: No such file or directory"]
        kept.parent.mkdir()
        scene.now += 1
        await scene.look()
        assert target.errors() == []
        assert kept.read_text() == lines(scene.wanted)

    in_loop(scene, body)


def test_the_kept_map_is_written_once_a_second_at_most_and_only_when_something_changed(
    short_path: Path,
) -> None:
    kept = short_path / "kept.map"
    scene, _ = kept_scene(short_path, kept)
    scene.give("first")

    async def body() -> None:
        await scene.look()
        before, first = lines(scene.wanted), kept.stat().st_ino
        assert kept.read_text() == before
        scene.give("second")
        scene.now += 0.5
        await scene.look()
        assert scene.haproxy.held == scene.wanted, "a running HAProxy does not wait"
        assert kept.read_text() == before
        scene.now += 0.5
        await scene.look()
        second = kept.stat().st_ino
        assert sorted(kept.read_text().splitlines()) == sorted(lines(scene.wanted).splitlines())
        assert second != first, "the file is replaced, not overwritten"
        scene.now += CHECK_SECONDS
        await scene.look()
        assert kept.stat().st_ino == second

    in_loop(scene, body)


def test_a_map_that_is_refused_leaves_the_kept_one_as_it_is(short_path: Path) -> None:
    kept = short_path / "kept.map"
    scene, _ = kept_scene(short_path, kept)
    scene.give("key")

    async def body() -> None:
        await scene.look()
        scene.file.write_text("one two three\n")
        scene.now += CHECK_SECONDS
        await scene.look()
        assert kept.read_text() == lines(scene.wanted)

    in_loop(scene, body)
