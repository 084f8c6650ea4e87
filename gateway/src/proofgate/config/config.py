"""A checked configuration, in the forms for the core, the archive and the records."""

from __future__ import annotations

from dataclasses import dataclass

from proofgate.config import core_json
from proofgate.config.checked_config import CheckedConfig


@dataclass(frozen=True)
class Config(CheckedConfig):
    """All data with which a worker is started; see `CheckedConfig` for its fields."""

    def to_core_json(self, shard: int, *, profile_stages: bool | None = None) -> str:
        """The configuration as JSON for `_core.Worker`: everything inline, secrets included. Never log it.

        The default of `profile_stages` is `profiling.stages`.
        """
        stages = self.settings.profiling.stages if profile_stages is None else profile_stages
        return core_json.worker_json(self, shard, stages)

    def digest(self) -> str:
        """SHA-256 of the configuration without its secrets: the same on every shard with the same files.

        Shards of tenants are not included; see `_core.Worker.config_digest`.
        """
        return core_json.public_digest(self)

    def public_json(self) -> bytes:
        """The content that `digest` covers and that is archived beside the ledger."""
        return core_json.public_json(self)
