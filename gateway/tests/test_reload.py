"""Hot reload: accepted and refused changes; after a refusal, the worker keeps its configuration."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import write_identity
from conftest import PATIENCE_SECONDS, ConfigDirectory, attached, eventually, started
from failures import failure
from faulty_worker import Worker
from signing import LEDGER, Key

from proofgate import _core, profiling, reload
from proofgate.config import Config, load
from proofgate.config.files import current_digests
from proofgate.reload import Reloader, ReloadOutcome


class Subject:
    """A reloader with its worker, and the configurations that took effect."""

    def __init__(self, directory: ConfigDirectory, worker: Worker, reloader: Reloader) -> None:
        self.directory = directory
        self.worker = worker
        self.reloader = reloader
        self.applied: list[Config] = []

    def reload(self) -> ReloadOutcome:
        return asyncio.run(self.reloader.reload())

    def codes(self) -> list[str]:
        outcome = self.reload()
        assert outcome.result == "refused"
        assert outcome.error is not None
        return [problem.code for problem in outcome.error.problems]

    @property
    def core_digest(self) -> str:
        digest: str = self.worker.config_digest
        return digest


@pytest.fixture
def subject(config_directory: ConfigDirectory) -> Iterator[Subject]:
    config = load(config_directory.file)
    with started(config, 4) as worker, attached(worker) as typed:
        applied: list[Config] = []
        subject = Subject(config_directory, worker, Reloader(typed, config, 4, applied.append))
        subject.applied = applied
        yield subject


def test_a_changed_configuration_is_applied_whole(subject: Subject) -> None:
    subject.directory.replace("models: [gpt-4o-mini]", "models: [gpt-4o-mini, fast]")
    outcome = subject.reload()
    new = load(subject.directory.file)
    assert (outcome.result, outcome.digest) == ("applied", new.digest())
    assert subject.core_digest == new.digest()
    assert subject.worker.settings["ledger"]["shard"] == 4
    assert subject.applied == [new]
    assert subject.reloader.config == new


def test_a_configuration_that_means_the_same_changes_nothing(subject: Subject) -> None:
    subject.directory.append("# a comment\n")
    assert subject.reload().result == "unchanged"
    assert subject.reload().result == "unchanged"
    assert (subject.worker.reloads, subject.applied) == (0, [])


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("openai-key", "sk-rotated"),
        ("admin-token", "another-token-of-the-admin"),
        ("globex-keys", _core.hash_api_key("new-key")),
    ],
)
def test_a_secret_that_was_rotated_is_a_change(subject: Subject, file: str, content: str) -> None:
    subject.directory.write(file, content)
    assert subject.reload().result == "applied"


def test_a_bad_configuration_is_refused_and_every_problem_is_named(
    subject: Subject, caplog: pytest.LogCaptureFixture
) -> None:
    before = subject.core_digest
    subject.directory.replace("provider: openai", "provider: azure")
    subject.directory.replace("models: [gpt-4o-mini]", "models: [gpt-5]")
    assert subject.codes() == ["config_unknown_provider", "config_unknown_model"]
    assert (subject.core_digest, subject.applied) == (before, [])
    file = subject.directory.file
    assert f"{file}:19: models[0].provider: no provider is named azure" in caplog.text
    assert f"{file}:26: tenants[0].models[0]: no model is named gpt-5" in caplog.text


def test_the_status_shows_where_a_problem_is_and_not_what_it_says(subject: Subject) -> None:
    assert subject.reloader.status()["last_reload_error"] is None
    loaded_at = subject.reloader.status()["config_loaded_at"]
    subject.directory.replace("models: [gpt-4o-mini]", "models: [my-secret-model]")
    subject.reload()
    status = subject.reloader.status()
    assert status["config_digest"] == subject.core_digest
    assert status["config_loaded_at"] == loaded_at
    assert status["last_reload_error"]["code"] == "config_invalid"
    assert status["last_reload_error"]["problems"] == [
        {
            "code": "config_unknown_model",
            "file": str(subject.directory.file),
            "line": 26,
            "field": "tenants[0].models[0]",
        }
    ]
    assert "my-secret-model" not in str(status)


def test_an_error_is_over_once_the_configuration_is_good_again(subject: Subject) -> None:
    subject.directory.replace("name: fast", "nam: fast")
    assert subject.reload().result == "refused"
    subject.directory.replace("nam: fast", "name: fast")
    assert subject.reload().result == "unchanged"
    assert subject.reloader.status()["last_reload_error"] is None


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("durability: Synced", "durability: Written", "ledger.durability"),
        (
            "checkpointIntervalSeconds: 0.5",
            "checkpointIntervalSeconds: 2",
            "ledger.checkpointIntervalSeconds",
        ),
        ("directory: ledger", "directory: .", "ledger.directory"),
        ("signingKeyFile: signing-key", "signingKeyFile: other-key", "ledger.signingKeyFile"),
        ("listen: 127.0.0.1:0", "listen: 127.0.0.2:0", "listen"),
        (
            "listen: 127.0.0.1:0",
            "listen: 127.0.0.1:0\nproxyProtocol: {routingKeyFile: other-key}",
            "proxyProtocol",
        ),
        ("admin:\n  listen: 127.0.0.1:0", "admin:\n  listen: 127.0.0.2:0", "admin.listen"),
        ("timeouts:", "limits: {connections: 8}\ntimeouts:", "limits.connections"),
    ],
)
def test_what_is_fixed_while_a_worker_runs_is_named(subject: Subject, old: str, new: str, field: str) -> None:
    subject.directory.write("other-key", Key(LEDGER.name, bytes([8]) * 32).signing)
    before = subject.core_digest
    subject.directory.replace(old, new)
    outcome = subject.reload()
    assert outcome.error is not None
    (problem,) = outcome.error.problems
    assert (problem.code, problem.line is not None) == ("config_needs_restart", True)
    assert f": {field}: it cannot change while a worker runs: restart the worker" in str(outcome.error)
    assert outcome.as_json()["error"]["code"] == "config_needs_restart"
    assert subject.core_digest == before


def test_a_signing_key_that_only_moved_is_no_change(subject: Subject) -> None:
    subject.directory.write("moved", (subject.directory.path / "signing-key").read_text())
    subject.directory.replace("signingKeyFile: signing-key", "signingKeyFile: moved")
    assert subject.reload().result == "applied"


def test_what_the_core_refuses_leaves_the_worker_as_it_was(subject: Subject) -> None:
    before = subject.core_digest
    subject.directory.append("cors: {allowedOrigins: ['*']}\n")
    (subject.directory.ledger / "refuse-config").write_text("there are too many rules")
    assert subject.codes() == ["config_refused"]
    assert subject.core_digest == before


@pytest.mark.parametrize(
    "defect", ["unknown: field\n", "jwt: {issuers: [{issuer: a, audiences: [b], jwksFile: jwks.json}]}\n"]
)
def test_a_key_that_is_taken_away_is_gone_also_while_the_configuration_is_refused(
    subject: Subject, defect: str
) -> None:
    # The schema refuses the first defect, the core the second.
    subject.directory.write("jwks.json", '{"keys": 1}')
    subject.directory.append(defect)
    before = subject.reloader.config
    assert subject.reload().result == "refused"
    assert subject.applied == []
    subject.directory.write("globex-keys", _core.hash_api_key("another-key"))
    outcome = subject.reload()
    assert outcome.result == "refused"
    (applied,) = subject.applied
    assert applied.tenant_keys != before.tenant_keys
    assert applied.settings == before.settings
    assert subject.reloader.config == applied
    status = subject.reloader.status()
    assert status["last_reload_error"] is not None
    assert status["config_digest"] == subject.core_digest
    # The next check finds no changed file.
    assert current_digests(subject.reloader._files) == subject.reloader._files
    assert subject.reload().result == "refused"
    assert len(subject.applied) == 1


def test_the_status_has_the_digest_of_the_file_in_force(subject: Subject) -> None:
    first = subject.reloader.status()["config_file_digest"]
    assert first == hashlib.sha256(subject.directory.file.read_bytes()).hexdigest()
    subject.directory.append("unknown: field\n")
    subject.reload()
    assert subject.reloader.status()["config_file_digest"] == first


def test_a_key_set_that_the_core_refuses_is_noticed_before_anything_changes(subject: Subject) -> None:
    before = subject.core_digest
    subject.directory.write("jwks.json", '{"keys": 1}')
    subject.directory.append("jwt: {issuers: [{issuer: a, audiences: [b], jwksFile: jwks.json}]}\n")
    assert subject.codes() == ["config_bad_key_set"]
    assert subject.core_digest == before


def test_a_switch_that_was_turned_by_hand_survives_a_reload(subject: Subject) -> None:
    profiling.set_enabled(True)
    subject.directory.append("cors: {allowedOrigins: ['*']}\n")
    assert subject.reload().result == "applied"
    assert subject.worker.profiling() is True


def test_the_switch_of_the_configuration_is_turned_by_a_reload(subject: Subject) -> None:
    subject.directory.append("profiling: {stages: true}\n")
    assert subject.reload().result == "applied"
    assert subject.worker.profiling() is True
    subject.directory.replace("stages: true", "stages: false")
    assert subject.reload().result == "applied"
    assert subject.worker.profiling() is False


def test_reloads_that_come_together_are_done_one_by_one(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most = 0, 0
    guard = threading.Lock()

    def counted(path: Path) -> Config:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        config = load(path)
        with guard:
            running -= 1
        return config

    monkeypatch.setattr(reload, "load", counted)
    subject.directory.append("cors: {allowedOrigins: ['*']}\n")

    async def together() -> list[str]:
        outcomes = await asyncio.gather(*(subject.reloader.reload() for _ in range(4)))
        return [outcome.result for outcome in outcomes]

    assert asyncio.run(together()) == ["applied", "unchanged", "unchanged", "unchanged"]
    assert (most, subject.worker.reloads) == (1, 1)


def test_the_event_loop_turns_while_a_configuration_is_read(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(path: Path) -> Config:
        reading.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return load(path)

    monkeypatch.setattr(reload, "load", slow)

    async def scenario() -> ReloadOutcome:
        reloading = asyncio.create_task(subject.reloader.reload())
        assert await asyncio.to_thread(reading.wait, PATIENCE_SECONDS)
        # While the reload waits, this line runs, so a probe could run too.
        assert not reloading.done()
        go_on.set()
        return await reloading

    assert asyncio.run(scenario()).result == "unchanged"


def watched(subject: Subject, monkeypatch: pytest.MonkeyPatch, change: Callable[[], bool]) -> None:
    """Runs `change` in a thread while the configuration is watched; `change` returns whether it succeeded."""
    monkeypatch.setattr(reload, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(reload, "DEBOUNCE_SECONDS", 0.01)

    async def scenario() -> bool:
        watching = asyncio.create_task(subject.reloader.watch())
        try:
            return await asyncio.to_thread(change)
        finally:
            watching.cancel()

    assert asyncio.run(scenario())


def test_a_changed_file_is_noticed(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> bool:
        subject.directory.write("openai-key", "sk-rotated")
        return eventually(lambda: subject.worker.reloads == 1)

    watched(subject, monkeypatch, change)


def test_a_mount_that_is_swapped_by_its_symbolic_link_is_noticed(
    config_directory: ConfigDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the kubelet does it: ..data points to a dated directory, and one rename replaces the link.
    mount = config_directory.path / "mount"
    for date, owner in (("..1", "old"), ("..2", "new")):
        (mount / date).mkdir(parents=True)
        (mount / date / "keys").write_text(_core.hash_api_key(owner))
    (mount / "..data").symlink_to("..1")
    (mount / "keys").symlink_to("..data/keys")
    config_directory.replace("keyHashesFile: globex-keys", "keyHashesFile: mount/keys")
    config = load(config_directory.file)
    with started(config) as worker, attached(worker) as typed:
        subject = Subject(config_directory, worker, Reloader(typed, config, 0, lambda _: None))

        def change() -> bool:
            (mount / "..swap").symlink_to("..2")
            os.rename(mount / "..swap", mount / "..data")  # noqa: PTH104 - rename(2) is what is meant
            return eventually(lambda: subject.reloader.config != config)

        watched(subject, monkeypatch, change)
    (key,) = subject.reloader.config.tenant_keys["globex"]
    assert key.hash == _core.hash_api_key("new")


def test_a_file_that_was_missing_is_looked_for(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    subject.directory.replace("apiKeyFile: openai-key", "apiKeyFile: comes-later")
    assert subject.reload().result == "applied"
    (warning,) = subject.reloader.status()["warnings"]
    assert (warning["code"], warning["field"]) == ("config_file_unreadable", "providers[0].auth.apiKeyFile")

    def change() -> bool:
        subject.directory.write("comes-later", "sk-here-it-is")
        return eventually(lambda: subject.worker.reloads == 2)

    watched(subject, monkeypatch, change)


def test_certificates_and_key_sets_are_watched(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    write_identity(subject.directory.path)
    subject.directory.write("jwks.json", '{"keys": []}')
    subject.directory.append(
        "tls: {certificateFile: tls.crt, privateKeyFile: tls.key}\n"
        "jwt: {issuers: [{issuer: a, audiences: [b], jwksFile: jwks.json}]}\n"
    )
    assert subject.reload().result == "applied"

    def change() -> bool:
        write_identity(subject.directory.path)
        renewed = (subject.directory.path / "tls.crt").read_text()
        if not eventually(lambda: subject.worker.settings["tls"]["certificatePem"] == renewed):
            return False
        reloads = subject.worker.reloads
        subject.directory.write("jwks.json", '{"keys": [{"kid": "a"}]}')
        return eventually(lambda: subject.worker.reloads == reloads + 1)

    watched(subject, monkeypatch, change)


def test_nothing_is_reloaded_while_nothing_changes(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = threading.Semaphore(0)
    loads: list[Path] = []

    def counted(paths: Any) -> dict[Path, str | None]:
        looks.release()
        return current_digests(paths)

    monkeypatch.setattr(reload, "current_digests", counted)
    monkeypatch.setattr(reload, "load", loads.append)
    watched(subject, monkeypatch, lambda: all(looks.acquire(timeout=PATIENCE_SECONDS) for _ in range(5)))
    assert loads == []


def test_whoever_asks_does_not_wait_for_the_next_look(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject.directory.write("openai-key", "sk-rotated")
    monkeypatch.setattr(reload, "POLL_SECONDS", 3600.0)

    async def scenario() -> None:
        watching = asyncio.create_task(subject.reloader.watch())
        subject.reloader.request_reload()
        assert await asyncio.to_thread(eventually, lambda: subject.worker.reloads == 1)
        watching.cancel()

    asyncio.run(scenario())


def test_a_change_that_a_busy_worker_withdrew_is_tried_again_and_the_status_names_what_is_in_force(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = subject.reloader.status()["config_digest"]
    take = subject.worker.reload
    refused: list[Any] = []

    def busy(config_json: str) -> None:
        if not refused:
            refused.append("busy")
            raise failure(_core.ProofgateError, "the command was withdrawn", "busy")
        refused.append(subject.reloader.status())
        take(config_json)

    monkeypatch.setattr(subject.worker, "reload", busy)
    subject.directory.write("openai-key", "sk-rotated")

    def has_applied() -> bool:
        return subject.worker.reloads == 1 and subject.reloader.status()["last_reload_error"] is None

    watched(subject, monkeypatch, lambda: eventually(has_applied))
    assert refused[1]["last_reload_error"]["code"] == "busy"
    assert refused[1]["config_digest"] == before


def test_a_defect_ends_neither_the_watch_nor_the_configuration(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = subject.core_digest

    def broken(_: Path) -> Config:
        raise MemoryError

    def change() -> bool:
        with monkeypatch.context() as defect:
            defect.setattr(reload, "load", broken)
            subject.directory.write("openai-key", "sk-rotated")
            if not eventually(lambda: subject.reloader.status()["last_reload_error"] is not None):
                return False
        assert subject.reloader.status()["last_reload_error"]["code"] == "internal"
        assert subject.core_digest == before
        subject.directory.write("openai-key", "sk-rotated-again")
        return eventually(lambda: subject.worker.reloads == 1)

    watched(subject, monkeypatch, change)
