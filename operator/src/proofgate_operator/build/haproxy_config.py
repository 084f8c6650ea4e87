"""haproxy.cfg: the tenant of a request, found from its key, decides which worker gets it.

Written for HAProxy 2.6 and later. The ring of `hash-type consistent` is made from server ids, so every
replica of HAProxy, before and after any restart, sends a tenant to the same worker; a worker that is down or
has no address is simply not on the ring, and gets its tenants back when it returns. `hash-balance-factor`
stays away: it would send a busy worker's tenants to another one.
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Server:
    """One worker as HAProxy sees it."""

    ordinal: int
    address: str
    port: int
    health_port: int


@dataclass(frozen=True)
class Balancer:
    """Everything that differs between two configurations.

    `silence_seconds`: longest wait for the next byte of a response. `hard_stop_seconds`: when a stopping
    process cuts the streams it still has. `resolve`: whether addresses are names for the resolver, or
    numbers.
    """

    servers: tuple[Server, ...]
    traffic_bind: str
    metrics_bind: str
    tenant_map: str
    silence_seconds: int
    hard_stop_seconds: int
    resolve: bool = True


def strict_framing_rules() -> list[str]:
    """Return the frontend's lines that make HAProxy refuse what a worker would refuse.

    This is the one place for them: whatever HAProxy would repair or forward in another form than it came in
    is refused here, so that no two parsers on the way read a message differently.
    """
    return [
        # Clear-text HTTP/2 by prior knowledge would be translated into requests that no client wrote.
        "option disable-h2-upgrade",
        "option http-restrict-req-hdr-names reject",
        f"http-request {_openai_error(400, 'HTTP/1.1 is required', 'unsupported_version')} if !HTTP_1.1",
        f"http-request {_openai_error(400, 'one Host header is required', 'invalid_host')}"
        " unless { req.fhdr_cnt(host) eq 1 }",
    ]


def _quoted(text: str) -> str:
    """Return one haproxy.cfg word; inside single quotes nothing is special."""
    assert "'" not in text, text
    return f"'{text}'"


def _error_body(message: str, code: str, kind: str) -> str:
    return json.dumps(
        {"error": {"message": message, "type": kind, "param": None, "code": code}}, separators=(",", ":")
    )


def _openai_error(
    status: int, message: str, code: str, kind: str = "invalid_request_error", headers: str = ""
) -> str:
    """Return a `return` action (or `http-error` tail) that answers in the shape OpenAI clients understand."""
    body = _quoted(_error_body(message, code, kind))
    return f"return status {status} content-type application/json string {body}{headers}"


_CLOSE = " hdr Connection close"


def _http_error(status: int, message: str, code: str, headers: str = "") -> str:
    """Return an `http-error` line: what HAProxy answers when it gives up itself."""
    body = _quoted(_error_body(message, code, "api_error"))
    return f"http-error status {status} content-type application/json string {body}{headers}"


def _own_errors() -> list[str]:
    retry = " hdr Retry-After 1"
    return [
        _http_error(400, "the request is not valid HTTP", "invalid_http"),
        _http_error(408, "the request did not arrive in time", "request_timeout"),
        _http_error(502, "the worker closed the connection", "worker_failed", retry),
        _http_error(503, "no worker is available", "no_worker_available", retry),
        _http_error(504, "the worker did not answer in time", "worker_timeout", retry),
    ]


def _global(balancer: Balancer) -> list[str]:
    return [
        "log stdout format raw local0 notice",
        # Connections follow from the files a process may open; a container may allow millions, and HAProxy
        # would reserve memory for each.
        "fd-hard-limit 10000",
        f"hard-stop-after {balancer.hard_stop_seconds}s",
    ]


def _resolvers() -> list[str]:
    return [
        "parse-resolv-conf",
        "resolve_retries 3",
        "timeout resolve 1s",
        "timeout retry 1s",
        # A restarted worker has a new address at once; a name server that is away changes nothing.
        "hold valid 1s",
        "hold obsolete 2s",
        "hold nx 5s",
        "hold timeout 10m",
        "hold refused 10m",
        "hold other 10m",
    ]


def _defaults(balancer: Balancer) -> list[str]:
    return [
        "mode http",
        "log global",
        "option httplog",
        # The ledger records every exchange; the log is for what goes wrong.
        "option dontlog-normal",
        "option dontlognull",
        "timeout http-request 10s",
        # Also how long a stopping process waits for a client that keeps its connection after its last stream.
        "timeout http-keep-alive 15s",
        "timeout connect 2s",
        "timeout queue 5s",
        f"timeout client {balancer.silence_seconds}s",
        "timeout client-fin 30s",
        f"timeout server {balancer.silence_seconds}s",
        "timeout check 1s",
        "timeout tunnel 1h",
        # A request that may have reached a worker is never sent again, and never to another worker.
        "retries 2",
        "retry-on conn-failure",
        "no option redispatch",
        *_own_errors(),
    ]


def _gateway(balancer: Balancer) -> list[str]:
    one_key = _openai_error(
        400, "one Authorization header is allowed", "duplicate_authorization", headers=_CLOSE
    )
    unknown = _openai_error(
        401, "Incorrect API key provided.", "invalid_api_key", headers=f"{_CLOSE} hdr WWW-Authenticate Bearer"
    )
    return [
        f"bind {balancer.traffic_bind}",
        *strict_framing_rules(),
        f"http-request {one_key} if {{ req.fhdr_cnt(authorization) gt 1 }}",
        # The tenant comes from the key and from nothing else that a client can write.
        "http-request set-var(txn.tenant)"
        f" http_auth_bearer,sha2(256),hex,lower,map_str({balancer.tenant_map})",
        f"http-request {unknown} unless {{ var(txn.tenant) -m found }}",
        "http-request del-header x-proofgate- -m beg",
        "default_backend workers",
    ]


def _workers(balancer: Balancer) -> list[str]:
    resolution = " init-addr none resolvers dns resolve-prefer ipv4" if balancer.resolve else ""
    return [
        # `var`, not a header: what the frontend found is what is hashed.
        "balance hash var(txn.tenant)",
        "hash-type consistent sdbm avalanche",
        "option httpchk",
        "http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host worker",
        "http-check expect status 200",
        # 16 points per unit of weight on the ring: at 100 the shares of three workers differ by a few
        # percent.
        f"default-server weight 100 check inter 1s fall 2 rise 2{resolution}",
        *(
            f"server worker-{server.ordinal} {server.address}:{server.port}"
            f" id {server.ordinal + 1} port {server.health_port}"
            for server in balancer.servers
        ),
    ]


def _metrics(balancer: Balancer) -> list[str]:
    return [
        f"bind {balancer.metrics_bind}",
        "http-request use-service prometheus-exporter if { path /metrics }",
        "http-request return status 200 content-type text/plain string alive if { path /healthz }",
        "http-request return status 200 content-type text/plain string ready"
        " if { path /readyz } { nbsrv(workers) gt 0 }",
        "http-request return status 503 content-type text/plain string no-worker if { path /readyz }",
        "http-request return status 404",
    ]


def render(balancer: Balancer) -> str:
    """Return the whole configuration file."""
    sections = [("global", _global(balancer))]
    if balancer.resolve:
        sections.append(("resolvers dns", _resolvers()))
    sections += [
        ("defaults", _defaults(balancer)),
        ("frontend gateway", _gateway(balancer)),
        ("backend workers", _workers(balancer)),
        ("frontend metrics", _metrics(balancer)),
    ]
    text = "\n\n".join("\n".join([head, *(f"    {line}" for line in body)]) for head, body in sections)
    return f"# Generated by proofgate-operator; changes are overwritten.\n{text}\n"
