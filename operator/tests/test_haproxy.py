"""The rendered configuration in a real HAProxy."""

import base64
import http.client
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from e2e.ports import free_port
from proofgate.haproxy_sidecar.ring import HashRing

from proofgate_operator.build.haproxy import render_config
from proofgate_operator.build.haproxy_config import MAX_ROUTED_TENANT, TokenIssuer
from tests.certificates import write_certificate
from tests.gateways import DEFAULTS, gateway
from tests.haproxy_bench import (
    KEYS,
    PATIENCE,
    TENANTS,
    Arrival,
    Bench,
    Worker,
    bench,
    eventually,
    ready_bench,
    write_map,
    write_owners,
)

pytestmark = pytest.mark.haproxy

FIRST = KEYS["tenant-0"][0]
FRAMING_CASES = Path(__file__).parents[2] / "e2e" / "framing" / "cases.json"


@pytest.fixture(scope="module")
def shared(haproxy_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One HAProxy with workers, for all tests that do not change them."""
    with ready_bench(haproxy_binary, tmp_path_factory.mktemp("shared")) as running:
        yield running


def table(haproxy: Bench, which: int = 0) -> dict[str, int]:
    """Return the worker of every tenant, by its first or second key."""
    return {tenant: haproxy.worker_of(keys[which]) for tenant, keys in KEYS.items()}


EVERYTHING = {
    "tls": {"certificateSecretRef": {"name": "demo-tls"}},
    "affinity": "Required",
    "accessLog": "All",
    "connectionsPerSource": 100,
}


@pytest.mark.parametrize("replicas", [1, 2, 64])
@pytest.mark.parametrize("balancer", [{}, EVERYTHING], ids=["as it comes", "with everything"])
def test_the_configuration_of_a_gateway_loads(
    haproxy_binary: str, tmp_path: Path, replicas: int, balancer: dict[str, Any]
) -> None:
    write_map(tmp_path / "tenants.map", KEYS)
    write_owners(tmp_path / "owners.map", {})
    (tmp_path / "routing.map").write_text("routing-key 0123456789abcdef\n")
    # HAProxy 2.6 warns at its start without this file.
    (tmp_path / "servers.state").write_text("1\n")
    write_certificate(tmp_path / "tls.pem")
    text = render_config(gateway(replicas=replicas, loadBalancer=balancer), DEFAULTS)
    for folder in ("/etc/proofgate-tenants", "/etc/proofgate-tls", "/run/proofgate-haproxy"):
        text = text.replace(folder, str(tmp_path))
    config = tmp_path / "haproxy.cfg"
    config.write_text(text)
    result = subprocess.run([haproxy_binary, "-c", "-f", str(config)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "[WARNING]" not in result.stderr


def test_a_haproxy_of_the_tests_runs_in_a_folder_with_a_long_path(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    with bench(haproxy_binary, folder, workers, KEYS) as running:
        running.set_ready(3)
        assert running.worker_of(FIRST) in range(3)


def test_the_ring_is_the_one_that_the_auditors_page_draws(shared: Bench) -> None:
    ring = HashRing(worker.ordinal for worker in shared.workers)
    assert table(shared) == {tenant: ring.shard_for(tenant) for tenant in KEYS}


def test_a_tenant_has_one_worker_whatever_key_it_uses(shared: Bench) -> None:
    assert table(shared, 0) == table(shared, 1)


def test_tenants_that_share_limits_have_one_worker_wherever_their_names_would_be(
    haproxy: Bench, haproxy_binary: str
) -> None:
    groups = {tenant: f"team-{number % 4}_gold" for number, tenant in enumerate(KEYS)}
    haproxy.owner_map.write_text("".join(f"{tenant} ..{group}\n" for tenant, group in groups.items()))
    haproxy.restart(haproxy_binary)
    haproxy.set_ready(3)
    ring = HashRing(worker.ordinal for worker in haproxy.workers)
    assert table(haproxy) == {tenant: ring.shard_for(group) for tenant, group in groups.items()}
    haproxy.set_ready(2)
    found = table(haproxy)
    for number in range(4):
        same = {found[tenant] for tenant, group in groups.items() if group == f"team-{number}_gold"}
        assert len(same) == 1


def test_every_worker_has_its_share(shared: Bench) -> None:
    shares = list(table(shared).values())
    assert all(shares.count(ordinal) > TENANTS / 6 for ordinal in range(3))


def test_scaling_moves_only_the_share_that_it_must(haproxy: Bench) -> None:
    haproxy.set_ready(2)
    two = table(haproxy)
    haproxy.set_ready(3)
    three = table(haproxy)
    moved = [tenant for tenant in two if two[tenant] != three[tenant]]
    assert all(three[tenant] == 2 for tenant in moved), "a tenant moves only to the new worker"
    assert len(moved) < TENANTS * 0.43
    haproxy.set_ready(2)
    assert table(haproxy) == two


def head(*headers: str, key: str | None = FIRST, line: str = "GET / HTTP/1.1") -> bytes:
    """Return a request head; the key's header comes last."""
    lines = [line, "Host: gw", *headers, *([f"Authorization: Bearer {key}"] if key is not None else [])]
    return "\r\n".join([*lines, "", ""]).encode()


def test_the_worker_is_told_the_tenant_that_was_routed_for(shared: Bench) -> None:
    told = {tenant: {shared.ask(key)[2]["tenant"] for key in keys} for tenant, keys in KEYS.items()}
    assert told == {tenant: {tenant} for tenant in KEYS}


@pytest.mark.parametrize("key", [None, "sk-nobody-knows-0123456789", ""])
def test_connections_without_a_known_key_are_spread_and_their_worker_is_told(
    shared: Bench, key: str | None
) -> None:
    asked = [shared.ask(key)[2] for _ in range(90)]
    assert {body["tenant"] for body in asked} == {"-"}
    shares = [sum(body["worker"] == ordinal for body in asked) for ordinal in range(3)]
    assert min(shares) > 10, shares


@pytest.mark.parametrize(
    "line",
    [
        "authorization:bearer {}",
        "AUTHORIZATION: \t BEARER {} \t",
        "X-First: Authorization: Bearer sk-none\r\nAuthorization: Bearer {}",
        "x-api-key: {}",
        "X-Api-Key:{}",
        "api-key: \t {} \t",
        "Api-Key: {}",
        "x-goog-api-key: {}",
        "X-GOOG-API-KEY: {}",
        "X-First: x-api-key: sk-none\r\nX-Key: sk-none\r\nx-api-key: {}",
        "Authorization: Bearer {0}\r\nx-api-key: {0}\r\napi-key: {0}\r\nx-goog-api-key: {0}",
    ],
)
def test_a_key_is_found_however_a_worker_would_accept_its_line(shared: Bench, line: str) -> None:
    sent = head(line.format(FIRST), "X-Last: 1", key=None)
    assert shared.arrival(sent).tenant == "tenant-0"


@pytest.mark.parametrize(
    "lines",
    [
        f"X-Note: 1\r\n Authorization: Bearer {FIRST}",
        f"X-Authorization: Bearer {FIRST}",
        f"Authorization: Basic {FIRST}",
        f"Authorization: Bearer {FIRST} more",
        f"Authorization: Bearer\r\n {FIRST}",
        f"X-Note: 1\r\n x-api-key: {FIRST}",
        f"x-api-keys: {FIRST}",
        f"x-my-api-key: {FIRST}",
        f"goog-api-key: {FIRST}",
        f"x-api-key: Bearer {FIRST}",
        f"x-api-key : {FIRST}",
        f"api-key:\r\n {FIRST}",
        f"x_api_key: {FIRST}",
        f"Authorization: {FIRST}",
    ],
    ids=[
        "folded into another line",
        "another name",
        "another scheme",
        "two words",
        "folded",
        "a key field folded into another line",
        "a longer name",
        "a name with another word",
        "a name without its beginning",
        "a scheme where none belongs",
        "a space before the colon",
        "a folded key field",
        "an imitated name",
        "no scheme",
    ],
)
def test_what_only_looks_like_a_key_is_none(shared: Bench, lines: str) -> None:
    assert shared.arrival(head(lines, key=None)).tenant == "-"


@pytest.mark.parametrize(
    "header",
    ["X-Proofgate-Tenant: tenant-1", "X-Unique-ID: tenant-1", "Forwarded: for=tenant-1"],
)
def test_a_tenant_named_by_the_client_changes_nothing(shared: Bench, header: str) -> None:
    assert shared.worker_of(KEYS["tenant-1"][0]) != shared.worker_of(FIRST), (
        "both tenants have the same worker, so the test would be inconclusive"
    )
    sent = head(header)
    assert shared.arrival(sent) == Arrival(shared.worker_of(FIRST), "tenant-0", sent)
    unknown = shared.arrival(head(header, key="sk-nobody-knows-0123456789"))
    assert unknown.tenant == "-"


def test_a_text_proxy_header_of_the_client_changes_nothing(shared: Bench) -> None:
    sent = b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + head()
    assert shared.arrival(sent) == Arrival(shared.worker_of(FIRST), "tenant-0", sent)


def test_a_binary_proxy_header_of_the_client_names_no_tenant(shared: Bench) -> None:
    payload = bytes([127, 0, 0, 1, 127, 0, 0, 1, 0, 1, 0, 2]) + b"\x05\x00\x08tenant-1"
    sent = b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + len(payload).to_bytes(2, "big") + payload + head()
    found = shared.arrival(sent)
    assert (found.tenant, found.sent) == ("-", sent)


@pytest.mark.parametrize("field", ["authorization", "x-api-key", "api-key", "x-goog-api-key"])
def test_a_key_in_any_field_reaches_the_worker_of_its_tenant(shared: Bench, field: str) -> None:
    scheme = "Bearer " if field == "authorization" else ""
    for tenant in ("tenant-0", "tenant-1", "tenant-2"):
        for key in KEYS[tenant]:
            sent = head(f"{field}: {scheme}{key}", key=None)
            assert shared.arrival(sent) == Arrival(shared.worker_of(KEYS[tenant][0]), tenant, sent)


KEY_LINES = [
    f"Authorization: Bearer {FIRST}",
    f"x-api-key: {FIRST}",
    f"api-key: {FIRST}",
    f"x-goog-api-key: {FIRST}",
]


@pytest.mark.parametrize("line", KEY_LINES)
def test_a_key_in_a_request_line_is_not_used(shared: Bench, line: str) -> None:
    for request_line in (f"GET /?{line} HTTP/1.1", line):
        assert shared.arrival(head(key=None, line=request_line)).tenant == "-"


@pytest.mark.parametrize("line", KEY_LINES)
def test_a_key_in_a_body_is_not_used(shared: Bench, line: str) -> None:
    body = f"x\r\n{line}\r\n\r\n".encode()
    length = f"Content-Length: {len(body)}"
    without = head(length, line="POST / HTTP/1.1", key=None)
    assert shared.arrival(without + body).tenant == "-"
    assert shared.arrival(without, body).tenant == "-"
    assert shared.arrival(head(length, key=KEYS["tenant-1"][0]) + body).tenant == "tenant-1"


def test_a_connection_stays_with_the_tenant_of_its_first_head(shared: Bench) -> None:
    """The worker refuses the second request, because its key belongs to another tenant."""
    other = head(key=KEYS["tenant-1"][0])
    found = shared.arrival(head() + other)
    assert found == Arrival(shared.worker_of(FIRST), "tenant-0", head() + other)
    assert shared.arrival(head(), other) == found


RAW = {
    "a folded line": head("X-Note: one\r\n two"),
    "bare line feeds": head().replace(b"\r\n", b"\n"),
    "one bare line feed": head("X-Note: one\nX-Other: two"),
    "an empty first line": b"\r\n" + head(),
    "chunk extensions": head("Transfer-Encoding: chunked") + b"5;a=b\r\nhello\r\n0;c\r\n\r\n",
    "a length next to a coding": head("Content-Length: 3", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "two equal lengths": head("Content-Length: 2", "Content-Length: 2") + b"{}",
    "two hosts": head("Host: other"),
    "two keys": head(f"Authorization: Bearer {KEYS['tenant-1'][0]}"),
    "two keys in two fields": head(f"x-api-key: {KEYS['tenant-1'][0]}"),
    "a name that is no token": head("X Bad@: 1"),
    "NUL in a value": head("X-Note: a\0b"),
    "bytes above ASCII": head().replace(b"Host: gw", b"Host: gw\r\nX-Note: \xff\xc3\x28"),
    "a method without a body": head(line="DELETE /v1/files/file-1 HTTP/1.1"),
    "HTTP/1.0": head(line="GET / HTTP/1.0"),
    "HTTP/2 by prior knowledge": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "no HTTP": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
    "half a head": head()[:-2],
    "two requests at once": head("Content-Length: 2") + b"{}" + head("X-Note: second"),
}


@pytest.mark.parametrize("sent", RAW.values(), ids=RAW.keys())
def test_a_worker_gets_the_bytes_exactly_as_they_were_sent(shared: Bench, sent: bytes) -> None:
    assert shared.arrival(sent).sent == sent
    assert shared.arrival(*(sent[at : at + 1] for at in range(len(sent)))).sent == sent


def test_every_framing_case_reaches_a_worker_as_it_was_sent(shared: Bench) -> None:
    cases = json.loads(FRAMING_CASES.read_text())["cases"]
    sent = {case["id"]: case["raw"].encode("latin-1") for case in cases}
    changed = [name for name, raw in sent.items() if raw and shared.arrival(raw).sent != raw]
    assert changed == []


@pytest.mark.parametrize(
    "before",
    [["X-Long: " + "v" * 16_000], [f"X-{number}: v" for number in range(62)]],
    ids=["a long line", "many lines"],
)
def test_the_key_is_found_at_the_end_of_the_largest_head(shared: Bench, before: list[str]) -> None:
    body = b"{" * 300_000
    for sent in (
        head("Content-Length: 300000", *before) + body,
        head("Content-Length: 300000", *before, f"x-goog-api-key: {FIRST}", key=None) + body,
    ):
        assert shared.arrival(sent) == Arrival(shared.worker_of(FIRST), "tenant-0", sent)


def test_a_key_in_pieces_is_waited_for(shared: Bench) -> None:
    sent = head()
    middle = sent.index(FIRST.encode()) + 5
    assert shared.arrival(sent[:middle], sent[middle:]) == shared.arrival(sent)
    assert shared.arrival(sent).tenant == "tenant-0"


def test_before_a_head_is_whole_its_pieces_are_looked_through_and_neither_hashed_nor_looked_up(
    shared: Bench,
) -> None:
    """Each byte may arrive alone, and HAProxy then evaluates every rule above the one that waits."""
    config = (shared.folder / "haproxy.cfg").read_text().splitlines()
    rules = [line.strip() for line in config if line.strip().startswith("tcp-request content ")]
    whole = next(number for number, rule in enumerate(rules) if "set-var(txn.whole)" in rule)
    assert rules[0] == "tcp-request content set-var(txn.received) req.len" and whole == 1
    assert not any(costly in rules[whole] for costly in ("regsub", "sha2", "map(", "jwt"))
    sent = head()
    assert shared.arrival(*(sent[at : at + 1] for at in range(len(sent)))) == shared.arrival(sent)


def token(**claims: Any) -> str:
    """Return a token that names a tenant; HAProxy does not check its signature."""
    parts = ({"alg": "EdDSA", "typ": "JWT"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "c2lnbmF0dXJl"])


ISSUERS = (
    TokenIssuer("https://login.example.com/'it'", "tenant"),
    TokenIssuer("-m", "https://example.com/claims/tenant"),
)


@pytest.fixture(scope="module")
def with_tokens(haproxy_binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One HAProxy for all tests of tokens."""
    with ready_bench(haproxy_binary, tmp_path_factory.mktemp("tokens"), issuers=ISSUERS) as running:
        with running.tenant_map.open("a") as entries:
            entries.writelines(f"{tenant} {tenant}\n" for tenant in KEYS)
        running.restart(haproxy_binary)
        running.set_ready(3)
        yield running


def test_a_token_reaches_the_worker_of_the_tenant_that_it_names(with_tokens: Bench) -> None:
    for tenant, (key, _) in list(KEYS.items())[:20]:
        where = with_tokens.worker_of(key)
        for found in (
            token(iss=ISSUERS[0].issuer, tenant=tenant, sub="x"),
            token(**{"iss": ISSUERS[1].issuer, "https://example.com/claims/tenant": tenant}),
        ):
            status, _, told = with_tokens.ask(found)
            assert (status, told["worker"], told["tenant"]) == (200, where, tenant)


@pytest.mark.parametrize("field", ["x-api-key", "api-key", "x-goog-api-key"])
def test_a_token_is_found_wherever_a_key_is(with_tokens: Bench, field: str) -> None:
    where = with_tokens.worker_of(FIRST)
    found = token(iss=ISSUERS[0].issuer, tenant="tenant-0", sub="x")
    told = with_tokens.ask(None, f"{field}: {found}")[2]
    assert (told["worker"], told["tenant"]) == (where, "tenant-0")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://login.example.com", "tenant": "tenant-0"},
        {"tenant": "tenant-0"},
        {"iss": ISSUERS[0].issuer},
        {"iss": ISSUERS[0].issuer, "tenant": "nobody"},
        {"iss": ISSUERS[0].issuer, "tenant": ["tenant-0"]},
        {"iss": ISSUERS[1].issuer, "tenant": "tenant-0"},
        {"iss": ISSUERS[1].issuer, "https://example": {"com/claims/tenant": "tenant-0"}},
    ],
)
def test_a_token_that_names_no_tenant_of_its_issuer_is_routed_for_none(
    with_tokens: Bench, claims: dict[str, Any]
) -> None:
    assert with_tokens.ask(token(**claims))[2]["tenant"] == "-"


def test_the_worker_is_told_the_longest_name_of_a_tenant_whole(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    longest = "n" * 63 + "/" + "t" * (MAX_ROUTED_TENANT - 64)
    with bench(haproxy_binary, tmp_path, workers, {longest: [FIRST]}) as running:
        running.set_ready(len(workers))
        assert running.arrival(head()).tenant == longest


def test_a_tenants_name_in_the_place_of_a_key_is_none(with_tokens: Bench) -> None:
    assert with_tokens.ask("tenant-0")[2]["tenant"] == "-"


def test_without_affinity_connections_go_to_the_worker_with_the_fewest_for_any_tenant(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS, pinned=False) as running, ExitStack() as open_streams:
        running.set_ready(len(workers))
        told = []
        for _ in workers:
            connection = open_streams.enter_context(closing(running.connect()))
            connection.request("GET", "/", headers={"Authorization": f"Bearer {FIRST}"})
            told.append(json.loads(connection.getresponse().read()))
        assert {answer["worker"] for answer in told} == {worker.ordinal for worker in workers}
        assert {answer["tenant"] for answer in told} == {"*"}


def test_behind_a_load_balancer_the_access_log_has_the_address_of_the_client(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    with bench(haproxy_binary, tmp_path, workers, KEYS, accepts_proxy_protocol=True, log_all=True) as running:
        running.set_ready(len(workers))
        arrived = running.arrival(b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n", head())
        assert (arrived.tenant, arrived.sent) == ("tenant-0", head())
        eventually(
            lambda: any(line["client"].startswith("192.0.2.7") for line in running.log()), "the address"
        )


def test_clients_inside_need_no_proxy_header_where_those_outside_do(
    haproxy_binary: str, tmp_path: Path, workers: list[Worker]
) -> None:
    inside = free_port()
    bound = {"accepts_proxy_protocol": True, "internal_bind": f"127.0.0.1:{inside}"}
    with bench(haproxy_binary, tmp_path, workers, KEYS, **bound) as running:
        running.set_ready(len(workers))
        where = replace(running, port=inside)
        status, _, told = where.ask(FIRST)
        assert (status, told["tenant"]) == (200, "tenant-0")
        outside = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n"
        arrived = running.arrival(outside, head())
        assert (arrived.tenant, arrived.worker) == ("tenant-0", told["worker"])
        # On this port, HAProxy does not interpret such a header but forwards it as the client's bytes.
        assert where.arrival(outside, head()).sent == outside + head()
        with pytest.raises((OSError, http.client.HTTPException)):
            running.ask(FIRST)


@pytest.mark.parametrize("key", [FIRST, None], ids=["known", "no key"])
def test_without_a_worker_the_answer_is_503_and_says_when_to_come_back(
    haproxy: Bench, key: str | None
) -> None:
    haproxy.set_ready(0)
    status, headers, body = haproxy.ask(key)
    assert status == 503
    assert headers["content-type"] == "application/json"
    assert (headers["retry-after"], headers["connection"]) == ("1", "close")
    assert body["error"]["code"] == "no_worker_available"
    assert body["error"].keys() == {"message", "type", "param", "code"}
    assert haproxy.metrics("/healthz")[0] == 200


def test_a_request_that_reached_a_worker_is_never_sent_again(haproxy: Bench) -> None:
    """A worker dies without an answer: the client only sees that its connection ended."""
    with closing(http.client.HTTPConnection("127.0.0.1", haproxy.port, timeout=PATIENCE)) as connection:
        connection.request("POST", "/", body=b"{}", headers={"Authorization": f"Bearer {FIRST}"})
        with pytest.raises(http.client.RemoteDisconnected):
            connection.getresponse()
    assert sum(worker.seen for worker in haproxy.workers) == 1


def test_a_stream_passes_as_it_comes_and_a_stopping_haproxy_finishes_it(haproxy: Bench) -> None:
    authorization = {"Authorization": f"Bearer {FIRST}"}
    with (
        closing(http.client.HTTPConnection("127.0.0.1", haproxy.port, timeout=PATIENCE)) as kept,
        closing(http.client.HTTPConnection("127.0.0.1", haproxy.port, timeout=PATIENCE)) as stream,
    ):
        kept.request("GET", "/", headers=authorization)
        kept.getresponse().read()
        stream.request("GET", "/stream", headers=authorization)
        response = stream.getresponse()
        assert response.readline() == b"data: one\n"
        haproxy.process.send_signal(signal.SIGUSR1)
        eventually(lambda: haproxy.metrics("/healthz")[0] == 0, "HAProxy no longer listens")
        # The pod's hook sends the signal repeatedly.
        haproxy.process.send_signal(signal.SIGUSR1)
        assert haproxy.process.poll() is None
        kept.request("GET", "/", headers=authorization)
        assert kept.getresponse().read(), "an open connection is still served"
        for worker in haproxy.workers:
            worker.release.set()
        assert b"data: [DONE]" in response.read()
        stream.close()
        kept.close()
        eventually(lambda: haproxy.process.poll() is not None, "HAProxy ends after its last connection")
