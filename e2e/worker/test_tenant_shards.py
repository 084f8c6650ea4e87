"""Tenants and keys are added and removed in shards while a worker serves, and every record names the valid shards."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from e2e.evidence import configuration
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.tenant_shards import TenantShards, digest_of, shard_of

KEY = "team-key-0123456789abcdef"
OTHER_KEY = "other-key-0123456789abcdef"
TENANT = "team-a/chat"


@contextmanager
def gateway_with_shards(folder: Path) -> Iterator[tuple[LocalGateway, TenantShards]]:
    """A worker with the plans gold (two requests a minute) and silver; its shards contain one tenant."""
    shards = TenantShards(folder / "tenants")
    shards.add("team-b/chat", "silver", OTHER_KEY)
    shards.write()
    settings = {
        "plans": [{"name": "gold", "limits": {"requestsPerMinute": 2}}, {"name": "silver"}],
        "tenantShards": {"directory": str(shards.folder)},
    }
    with local_gateway(folder, settings=settings) as gateway:
        yield gateway, shards


def connect(gateway: LocalGateway) -> closing[http.client.HTTPConnection]:
    """A connection that is closed at the end of the block."""
    return closing(http.client.HTTPConnection(gateway.address, timeout=PATIENCE))


def ask_once(gateway: LocalGateway, key: str) -> int:
    """Sends one chat completion on a new connection; returns its status."""
    with connect(gateway) as connection:
        return ask(connection, key)


def ask(connection: http.client.HTTPConnection, key: str) -> int:
    """Sends one chat completion on a connection that stays open; returns its status."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
    response = connection.getresponse()
    response.read()
    return response.status


def follow(gateway: LocalGateway, **wanted: int) -> None:
    """Waits until the worker has loaded shards with these numbers of keys or refused entries."""

    def taken() -> bool:
        shards = gateway.status()["tenant_shards"]
        return all(
            (len(shards[name]) if name == "refused" else shards[name]) == count for name, count in wanted.items()
        )

    wait_until(taken, PATIENCE, f"the worker holds {wanted}")


def test_a_key_is_served_within_seconds_and_refused_when_it_is_gone_on_a_kept_connection(folder: Path) -> None:
    with gateway_with_shards(folder) as (gateway, shards), connect(gateway) as kept:
        assert ask(kept, OTHER_KEY) == 200, "from the start on"
        socket = kept.sock
        shards.add(TENANT, "silver", KEY)
        follow(gateway, keys=2, tenants=2)
        assert ask(kept, KEY) == 200
        shards.remove_key(KEY)
        follow(gateway, keys=1)
        assert kept.sock is socket, "it was kept open"
        assert ask(kept, KEY) == 401
        assert ask_once(gateway, KEYS["acme"]) == 200
        assert ask_once(gateway, OTHER_KEY) == 200


def test_records_name_tenant_and_configuration_and_several_shards_are_one_change(folder: Path) -> None:
    with gateway_with_shards(folder) as (gateway, shards):
        begun = gateway.status()["config_digest"]
        assert ask_once(gateway, OTHER_KEY) == 200
        assert shard_of(digest_of(KEY)) != shard_of(digest_of(TENANT))
        shards.plans[TENANT], shards.keys[digest_of(KEY)] = "silver", TENANT
        gateway.settings["plans"] = [*gateway.settings["plans"], {"name": "bronze"}]
        shards.write()
        follow(gateway, keys=2, tenants=2)
        changed = gateway.status()["config_digest"]
        assert ask_once(gateway, KEY) == 200
        gateway.write_configuration()
        gateway.admin_text("/reload", method="POST", token=gateway.admin_token)
        after = gateway.status()["config_digest"]
        assert ask_once(gateway, KEY) == 200
        records = gateway.records()
        told = [record["settings"] for record in records if record["kind"] in ("open", "config")]
        plans = [[plan["name"] for plan in configuration(gateway.ledger, settings)["plans"]] for settings in told]
    assert plans == [["gold", "silver"], ["gold", "silver"], ["gold", "silver", "bronze"]]
    assert told[0] == told[1], "only shards had changed"
    assert len({begun, changed, after}) == 3
    assert records[0]["config"] == begun
    assert [record["config"] for record in records if record["kind"] == "config"] == [changed, after]
    admissions = [record for record in records if record["kind"] == "admission"]
    assert [(record["tenant"], record["config"]) for record in admissions] == [
        ("team-b/chat", begun[:16]),
        (TENANT, changed[:16]),
        (TENANT, after[:16]),
    ]


def test_a_bad_shard_stays_as_it_was_and_the_others_go_on(folder: Path) -> None:
    with gateway_with_shards(folder) as (gateway, shards):
        bad = shards.folder / f"{shard_of(digest_of(OTHER_KEY)):02}" / "keys"
        bad.write_text(f"{digest_of(OTHER_KEY)} team-b/chat ci not_after=never\n")
        follow(gateway, refused=1)
        (refused,) = gateway.status()["tenant_shards"]["refused"]
        assert (refused["shard"], refused["file"], refused["line"]) == (shard_of(digest_of(OTHER_KEY)), "keys", 1)
        assert "proofgate_tenant_shards_refused 1\n" in gateway.admin_text("/metrics")
        assert ask_once(gateway, OTHER_KEY) == 200, "what it held before is in force"
        assert shard_of(digest_of(KEY)) != shard_of(digest_of(OTHER_KEY))
        shards.add(TENANT, "gold", KEY)
        follow(gateway, keys=2)
        assert [ask_once(gateway, KEY) for _ in range(3)] == [200, 200, 429]
