"""Hot reload: a worker applies a changed configuration atomically, or keeps its own and reports why.

What it keeps is the configuration file. The files that this one names are taken on as they are now: a key
that was taken away must not wait for somebody to mend a rule.

Files are compared by content, because Kubernetes replaces what a mount shows by swapping a symbolic link, and
because their dates then say nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from proofgate import _core, profiling
from proofgate.archive import Archive
from proofgate.config import Config, InvalidConfigError, Problem, load
from proofgate.config.document import FieldPath
from proofgate.config.files import current_digests, digest_of
from proofgate.config.settings import Ledger
from proofgate.policy.runners import PolicyRunners
from proofgate.preflight import require_usable
from proofgate.tenant_shards import TenantShards

log = logging.getLogger("proofgate")

POLL_SECONDS = 2.0
# An editor or a copy writes a file in pieces: it is read once two looks in a row saw the same.
DEBOUNCE_SECONDS = 0.2
NEEDS_RESTART = "config_needs_restart"
# The core's code for a data plane that did not begin with a change in time; nothing has changed then.
BUSY_CODE = "busy"

AppliedCallback = Callable[[Config], None]


@dataclass(frozen=True)
class ReloadOutcome:
    """What became of one reload. `digest` is that of the configuration in force afterwards."""

    result: Literal["applied", "unchanged", "refused"]
    digest: str
    error: InvalidConfigError | None = None

    def as_json(self) -> dict[str, Any]:
        """The answer of the admin port."""
        answer: dict[str, Any] = {"result": self.result, "config_digest": self.digest}
        if self.error is not None:
            problems = [problem.as_json(self.error.source) for problem in self.error.problems]
            answer["error"] = {
                "code": error_code(self.error),
                "message": "the configuration is refused, and the previous one stays active",
            }
            answer["problems"] = problems
        return answer


class Reloader:
    """Applies changed configurations to a running worker, one at a time.

    `applied` is called on the event loop with each configuration that came into force.
    """

    def __init__(
        self,
        worker: _core.Worker,
        config: Config,
        shard: int,
        applied: AppliedCallback,
        tenant_shards: TenantShards | None = None,
        policies: PolicyRunners | None = None,
        archive: Archive | None = None,
    ) -> None:
        self._worker = worker
        self._policies = policies or PolicyRunners(worker)
        self._archive = archive or Archive(config.ledger_directory)
        self._config = config
        self._tenant_shards = tenant_shards or TenantShards(worker, config.tenant_shards)
        self._digest = worker.config_digest
        self._shard = shard
        self._applied = applied
        self._files: Mapping[Path, str | None] = config.files
        self._one_at_a_time = asyncio.Lock()
        self._asked = asyncio.Event()
        self._loaded_at = _now()
        self._last_error: dict[str, Any] | None = None

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._config

    def request_reload(self) -> None:
        """Asks for a reload without waiting for it, as a signal does."""
        self._asked.set()

    async def reload(self) -> ReloadOutcome:
        """Reads the configuration anew and applies it if it differs.

        A bad configuration is an outcome. Raises only what is no fault of the configuration. What was refused
        is told; shards of tenants are followed all the same.
        """
        async with self._one_at_a_time:
            outcome = await self._reload_file()
            if await profiling.run_in_thread(self._tenant_shards.apply_changes):
                self._apply_tenant_changes()
                result = "applied" if outcome.result == "unchanged" else outcome.result
                return ReloadOutcome(result, self._digest, outcome.error)
            return outcome

    async def apply_tenant_changes(self) -> None:
        """Takes on the shards of tenants that have changed."""
        async with self._one_at_a_time:
            if await profiling.run_in_thread(self._tenant_shards.apply_changes):
                self._apply_tenant_changes()

    def _apply_tenant_changes(self) -> None:
        self._digest, self._loaded_at = self._worker.config_digest, _now()
        log.info("applied changed tenant shards: digest %s", self._digest)

    async def _reload_file(self) -> ReloadOutcome:
        try:
            try:
                new, changed = await profiling.run_in_thread(self._load)
                if changed:
                    await profiling.run_in_thread(self._apply, new)
            except InvalidConfigError as error:
                renewed = await profiling.run_in_thread(self._reapply)
                return self._record_refusal(error, renewed)
        except Exception as error:
            code = error.code if isinstance(error, _core.ProofgateError) else "internal"
            self._last_error = {"code": code, "at": _now(), "problems": []}
            if code == BUSY_CODE:
                # The worker has withdrawn it, and the files may never change again.
                self.request_reload()
            raise
        self._files, self._last_error = new.files, None
        log_warnings(new)
        if not changed:
            log.info("configuration unchanged: digest %s", self._digest)
            return ReloadOutcome("unchanged", self._digest)
        self._config, self._digest, self._loaded_at = new, self._worker.config_digest, _now()
        self._tenant_shards.set_directory(new.tenant_shards)
        self._applied(new)
        log.info("configuration applied: digest %s", self._digest)
        return ReloadOutcome("applied", self._digest)

    async def watch(self) -> None:
        """Reloads when asked, and when a file of the configuration changes, for ever."""
        # The worker may have been started with another file than is there.
        asked = False
        while True:
            try:
                if asked or await self._has_config_changed():
                    await self.reload()
                elif await self._have_tenants_changed():
                    await self.apply_tenant_changes()
                await asyncio.to_thread(self._archive.retry)
            except Exception:
                # Whatever it is, the worker serves on with what it has, and looks at the next change.
                log.exception("the configuration cannot be reloaded")
            asked = await self._was_requested_within(POLL_SECONDS)

    def status(self) -> dict[str, Any]:
        """What the admin port shows of the configuration: places, never values."""
        return {
            "config_digest": self._digest,
            "config_file_digest": digest_of(self._config.content),
            "config_loaded_at": self._loaded_at,
            "config_archived": self._archive.is_complete,
            "last_reload_error": self._last_error,
            "tenant_shards": self._tenant_shards.status(),
            "warnings": [warning.location_as_json(self._config.source) for warning in self._config.warnings],
        }

    async def _was_requested_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        asked = self._asked.is_set()
        self._asked.clear()
        return asked

    async def _has_config_changed(self) -> bool:
        seen = await asyncio.to_thread(current_digests, self._files)
        if seen == self._files:
            return False
        while not self._asked.is_set():
            await asyncio.sleep(DEBOUNCE_SECONDS)
            again = await asyncio.to_thread(current_digests, self._files)
            if again == seen:
                break
            seen = again
        # Remembered before the attempt: one that fails is not repeated until something changes again.
        changed, self._files = seen != self._files, seen
        return changed

    async def _have_tenants_changed(self) -> bool:
        looks = await asyncio.to_thread(self._tenant_shards.fingerprints)
        while looks != self._tenant_shards.seen:
            await asyncio.sleep(DEBOUNCE_SECONDS)
            again = await asyncio.to_thread(self._tenant_shards.fingerprints)
            if again == looks:
                return True
            looks = again
        return False

    def _load(self) -> tuple[Config, bool]:
        """The configuration as it is now, and whether it differs from the one in force."""
        new = load(self._config.source)
        problems = needs_restart(self._config, new)
        if problems:
            raise InvalidConfigError(new.source, problems, new.files)
        return new, new != self._config

    def _apply(self, new: Config) -> None:
        """Runs in a thread. Everything that can refuse the configuration comes before the worker changes."""
        require_usable(new, self._shard)
        # A switch that was turned by hand stays, unless the file's own switch was turned now.
        stages = new.settings.profiling.stages
        if stages == self._config.settings.profiling.stages:
            stages = profiling.is_switched_on()
        # Loaded ahead: no request waits for a policy that is being loaded.
        self._policies.prepare(new)
        # Before it is in force, so that what it decides can be told.
        self._archive.store(new.public_json())
        try:
            self._worker.reload(new.to_core_json(self._shard, profile_stages=stages))
        except _core.ConfigError as error:
            self._policies.discard()
            problem = new.problem("config_refused", (), str(error))
            raise InvalidConfigError(new.source, [problem], new.files) from None
        except _core.ProofgateError:
            self._policies.discard()
            raise
        self._policies.apply_config(new)
        profiling.set_enabled(stages)

    def _reapply(self) -> Config | None:
        """Apply the file that is in force with the files that it names as they are now, in a thread.

        Returns what is in force then; None when the files do not let it be.
        """
        try:
            renewed = load(self._config.source, self._config.content)
            if needs_restart(self._config, renewed):
                return None
            if renewed != self._config:
                self._apply(renewed)
        except InvalidConfigError:
            return None
        return renewed

    def _record_refusal(self, error: InvalidConfigError, renewed: Config | None) -> ReloadOutcome:
        self._files = error.files
        if renewed is not None:
            self._files = {**renewed.files, **error.files}
            if renewed != self._config:
                self._config, self._digest, self._loaded_at = renewed, self._worker.config_digest, _now()
                self._applied(renewed)
                log.info("applied changed files of the active configuration: digest %s", self._digest)
        places = [problem.location_as_json(error.source) for problem in error.problems]
        self._last_error = {"code": error_code(error), "at": _now(), "problems": places}
        for line in error.lines:
            log.error("the new configuration is refused, the previous one stays active: %s", line)
        return ReloadOutcome("refused", self._digest, error)


def needs_restart(old: Config, new: Config) -> list[Problem]:
    """One problem for each field that differs and is fixed for the life of a worker."""
    before, after = old.settings, new.settings
    fixed: dict[FieldPath, bool] = {
        ("ledger", type(after.ledger).model_fields[name].alias or name): (
            getattr(before.ledger, name) != getattr(after.ledger, name)
        )
        for name in type(after.ledger).model_fields
        # What records say of persons may change.
        if not name.endswith(("_file", "directory")) and not name.startswith("record_")
    }
    fixed |= {
        # Whose bodies are stored, and how long ones, may change.
        ("ledger", "payloads"): _payload_budget(before.ledger) != _payload_budget(after.ledger),
        ("ledger", "directory"): old.ledger_directory != new.ledger_directory,
        # The key before it may come and go: only a start needs it.
        ("ledger", "signingKeyFile"): old.verifying_key != new.verifying_key,
        ("listen",): before.listen != after.listen,
        ("proxyProtocol",): (before.proxy_protocol is None) != (after.proxy_protocol is None),
        ("admin", "listen"): before.admin.listen != after.admin.listen,
        ("analysis",): before.analysis != after.analysis,
        ("limits", "connections"): before.limits.connections != after.limits.connections,
    }
    message = (
        "it cannot change while a worker runs: restart the worker to change it, or restore the old value"
    )
    return [new.problem(NEEDS_RESTART, path, message) for path, differs in fixed.items() if differs]


def _payload_budget(ledger: Ledger) -> int | None:
    return None if ledger.payloads is None else ledger.payloads.budget_bytes


def log_warnings(config: Config) -> None:
    """Logs what is wrong with a configuration that is in force all the same."""
    for warning in config.warnings:
        log.warning("%s", warning.describe(config.source))


def error_code(error: InvalidConfigError) -> str:
    """The code of a refusal: `config_needs_restart` when that is all that is wrong."""
    codes = {problem.code for problem in error.problems}
    return NEEDS_RESTART if codes == {NEEDS_RESTART} else error.code


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
