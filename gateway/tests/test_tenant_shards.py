"""Tenants in shards: the files read, the tenants that the worker receives, and reports on invalid shards."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator

import pytest
from conftest import ConfigDirectory, attached, eventually, started
from failures import failure
from faulty_worker import Worker

from proofgate import _core, reload, tenant_shards
from proofgate.config import load
from proofgate.reload import Reloader
from proofgate.tenant_shards import TenantShards

KEY = "00" * 32 + " team-a/chat ci\n"


class Subject:
    """A worker that follows shards, and its files."""

    def __init__(self, directory: ConfigDirectory, worker: Worker, reloader: Reloader) -> None:
        self.directory = directory
        self.folder = directory.path / "shards"
        self.worker = worker
        self.reloader = reloader

    def write(self, number: int, name: str, text: str) -> None:
        """Replaces a file as the kubelet does."""
        folder = self.folder / f"{number:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "new").write_text(text)
        (folder / "new").replace(folder / name)

    @property
    def changes(self) -> list[list[int]]:
        return self.worker.shard_changes


@pytest.fixture
def subject(config_directory: ConfigDirectory) -> Iterator[Subject]:
    config_directory.append("tenantShards: {directory: shards}\n")
    config = load(config_directory.file)
    with started(config) as worker, attached(worker) as typed:
        shards = TenantShards(typed, config.tenant_shards)
        shards.apply_changes()
        worker.shard_changes.clear()
        yield Subject(config_directory, worker, Reloader(typed, config, 0, lambda _: None, shards))


def test_at_the_start_every_shard_is_handed_over_at_once(config_directory: ConfigDirectory) -> None:
    config_directory.append("tenantShards: {directory: shards}\n")
    (config_directory.path / "shards" / "00").mkdir(parents=True)
    (config_directory.path / "shards" / "00" / "keys").write_text(KEY)
    config = load(config_directory.file)
    with started(config) as worker, attached(worker) as typed:
        shards = TenantShards(typed, config.tenant_shards)
        assert shards.apply_changes()
        assert worker.shard_changes == [list(range(32))]
        assert worker.tenant_shards[0] == (KEY.encode(), b"")
        assert worker.tenant_shards[31] == (b"", b""), "a missing shard is empty"
        nothing = {"refused": [], "well_known": 0, "first_well_known": []}
        assert shards.status() == {"tenants": 0, "keys": 1, **nothing}
        assert not shards.apply_changes()


def test_only_a_shard_that_changed_is_read_and_several_are_one_change(subject: Subject) -> None:
    digest = subject.worker.config_digest
    subject.write(0, "keys", KEY)
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.changes == [[0]]
    assert subject.worker.config_digest != digest
    assert subject.reloader.status()["config_digest"] == subject.worker.config_digest
    subject.write(3, "tenants", "a/b gold\n")
    subject.write(7, "tenants", "a/c gold\n")
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.changes == [[0], [3, 7]]
    assert subject.worker.reloads == 0, "the configuration is not reloaded"


def test_files_that_were_renewed_and_hold_the_same_are_no_change(subject: Subject) -> None:
    subject.write(0, "keys", KEY)
    asyncio.run(subject.reloader.apply_tenant_changes())
    subject.write(0, "keys", KEY)
    subject.write(1, "keys", "")
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.changes == [[0]]


def test_a_look_reads_no_file(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise AssertionError("a file was read")

    monkeypatch.setattr(tenant_shards, "read_bounded", refuse)
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.changes == []


def test_a_mount_whose_link_moved_on_is_followed(subject: Subject) -> None:
    for version, text in (("1", ""), ("2", KEY)):
        (subject.folder / version / "05").mkdir(parents=True)
        (subject.folder / version / "05" / "keys").write_text(text)
    (subject.folder / "..data").symlink_to("1")
    (subject.folder / "05").symlink_to("..data/05")
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.changes == []
    (subject.folder / "next").symlink_to("2")
    os.replace(subject.folder / "next", subject.folder / "..data")  # noqa: PTH105 - as the kubelet does
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.changes == [[5]]


def test_a_refused_shard_is_told_by_its_place_once_and_the_others_go_on(
    subject: Subject, caplog: pytest.LogCaptureFixture
) -> None:
    subject.write(2, "keys", "bad line of a tenant\n")
    subject.write(4, "keys", KEY)
    asyncio.run(subject.reloader.apply_tenant_changes())
    status = subject.reloader.status()["tenant_shards"]
    assert status["refused"] == [{"shard": 2, "file": "keys", "line": 1, "problem": "it is malformed"}]
    assert subject.worker.tenant_shards[2] == (b"", b"")
    assert subject.worker.tenant_shards[4][0] == KEY.encode()
    assert (
        "tenant shard 02 is refused, its previous content stays in use: line 1 of keys: it is malformed"
    ) in caplog.text
    caplog.clear()
    subject.write(2, "keys", "bad line of a tenant\n")
    subject.write(6, "tenants", "a/b gold\n")
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.reloader.status()["tenant_shards"]["refused"] == status["refused"]
    assert "is refused, its previous content" not in caplog.text
    subject.write(2, "keys", "")
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.reloader.status()["tenant_shards"]["refused"] == []


def test_a_key_that_everybody_can_guess_is_told_by_its_tenant_and_name_once(
    subject: Subject, caplog: pytest.LogCaptureFixture
) -> None:
    guessed = f"{hashlib.sha256(b'test').hexdigest()} team-a/chat ci\n"
    subject.write(2, "keys", guessed)
    subject.write(4, "keys", KEY)
    asyncio.run(subject.reloader.apply_tenant_changes())
    status = subject.reloader.status()["tenant_shards"]
    assert (status["keys"], status["well_known"]) == (1, 1)
    assert status["first_well_known"] == [{"tenant": "team-a/chat", "key": "ci"}]
    assert caplog.text.count("ci of team-a/chat") == 1
    assert guessed[:16] not in caplog.text
    caplog.clear()
    subject.write(6, "tenants", "a/b gold\n")
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert "team-a/chat" not in caplog.text, "the key was reported earlier"
    subject.write(2, "keys", "")
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.reloader.status()["tenant_shards"]["well_known"] == 0


def test_a_file_that_cannot_be_read_keeps_its_shard(subject: Subject) -> None:
    subject.write(0, "keys", KEY)
    asyncio.run(subject.reloader.apply_tenant_changes())
    (subject.folder / "00" / "keys").unlink()
    (subject.folder / "00" / "keys").mkdir()
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.worker.tenant_shards[0] == (KEY.encode(), b"")
    (refused,) = subject.reloader.status()["tenant_shards"]["refused"]
    assert refused["problem"] == "it cannot be read: Is a directory"


def test_what_the_worker_had_no_time_for_is_handed_over_again(subject: Subject) -> None:
    subject.write(0, "keys", KEY)
    hand_over = subject.worker.set_tenant_shards

    def busy(_: list[tuple[int, bytes, bytes]]) -> str:
        raise failure(_core.ProofgateError, "the data plane is busy", "busy")

    subject.worker.set_tenant_shards = busy  # type: ignore[assignment,method-assign]
    with pytest.raises(_core.ProofgateError):
        asyncio.run(subject.reloader.apply_tenant_changes())
    subject.worker.set_tenant_shards = hand_over  # type: ignore[method-assign]
    asyncio.run(subject.reloader.apply_tenant_changes())
    assert subject.changes == [[0]]


def test_shards_are_watched_and_a_bad_configuration_does_not_hold_them_back(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(reload, "DEBOUNCE_SECONDS", 0.01)
    subject.directory.replace("provider: openai", "provider: azure")

    async def body() -> None:
        watching = asyncio.create_task(subject.reloader.watch())
        subject.write(9, "keys", KEY)
        assert await asyncio.to_thread(eventually, lambda: subject.changes == [[9]])
        watching.cancel()

    asyncio.run(body())


def test_without_shards_in_the_configuration_there_are_none(subject: Subject) -> None:
    subject.write(0, "keys", KEY)
    asyncio.run(subject.reloader.apply_tenant_changes())
    subject.directory.replace("tenantShards: {directory: shards}\n", "")
    assert asyncio.run(subject.reloader.reload()).result == "applied"
    assert subject.reloader.status()["tenant_shards"] is None
