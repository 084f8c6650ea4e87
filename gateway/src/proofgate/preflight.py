"""Checks of a configuration that only the Rust core can make, on a worker that is never started."""

from __future__ import annotations

from collections.abc import Iterator

from proofgate import _core
from proofgate.config import Config, InvalidConfigError, Problem
from proofgate.config.budget_checks import BUDGET_WITHOUT_PRICE


def require_usable(config: Config, shard: int = 0) -> None:
    """Builds the worker, which compiles the rules, and passes it the key sets from files.

    Opens no ledger or port, and leaves nothing behind. Raises InvalidConfigError.
    """
    problems = list(_problems(config, shard))
    if problems:
        raise InvalidConfigError(config.source, problems, config.files)


def require_priced(config: Config) -> None:
    """Raises InvalidConfigError for a budget in money whose models have no price.

    A worker accepts such a configuration, and refuses only the requests for these models.
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
