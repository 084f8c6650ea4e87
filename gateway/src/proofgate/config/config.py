"""A checked configuration, in the forms that the core, the archive and the records take it."""

from __future__ import annotations

from dataclasses import dataclass

from proofgate.config import core_json
from proofgate.config.checked_config import CheckedConfig


@dataclass(frozen=True)
class Config(CheckedConfig):
    """Everything that a worker is started with; see `CheckedConfig` for its fields."""

    def to_core_json(self, shard: int, *, profile_stages: bool | None = None) -> str:
        """The configuration as `_core.Worker` takes it: everything inline, secrets included. Never log it.

        `profile_stages` is `profiling.stages` unless it is given.
        """
        stages = self.settings.profiling.stages if profile_stages is None else profile_stages
        return core_json.worker_json(self, shard, stages)

    def digest(self) -> str:
        """SHA-256 of the configuration without its secrets: the same on every shard with the same files.

        Shards of tenants are no part of it; see `_core.Worker.config_digest`.
        """
        return core_json.public_digest(self)

    def public_json(self) -> bytes:
        """What `digest` is of: what is archived beside the ledger."""
        return core_json.public_json(self)
