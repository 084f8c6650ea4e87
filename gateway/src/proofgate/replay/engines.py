"""The rules that exchanges are replayed with: those of the configuration that each names, or others."""

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


def archived_engines(ledger: Path) -> Engines:
    """Those that were in force, out of the archive beside the ledger. Each configuration is compiled once.

    Otherwise `configuration_unknown` (it is not in the archive), `configuration_changed` (what is there is
    not what its name says), `configuration_refused` (this version cannot use it).
    """
    compiled = functools.lru_cache(maxsize=_MAX_COMPILED)(functools.partial(_compile, ledger))

    def of(recorded: ReplayExchange) -> _core.Replayer | str:
        digest = recorded.core.configuration
        return "configuration_unknown" if digest is None else compiled(digest)

    return of


def fixed_engines(settings: Settings) -> Engines:
    """Those of one configuration, for all exchanges."""
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
