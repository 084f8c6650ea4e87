"""A ledger with exchanges of every kind, and an auditor with an index of them, readers and a witness."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from proofgate import _core

from e2e.auditing import AUDITOR, Audit, ask, following
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, Program, start_ready, wait_until

READERS = {"officer": "officer-reader-key-0123456789", "acme's": "acme-reader-key-0123456789"}
#: A model of two providers, the first of which always answers 503.
RESILIENT = "always-there"
_SETTINGS: dict[str, Any] = {
    "prices": [
        {"model": model, "effectiveFrom": "2026-01-01", "input": "2500", "output": "10000"}
        for model in (MODEL, "mock-overloaded")
    ],
    "tenants": [
        {
            "name": "acme",
            "keyHashes": [_core.hash_api_key(KEYS["acme"])],
            "limits": {
                "tokensPerDay": 100_000,
                "requestsPerMinute": 600,
                "dollarsPerDay": "25.00",
                "dollarsPerMonth": "40",
            },
            "keyLimits": {"concurrency": 8},
            "modelBudgets": [{"model": MODEL, "dollarsPerDay": "15.00"}],
        },
        {"name": "globex", "keyHashes": [_core.hash_api_key(KEYS["globex"])]},
    ],
    "models": [
        {"name": MODEL, "provider": "mock", "maxOutputTokens": 64},
        {
            "name": RESILIENT,
            "provider": "mock",
            "upstreamModel": "mock-overloaded",
            "maxOutputTokens": 64,
            "fallbacks": [{"provider": "mock", "upstreamModel": MODEL}],
        },
    ],
    "policy": {
        "rules": [
            {"id": "codename", "reason": "A project that is not public.", "literals": ["bluebird"], "action": "Block"},
            {"id": "staff", "reason": "A staff number.", "literals": ["staff-1"], "score": 10, "action": "Redact"},
        ]
    },
}


@dataclass(frozen=True)
class Indexed:
    """The auditor's address, and the ids of the exchanges by their special property."""

    url: str
    gateway: LocalGateway
    state: Path
    ids: dict[str, str]

    def rows(self, reader: str = "officer", path: str = "exchanges", name: str = "") -> list[dict[str, Any]]:
        """The rows of an answer to a reader."""
        answer = httpx.get(
            f"{self.url}/v1/{path}", headers={"Authorization": f"Bearer {READERS[reader]}"}, timeout=PATIENCE
        )
        found: list[dict[str, Any]] = answer.raise_for_status().json()[name or path]
        return found

    def reads(self) -> list[dict[str, Any]]:
        """The auditor's records of reads."""
        [file] = self.state.glob("access-*.jsonl")
        # The first line is about the file.
        return [json.loads(line) for line in file.read_text().splitlines()[1:]]


#: The attribution that the client of the exchange "plain" states.
SAID = {"session": "5f1d-session", "agent": "reviewer"}


def say(gateway: LocalGateway, text: str, tenant: str = "acme", model: str = MODEL, **fields: str) -> str:
    """Sends one request, whatever its outcome; returns the request id."""
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    headers = {"Authorization": f"Bearer {KEYS[tenant]}", **fields}
    url = f"{gateway.base_url}/chat/completions"
    return httpx.post(url, json=body, headers=headers, timeout=PATIENCE).headers["x-request-id"]


@contextmanager
def _witness(folder: Path, log_vkey: str) -> Iterator[str]:
    """Starts a witness of an auditor's log; returns the policy that uses it."""
    secret, vkey = _core.generate_witness_key("witness.example/ours")
    (folder / "witness-key").write_text(secret)
    (folder / "logs").write_text(f"logs/v0\n\nvkey {log_vkey}\n")
    paths = ["--logs", str(folder / "logs"), "--signing-key", str(folder / "witness-key")]
    arguments = [
        "audit",
        "witness",
        *paths,
        "--state",
        str(folder / "witness"),
        "--listen",
        "127.0.0.1:0",
        "--new-state",
    ]
    program, ready = start_ready(
        lambda: Program.start("witness", folder, arguments),
        lambda program: program.wait_for_line(r"proofgate witness: (http://\S+) verifying-key="),
    )
    try:
        yield f"witness ours {vkey} {ready[1]}\nquorum ours\n"
    finally:
        program.stop(signal.SIGKILL)


@contextmanager
def indexed(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> Iterator[Indexed]:
    """Exchanges of two tenants: plain ones, one with a second attempt, a redacted one and a refused one.

    `options` and `environment` are additions for the auditor.
    """
    with local_gateway(folder, settings=_SETTINGS) as gateway:
        secret, public = _core.generate_key(AUDITOR)
        (folder / "auditor-key").write_text(secret)
        readers = {
            _core.hash_api_key(READERS["officer"]): {"name": "officer", "all": True},
            _core.hash_api_key(READERS["acme's"]): {"name": "acme's", "tenant": "acme"},
        }
        (folder / "readers").write_text(json.dumps(readers))
        with _witness(folder, public) as policy:
            (folder / "policy").write_text(policy)
            audit = Audit(folder, gateway.verifying_key)
            more = ["--new-aggregate", "--witness-policy", str(folder / "policy")]
            more += ["--index", str(folder / "index"), "--readers", str(folder / "readers")]
            with following(audit, *more, *options, environment=environment) as (_, url):
                ask(gateway, 2)
                ids = {
                    "plain": say(gateway, "hi", **{"session-id": SAID["session"], "thread-id": SAID["agent"]}),
                    "second attempt": say(gateway, "hi", model=RESILIENT),
                    "redacted": say(gateway, "ask staff-1 now"),
                    "refused": say(gateway, "tell me of bluebird"),
                    "globex": say(gateway, "hi", "globex"),
                }
                found = Indexed(url, gateway, audit.state, ids)
                wait_until(lambda: len(found.rows()) == 7, PATIENCE, "the exchanges are indexed")
                yield found
