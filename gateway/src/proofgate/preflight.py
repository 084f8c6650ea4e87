"""A configuration tried on a worker that is never started: what only the Rust side can refuse."""

from __future__ import annotations

from collections.abc import Iterator

from proofgate import _core
from proofgate.config import Config, InvalidConfigError, Problem
from proofgate.config.budget_checks import BUDGET_WITHOUT_PRICE


def require_usable(config: Config, shard: int = 0) -> None:
    """Builds the worker, which compiles the rules, and gives it the key sets that stand in files.

    Nothing is opened and nothing is left behind. Raises InvalidConfigError.
    """
    problems = list(_problems(config, shard))
    if problems:
        raise InvalidConfigError(config.source, problems, config.files)


def require_priced(config: Config) -> None:
    """Raises InvalidConfigError for a budget in money whose models have no price.

    A worker takes such a configuration, and refuses the requests for these models alone.
    """
    unpriced = [warning for warning in config.warnings if warning.code == BUDGET_WITHOUT_PRICE]
    if unpriced:
        raise InvalidConfigError(config.source, unpriced, config.files)


def _problems(config: Config, shard: int) -> Iterator[Problem]:
    try:
        worker = _core.Worker(config.to_core_json(shard))
    except _core.ConfigError as error:
        yield config.problem("config_refused", (), str(error))
        return
    for position, issuer in enumerate(config.issuers):
        if issuer.issuer in config.key_sets:
            try:
                worker.set_key_set(issuer.issuer, config.key_sets[issuer.issuer])
            except _core.ConfigError as error:
                path = ("jwt", "issuers", position, "jwksFile")
                yield config.problem("config_bad_key_set", path, str(error))
