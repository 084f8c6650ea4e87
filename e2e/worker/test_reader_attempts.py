"""A reader of one tenant's exchanges tries to read the data of others."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import httpx
import pytest
from proofgate import _core

from e2e.indexed import READERS, Indexed, indexed
from e2e.local_gateway import KEYS
from e2e.programs import PATIENCE
from e2e.worker.raw_http import send

OWN = READERS["acme's"]


@dataclass(frozen=True)
class Attempt:
    """One request. In its path, `{theirs}` is the id of an exchange of globex, and `{own}` of one of the reader."""

    path: str
    method: str = "GET"
    key: str | None = OWN
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""


def cursor(**changed: object) -> str:
    """A forged cursor that contains another reader's query."""
    told = {"after": [0, "0", 0], "filter": {"tenant": "globex"}, "time": 0, "day": "2026-01-01", **changed}
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


ATTEMPTS = (
    # Names of other tenants' data.
    Attempt("/v1/exchanges?tenant=globex"),
    Attempt("/v1/exchanges?id={theirs}"),
    Attempt("/v1/exchanges/{theirs}"),
    Attempt("/v1/exchanges/{theirs}/receipt"),
    Attempt("/v1/exchanges/{theirs_upper}"),
    Attempt("/v1/exchanges/%20{theirs}"),
    Attempt("/v1/exchanges/{theirs}%00"),
    Attempt("/v1/exchanges/{own}/../{theirs}"),
    Attempt("/v1/exchanges/{own}%2F..%2F{theirs}"),
    Attempt("/v1/tenants?tenant=globex"),
    Attempt("/v1/budgets?tenant=globex"),
    Attempt("/v1/analysis?tenant=globex"),
    # Ambiguous queries.
    Attempt("/v1/exchanges?tenant=acme&tenant=globex"),
    Attempt("/v1/exchanges?tenant=globex&tenant=acme"),
    Attempt("/v1/exchanges?Tenant=globex"),
    Attempt("/v1/exchanges?tenant%5B%5D=globex"),
    Attempt("/v1/exchanges?tenant="),
    Attempt("/v1/exchanges?tenant=*"),
    Attempt("/v1/exchanges?tenant=acme%27%20OR%201%3D1%20--"),
    Attempt("/v1/exchanges?tenant=acme%00globex"),
    Attempt("/v1/exchanges?model=%25&rule=%27%20UNION%20SELECT%20*%20FROM%20exchanges%20--"),
    Attempt("/v1/exchanges?key=globex&limit=200"),
    Attempt("/v1/exchanges?limit=100000"),
    Attempt("/v1/exchanges?limit=-1"),
    Attempt("/v1/exchanges?since=1970-01-01&until=9999-12-31"),
    Attempt(f"/v1/exchanges?after={cursor()}"),
    Attempt(f"/v1/exchanges?tenant=acme&after={cursor()}"),
    Attempt(f"/v1/exchanges?after={quote('eyJ9')}"),
    Attempt("/v1/tenants?since=0"),
    # Other identities.
    Attempt("/v1/exchanges", key=None),
    Attempt("/v1/exchanges", key=KEYS["globex"]),
    Attempt("/v1/exchanges", key=_core.hash_api_key(READERS["officer"])),
    Attempt("/v1/exchanges", key=f"{OWN} {READERS['officer'][:-1]}"),
    Attempt("/v1/exchanges", headers={"X-Forwarded-User": "officer", "X-Reader": "officer", "X-Tenant": "globex"}),
    Attempt("/v1/exchanges", headers={"Cookie": "reader=officer; tenant=globex"}),
    Attempt("/v1/reader", headers={"X-HTTP-Method-Override": "DELETE"}),
    # Invalid queries.
    Attempt("/v1/exchanges", "POST", body='{"tenant":"globex"}'),
    Attempt("/v1/exchanges", "PUT", body='{"tenant":"globex"}'),
    Attempt("/v1/exchanges/{theirs}", "DELETE"),
    Attempt("/v1/reader", "PATCH", body='{"tenant":null}'),
    # Files, and public endpoints.
    Attempt("/explorer/..%2f..%2freaders"),
    Attempt("/explorer/%2e%2e/%2e%2e/signing-key"),
    Attempt("/tile/../../readers"),
    Attempt("/tile/entries/..%2f..%2f..%2findex%2findex.sqlite"),
    Attempt("/proof?origin=../../readers&index=0"),
    Attempt("/openapi.json"),
    Attempt("/docs"),
    Attempt("/findings"),
    Attempt("/metrics"),
    Attempt("/status"),
    Attempt("/heads"),
    Attempt("/witnesses"),
)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    with indexed(tmp_path_factory.mktemp("indexed")) as ledger:
        yield ledger


def asked(ledger: Indexed, attempt: Attempt) -> bytes:
    """The complete answer with its head. The request is sent as raw bytes, because an HTTP client would correct it."""
    theirs, own = ledger.ids["globex"], ledger.ids["plain"]
    path = attempt.path.replace("{theirs_upper}", theirs.upper()).replace("{theirs}", theirs).replace("{own}", own)
    fields = {"Host": "auditor", "Connection": "close", **attempt.headers}
    if attempt.key is not None:
        fields["Authorization"] = f"Bearer {attempt.key}"
    if attempt.body:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(attempt.body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    head = f"{attempt.method} {path} HTTP/1.1\r\n{lines}\r\n"
    return send(urlsplit(ledger.url).netloc, head.encode() + attempt.body.encode())


def secrets_of(ledger: Indexed, attempt: Attempt) -> set[str]:
    """The texts that no answer may contain, without those that the attempt itself contains."""
    [exchange] = [row for row in ledger.rows() if row["id"] == ledger.ids["globex"]]
    found = {"globex", exchange["id"], "officer", READERS["officer"], KEYS["globex"], "PRIVATE+KEY"}
    commitments = {value for value in exchange.values() if isinstance(value, str) and len(value) >= 32}
    said = f"{attempt.path} {attempt.headers} {attempt.body} {attempt.key}".replace("{theirs}", exchange["id"])
    return {secret for secret in found | commitments if secret not in said}


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: f"{attempt.method} {attempt.path[:60]}")
def test_an_attempt_at_what_is_not_its_own_gives_a_reader_nothing(ledger: Indexed, attempt: Attempt) -> None:
    answer = asked(ledger, attempt).decode(errors="replace")
    assert answer.startswith("HTTP/1.1 ")
    status = int(answer.split()[1])
    assert status < 500, answer
    assert [secret for secret in secrets_of(ledger, attempt) if secret in answer] == []
    if status == 200 and attempt.path.startswith("/v1/exchanges"):
        rows = json.loads(answer.partition("\r\n\r\n")[2])["exchanges"]
        assert {row["tenant"] for row in rows} <= {"acme"}


def test_after_all_attempts_the_officer_is_answered_and_finds_what_was_read(ledger: Indexed) -> None:
    for attempt in ATTEMPTS:
        asked(ledger, attempt)
    assert {row["tenant"] for row in ledger.rows()} >= {"acme", "globex"}
    readers = {entry["reader"] for entry in ledger.reads() if "reader" in entry}
    assert readers == {"acme's", "officer"}
    answer = httpx.get(f"{ledger.url}/readyz", timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
