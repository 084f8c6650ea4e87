"""Keys of GatewayTenants in a starting HAProxy, which knows them before it accepts a connection."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import Agent, agent, tenant_of
from tests.haproxy_bench import KEYS, Bench, eventually, ready_bench

pytestmark = pytest.mark.haproxy

TENANT = "team-a/chat"
KEY, OTHER = "sk-of-a-gateway-tenant-0123456789", "sk-of-the-same-tenant-0123456789"
OWN = KEYS["tenant-0"][0]


def write_shard(haproxy: Bench, *keys: str) -> None:
    """Replace the shard of these keys as the kubelet does."""
    digests = sorted(hashlib.sha256(key.encode()).hexdigest() for key in keys)
    folder = haproxy.shards / "00"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "new").write_text("".join(f"{digest} {TENANT} ci\n" for digest in digests))
    (folder / "new").replace(folder / "keys")


def keeps(haproxy: Bench, key: str) -> bool:
    return f"{hashlib.sha256(key.encode()).hexdigest()} {TENANT}\n" in kept(haproxy).read_text()


def kept(haproxy: Bench) -> Path:
    return haproxy.kept / "tenants.map"


@pytest.fixture
def followed(haproxy_binary: str, tmp_path: Path) -> Iterator[tuple[Bench, Agent]]:
    with ready_bench(haproxy_binary, tmp_path, attached=True) as haproxy:
        write_shard(haproxy, KEY)
        with agent(haproxy) as beside:
            eventually(lambda: keeps(haproxy, KEY), "the key is in the map that HAProxy starts from")
            yield haproxy, beside


def test_a_haproxy_that_starts_knows_keys_of_gateway_tenants_before_anybody_tells_it(
    haproxy_binary: str, followed: tuple[Bench, Agent]
) -> None:
    haproxy, beside = followed
    with beside.frozen():
        haproxy.restart(haproxy_binary)
        haproxy.set_ready(3)
        assert (tenant_of(haproxy, KEY), tenant_of(haproxy, OWN)) == (TENANT, "tenant-0")


def test_what_changes_while_haproxy_is_dead_is_in_the_map_that_it_starts_from(
    haproxy_binary: str, followed: tuple[Bench, Agent]
) -> None:
    haproxy, beside = followed
    haproxy.stop()
    write_shard(haproxy, OTHER)
    eventually(lambda: keeps(haproxy, OTHER) and not keeps(haproxy, KEY), "the map matches the shard")
    with beside.frozen():
        haproxy.start(haproxy_binary)
        haproxy.set_ready(3)
        assert (tenant_of(haproxy, OTHER), tenant_of(haproxy, KEY)) == (TENANT, "-")


def test_the_map_can_be_read_by_nobody_else(followed: tuple[Bench, Agent]) -> None:
    haproxy, _ = followed
    assert kept(haproxy).stat().st_mode & 0o777 == 0o440


def test_a_haproxy_whose_agent_wrote_nothing_yet_starts_from_the_map_of_the_secret(
    haproxy_binary: str, tmp_path: Path
) -> None:
    with ready_bench(haproxy_binary, tmp_path, attached=True) as haproxy:
        assert kept(haproxy).read_text() == haproxy.tenant_map.read_text()
        assert tenant_of(haproxy, OWN) == "tenant-0"
