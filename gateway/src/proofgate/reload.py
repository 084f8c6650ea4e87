"""Hot reload: a worker applies a changed configuration atomically, or keeps the current one and reports why.

In that case it keeps only the content of the configuration file. The current contents of the files that it
names are still applied, because the removal of a key must not wait for the fix of a rule.

Files are compared by content, because Kubernetes updates a mount by changing a symbolic link, which makes
dates useless.
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
# Seconds between two checks. An editor or a copy writes a file in pieces, so it is read only after two
# successive checks saw the same content.
DEBOUNCE_SECONDS = 0.2
NEEDS_RESTART = "config_needs_restart"
# The core's code for a data plane that did not start a change in time. Nothing has changed then.
BUSY_CODE = "busy"

AppliedCallback = Callable[[Config], None]


@dataclass(frozen=True)
class ReloadOutcome:
    """The outcome of a reload. `digest` is the digest of the configuration in force afterwards."""

    result: Literal["applied", "unchanged", "refused"]
    digest: str
    error: InvalidConfigError | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the response of the admin port."""
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
        """Requests a reload without waiting for it, for example after a signal."""
        self._asked.set()

    async def reload(self) -> ReloadOutcome:
        """Reads the configuration again and applies it if it differs.

        An invalid configuration is an outcome, and exceptions have other causes. A refusal is logged. Shards
        of tenants are still updated.
        """
        async with self._one_at_a_time:
            outcome = await self._reload_file()
            if await profiling.run_in_thread(self._tenant_shards.apply_changes):
                self._apply_tenant_changes()
                result = "applied" if outcome.result == "unchanged" else outcome.result
                return ReloadOutcome(result, self._digest, outcome.error)
            return outcome

    async def apply_tenant_changes(self) -> None:
        """Applies changed shards of tenants."""
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
                # The worker has withdrawn the change, and no later change of the files may trigger another
                # reload.
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
        """Reloads on request and when a file of the configuration changes, in an endless loop."""
        # The file may have changed since the worker was started with it.
        asked = False
        while True:
            try:
                if asked or await self._has_config_changed():
                    await self.reload()
                elif await self._have_tenants_changed():
                    await self.apply_tenant_changes()
                await asyncio.to_thread(self._archive.retry)
            except Exception:
                # After any error, the worker continues with its current configuration and checks the next
                # change.
                log.exception("the configuration cannot be reloaded")
            asked = await self._was_requested_within(POLL_SECONDS)

    def status(self) -> dict[str, Any]:
        """The status of the configuration for the admin port: locations, never values."""
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
        # Stored before the attempt, so that a failed attempt is not repeated until something changes.
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
        """Loads the current configuration. Returns it, and whether it differs from the one in force."""
        new = load(self._config.source)
        problems = needs_restart(self._config, new)
        if problems:
            raise InvalidConfigError(new.source, problems, new.files)
        return new, new != self._config

    def _apply(self, new: Config) -> None:
        """Applies a configuration, in a thread. All steps that can refuse it come before the worker is
        changed."""
        require_usable(new, self._shard)
        # A switch that was set by hand stays, unless the setting in the file has changed.
        stages = new.settings.profiling.stages
        if stages == self._config.settings.profiling.stages:
            stages = profiling.is_switched_on()
        # Policies are loaded first, so that no request waits for them.
        self._policies.prepare(new)
        # Archived before it is in force, so that its decisions can be explained.
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
        """Applies the configuration file in force with the current contents of the files that it names, in a
        thread.

        Returns the configuration then in force; None if the files do not permit it.
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
    """Returns one problem for each changed field that is fixed for the life of a worker."""
    before, after = old.settings, new.settings
    fixed: dict[FieldPath, bool] = {
        ("ledger", type(after.ledger).model_fields[name].alias or name): (
            getattr(before.ledger, name) != getattr(after.ledger, name)
        )
        for name in type(after.ledger).model_fields
        # Settings about personal data in records may change.
        if not name.endswith(("_file", "directory")) and not name.startswith("record_")
    }
    fixed |= {
        # The tenants and the maximum size of stored bodies may change.
        ("ledger", "payloads"): _payload_budget(before.ledger) != _payload_budget(after.ledger),
        ("ledger", "directory"): old.ledger_directory != new.ledger_directory,
        # The previous key may be added or removed, because only a start needs it.
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
    """Logs the warnings of a configuration in force."""
    for warning in config.warnings:
        log.warning("%s", warning.describe(config.source))


def error_code(error: InvalidConfigError) -> str:
    """Returns the code of a refusal: `config_needs_restart` if there is no other problem."""
    codes = {problem.code for problem in error.problems}
    return NEEDS_RESTART if codes == {NEEDS_RESTART} else error.code


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
