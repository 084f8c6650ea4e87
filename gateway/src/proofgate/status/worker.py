"""Reads the status of one worker from its admin port."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from proofgate.admin_client import AdminError, admin_get
from proofgate.status.limits import fetch_limits
from proofgate.status.status_model import LogHead, Worker

_TIMEOUT_SECONDS = 5.0


def fetch_worker(admin: str, token_file: Path | None) -> Worker:
    """Requests the status of the worker at a URL, and with the token also its limits. Raises AdminError."""
    status = admin_get(admin, "/status", _TIMEOUT_SECONDS, token_file)
    metrics = admin_get(admin, "/metrics", _TIMEOUT_SECONDS, token_file)
    try:
        seen = parse_worker(json.loads(status), metrics)
    except (ValueError, KeyError, TypeError):
        raise AdminError(f"{admin} reports no status: is this a Proofgate admin port?") from None
    return replace(seen, limits=fetch_limits(admin, token_file)) if token_file else seen


def parse_worker(status: Mapping[str, Any], metrics: str) -> Worker:
    """Parses a worker's `/status` and `/metrics`. Raises KeyError, TypeError, ValueError."""
    refused = re.search(r"^proofgate_limit_refusals_total (\d+)", metrics, re.MULTILINE | re.ASCII)
    trouble = [f"the ledger has stopped: {status['ledger_stopped']}"] if status["ledger_stopped"] else []
    failed = status.get("last_reload_error")
    if failed:
        places = ", ".join(_problem_location(problem) for problem in failed.get("problems", []))
        trouble.append(
            f"the new configuration is refused: {failed['code']}" + (f" ({places})" if places else "")
        )
    trouble += [f"warning: {_problem_location(warning)}" for warning in status.get("warnings", [])]
    trouble += [
        f"keys of {issuer['issuer']} cannot be fetched: {issuer['error']}"
        for issuer in status.get("key_sets", [])
        if issuer["error"]
    ]
    trouble += [
        f"no new credentials for {source['provider']}: {source['error']}: {source['message']}"
        for source in status.get("credentials", [])
        if source["error"]
    ]
    trouble += [
        f"too few {name} for the configured limits: {capacity['needed']} needed, "
        f"{capacity['available']} available"
        for name, capacity in status.get("capacity", {}).items()
        if capacity["short"]
    ]
    return Worker(
        address=str(status["address"]),
        shard=int(status["shard"]),
        not_ready=status["not_ready"],
        in_flight=int(status["in_flight"]),
        connections=int(status["connections"]),
        limit_refusals=int(refused[1]) if refused else None,
        log=LogHead(str(status["origin"]), int(status["written"])),
        durable=int(status["durable"]),
        checkpointed=int(status["checkpointed"]),
        config_digest=str(status["config_digest"]),
        trouble=tuple(trouble),
    )


def _problem_location(problem: Mapping[str, Any]) -> str:
    return f"{problem['code']} at {problem['field'] or problem['file']}"
