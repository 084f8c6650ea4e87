"""Tenants' limits, usage and owning workers in the readers' answers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from index_ledger import DAY, FIRST, NOON, SECOND, Log, bring_up
from signing import VKEY

from proofgate.archive import FOLDER, FORMAT
from proofgate.haproxy_sidecar.ring import HashRing, required_owner, ring_position
from proofgate.index.budgets import budgets
from proofgate.index.query import IndexSnapshot
from proofgate.index.writer import IndexWriter

TENANTS: list[dict[str, Any]] = [
    {
        "name": "acme",
        "keys": "0" * 64,
        "limits": {"tokensPerDay": 1000, "dollarsPerMonth": "0.000005", "dollarsPerDay": None},
        "keyLimits": {"requestsPerMinute": 6},
        "modelBudgets": [{"model": "gpt", "dollarsPerDay": "0.00000009", "dollarsPerMonth": None}],
        "policy": {"threshold": 3},
    },
    {"name": "globex", "limits": {}, "keyLimits": {}, "modelBudgets": []},
]


def archived(ledger: Path, document: Any) -> str:
    """Stores a configuration beside the ledger; returns its digest."""
    content = json.dumps({"format": FORMAT, **document}).encode()
    digest = hashlib.sha256(content).hexdigest()
    (ledger / FOLDER).mkdir(exist_ok=True)
    (ledger / FOLDER / f"{digest}.json").write_bytes(content)
    return digest


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    found = tmp_path / "ledger"
    found.mkdir()
    return found


def told(ledger: Path, tenant: str | None = None, now: int = NOON) -> dict[str, Any]:
    with IndexSnapshot(ledger.parent / "index") as questions:
        return budgets(questions, ledger, tenant, now)


def index(ledger: Path, *logs: Log) -> None:
    for log in logs:
        log.sign()
    bring_up(ledger.parent / "index", ledger, 100)


def test_limits_are_those_of_the_configuration_that_the_records_name_last(ledger: Path) -> None:
    old = archived(ledger, {"tenants": [{"name": "acme", "limits": {"tokensPerDay": 1}}]})
    log = Log(ledger, config=old)
    new = archived(ledger, {"tenants": TENANTS})
    log.add("config", NOON + 5, reason="reload", config="f" * 64, settings=new, previous=old[:16])
    index(ledger, log)
    found = told(ledger)
    assert found["configuration"] | {"since": None} == {
        "digest": new,
        "since": None,
        "others": [],
        "beside": False,
        "code": "",
    }
    acme, globex = found["tenants"]
    assert acme["limits"] == {"tokens_per_day": 1000, "nanodollars_per_month": 5_000}
    assert acme["key_limits"] == {"requests_per_minute": 6}
    assert globex["limits"] == {}
    assert acme["model_budgets"] == [{"model": "gpt", "nanodollars_per_day": 90, "spent": {}}]
    assert "keys" not in acme
    assert "policy" not in acme


def test_what_was_used_is_that_of_the_utc_day_and_month_to_the_last_token(ledger: Path) -> None:
    log = Log(ledger, config=archived(ledger, {"tenants": TENANTS}))
    day, month = NOON // DAY * DAY, NOON // DAY * DAY - 24 * DAY
    for number, ts in enumerate((month - 1, month, day - 1, day, day + DAY - 1, day + DAY)):
        log.exchange(number, ts)
    log.exchange(10, NOON, model="other", end={"cost_nanodollars": None})
    log.admit(11, NOON)
    log.refuse(12, NOON)
    log.refuse(13, NOON, tenant="no-tenant")
    index(ledger, log)
    found = told(ledger)
    assert [of["tenant"] for of in found["tenants"]] == ["acme", "globex"]
    acme, globex = found["tenants"]
    # Each exchange uses seven tokens and nine nanodollars.
    assert acme["spent"]["day"] == {"tokens": 21, "cost_nanodollars": 18, "unpriced": 1, "open": 1}
    assert acme["spent"]["month"] == {"tokens": 42, "cost_nanodollars": 45, "unpriced": 1, "open": 1}
    assert acme["model_budgets"][0]["spent"] == {"day": 18, "month": 45}
    assert globex["spent"]["day"] == {"tokens": 0, "cost_nanodollars": 0, "unpriced": 0, "open": 0}
    assert found["windows"]["day"] == {
        "since": "2026-11-25T00:00:00.000000Z",
        "until": "2026-11-26T00:00:00.000000Z",
        "whole": True,
    }
    assert found["windows"]["month"]["since"] == "2026-11-01T00:00:00.000000Z"


def test_what_was_asked_for_by_other_names_is_spent_of_the_budget_of_the_model_that_stood_for_them(
    ledger: Path,
) -> None:
    names = ("vendor/*", "vendor/large-*", "vendor/own", "other-*")
    budgeted = TENANTS[0] | {
        "modelBudgets": [{"model": name, "dollarsPerDay": "0.00000009"} for name in names[:3]],
    }
    document = {"models": [{"name": name} for name in names], "tenants": [budgeted]}
    log = Log(ledger, config=archived(ledger, document))
    own = ["vendor/own"] * 3
    asked = ["vendor/small", "vendor/a/b", "vendor/large-one", *own, "other-1", "gone", "vendo"]
    for number, model in enumerate(asked):
        log.exchange(number, NOON, model=model)
    index(ledger, log)
    spent = {of["model"]: of["spent"] for of in told(ledger)["tenants"][0]["model_budgets"]}
    # Each exchange costs nine nanodollars; the longest matching pattern determines the model.
    assert spent == {
        "vendor/*": {"day": 18, "month": 18},
        "vendor/large-*": {"day": 9, "month": 9},
        "vendor/own": {"day": 27, "month": 27},
    }


def test_a_month_of_which_the_index_keeps_a_part_says_so(ledger: Path) -> None:
    log = Log(ledger, config=archived(ledger, {"tenants": TENANTS}))
    log.exchange(1, NOON - 2 * DAY)
    log.exchange(2, NOON)
    index(ledger, log)
    writer = IndexWriter.open(ledger.parent / "index", VKEY)
    writer.prune(NOON // DAY)
    writer.close()
    found = told(ledger)
    assert found["windows"]["month"] == {
        "since": "2026-11-25T00:00:00.000000Z",
        "until": "2026-12-01T00:00:00.000000Z",
        "whole": False,
    }
    assert found["tenants"][0]["spent"]["month"]["tokens"] == 7
    assert found["windows"]["day"]["whole"]


def test_a_tenant_stands_on_the_ring_of_the_shards_that_go_on_and_where_it_was_recorded_last(
    ledger: Path,
) -> None:
    digest = archived(ledger, {"tenants": TENANTS})
    zero, one = Log(ledger, shard=0, config=digest), Log(ledger, shard=1, config=digest)
    two = Log(ledger, shard=2, config=digest)
    zero.exchange(1, NOON)
    one.exchange(2, NOON + 1)
    one.refuse(3, NOON + 9)
    two.add("seal", NOON)
    index(ledger, zero, one, two)
    found = told(ledger)
    assert found["shards"] == [0, 1]
    acme, globex = found["tenants"]
    assert acme["recorded"] == {"shard": "1", "time": "2026-11-25T12:00:00.000001Z"}
    assert globex["recorded"] is None
    for of in (acme, globex):
        assert of["ring"] == {
            "at": ring_position(of["tenant"]) / 2**32,
            "shard": HashRing([0, 1]).shard_for(of["tenant"]),
            "required": required_owner(of["tenant"], [0, 1]),
        }


def test_shards_that_have_not_taken_a_configuration_on_yet_are_told(ledger: Path) -> None:
    old, new = archived(ledger, {"tenants": []}), archived(ledger, {"tenants": TENANTS})
    zero, one = Log(ledger, shard=0, config=old), Log(ledger, shard=1, config=old)
    one.add("config", NOON + 7, reason="reload", config=new, previous=old[:16])
    # The configuration of an older log of the shard no longer counts.
    before = Log(ledger, FIRST[:-1] + "0", config="e" * 64)
    before.add("seal", NOON)
    index(ledger, before, zero, one)
    found = told(ledger)["configuration"]
    assert (found["digest"], found["others"]) == (new, [old])
    assert FIRST < SECOND


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "configuration_unknown"),
        (b"{}", "configuration_changed"),
        (b'{"tenants": []}', "configuration_of_earlier_version"),
        (b"[]", "configuration_unreadable"),
        (b"[" * 100_000, "configuration_unreadable"),
    ],
)
def test_without_a_configuration_tenants_have_no_limits_and_it_is_said_why(
    ledger: Path, content: bytes | None, code: str
) -> None:
    digest = hashlib.sha256(content or b"").hexdigest()
    if code == "configuration_changed":
        digest = "a" * 64
    if content is not None:
        (ledger / FOLDER).mkdir()
        (ledger / FOLDER / f"{digest}.json").write_bytes(content)
    log = Log(ledger, config=digest)
    log.exchange(1, NOON)
    index(ledger, log)
    found = told(ledger)
    assert found["configuration"]["code"] == code
    [acme] = found["tenants"]
    assert (acme["limits"], acme["spent"]["day"]["tokens"]) == (None, 7)


def test_a_ledger_that_names_no_configuration_says_so(ledger: Path) -> None:
    IndexWriter.open(ledger.parent / "index", VKEY).close()
    assert told(ledger)["configuration"]["code"] == "configuration_not_named"


def test_one_tenant_is_told_alone(ledger: Path) -> None:
    log = Log(ledger, config=archived(ledger, {"tenants": TENANTS, "tenantShards": {}}))
    log.exchange(1, NOON, tenant="globex")
    log.exchange(2, NOON, tenant="team/ci")
    index(ledger, log)
    assert [of["tenant"] for of in told(ledger, "acme")["tenants"]] == ["acme"]
    everybody = told(ledger)
    assert everybody["configuration"]["beside"]
    assert [(of["tenant"], of["limits"] is None) for of in everybody["tenants"]] == [
        ("acme", False),
        ("globex", False),
        ("team/ci", True),
    ]
