"""The rules for replays: from the recorded configuration of each exchange, or from another one."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path

from proofgate import _core, archive
from proofgate.config.settings import Settings
from proofgate.replay.replay_exchange import ReplayExchange

#: Maximum number of cached compiled configurations.
_MAX_COMPILED = 16


#: Returns the rules for an exchange, or a stable machine code for why there are none.
Engines = Callable[[ReplayExchange], _core.Replayer | str]


def load_archived_policies(ledger: Path) -> Engines:
    """Returns the recorded rules of each exchange, from the archive beside the ledger. Each configuration is
    compiled once.

    Codes: `configuration_unknown` (not in the archive), `configuration_changed` (does not match its digest),
    `configuration_refused` (not usable by this version).
    """
    compiled = functools.lru_cache(maxsize=_MAX_COMPILED)(functools.partial(_compile, ledger))

    def of(recorded: ReplayExchange) -> _core.Replayer | str:
        digest = recorded.core.configuration
        return "configuration_unknown" if digest is None else compiled(digest)

    return of


def fixed_engines(settings: Settings) -> Engines:
    """Returns the rules of one configuration for all exchanges."""
    replayer = _core.Replayer(json.dumps(_document(settings)).encode(), other=True)
    return lambda _: replayer


def _compile(ledger: Path, digest: str) -> _core.Replayer | str:
    try:
        return _core.Replayer(archive.find_configuration(ledger, digest))
    except archive.ArchiveError as error:
        return error.code
    except OSError:
        return "configuration_unknown"
    except _core.ConfigError:
        return "configuration_refused"


def _document(settings: Settings) -> dict[str, object]:
    plans = {plan.name: plan for plan in settings.plans}
    terms = {tenant.name: plans.get(tenant.plan or "", tenant) for tenant in settings.tenants}
    return {
        "format": archive.FORMAT,
        "policy": settings.policy.to_document(),
        "tenants": [
            {"name": name, "policy": held.policy.to_document() if held.policy else None}
            for name, held in terms.items()
        ],
        "limits": {"bodyBytes": settings.limits.body_bytes},
    }
