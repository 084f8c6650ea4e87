"""The configuration for a worker's start: the file, or the last accepted configuration."""

from __future__ import annotations

import logging
from pathlib import Path

from proofgate.config import Config, InvalidConfigError, load
from proofgate.config.files import MAX_CONFIG_BYTES, read_bounded
from proofgate.preflight import require_usable

log = logging.getLogger("proofgate")


def load_startable_config(path: Path, accepted: Path | None, shard: int) -> Config:
    """Loads the configuration in the file at `path`, or, if it is refused, the one at `accepted`.

    In this case, the worker reads `path` again as soon as it runs, and reports why it refuses it. Raises the
    InvalidConfigError of `path` if neither can be used.
    """
    if accepted is None:
        return load(path)
    try:
        config = load(path)
        require_usable(config, shard)
    except InvalidConfigError as error:
        log.warning("the configuration is refused, the last accepted one stays active:\n%s", error)
        return _load_accepted(path, accepted, shard, error)
    return config


def _load_accepted(path: Path, accepted: Path, shard: int, refusal: InvalidConfigError) -> Config:
    try:
        # Only the text is old: the files that it names are read with their current contents.
        config = load(path, read_bounded(accepted, MAX_CONFIG_BYTES))
        require_usable(config, shard)
    except (OSError, InvalidConfigError):
        raise refusal from None
    return config
