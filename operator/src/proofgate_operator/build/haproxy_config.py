"""haproxy.cfg: the tenant of a connection, found from the key in its first head, decides on its worker.

HAProxy does not speak HTTP here, so no two parsers on the way can read a message differently: in `mode http`
it would repair what a worker refuses (see e2e/framing/README.md). The worker learns in the PROXY header which
tenant the choice was made for, and turns away a later request of another tenant on the same connection.

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


#: Twice the largest head of a worker, so that a whole head is always in view.
_BUFFER_BYTES = 32768
_NO_WORKER = {
    "error": {
        "message": "No gateway worker can be reached. Try again later.",
        "type": "api_error",
        "param": None,
        "code": "no_worker_available",
    }
}
#: Finds the bearer token in the header lines of a head, never in a body. Without a match the text stays as it
#: is, and no map holds its digest.
_KEY = (
    r"""'regsub("(?s)^[^\r\n]+\r\n(?:[^\r\n]+\r\n)*?"""
    r"""authorization:[ \t]*bearer[ \t]+([^\r\n \t]+)[ \t]*\r\n.*$","\1",i)'"""
)
#: A head that is complete, or that a worker refuses as it stands: there is nothing to wait for. Text samples
#: end at a NUL, hence the hexadecimal search for control bytes.
_ENOUGH = (
    r'{ req.payload(0,0) -m sub "\r\n\r\n" }'
    r' || { req.payload(0,0) -m reg "(^|[^\r])\n" }'
    r' || { req.payload(0,0),hex -m reg "^(?:[2-689A-F].|7[0-9A-E]|0[9AD])*+." }'
)


def _global(balancer: Balancer) -> list[str]:
    return [
        "log stdout format raw local0 notice",
        f"tune.bufsize {_BUFFER_BYTES}",
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
        "mode tcp",
        "log global",
        "option tcplog",
        # The ledger records every exchange; the log is for what goes wrong.
        "option dontlog-normal",
        "option dontlognull",
        "option clitcpka",
        "timeout connect 2s",
        "timeout queue 5s",
        # The worker has the real deadlines; these only reap connections that it forgot.
        f"timeout client {balancer.silence_seconds}s",
        "timeout client-fin 30s",
        f"timeout server {balancer.silence_seconds}s",
        "timeout check 1s",
        # Only connecting is tried again, and only to the same worker: another one does not own the tenant.
        "retries 3",
        "no option redispatch",
    ]


def _gateway(balancer: Balancer) -> list[str]:
    return [
        f"bind {balancer.traffic_bind}",
        "tcp-request inspect-delay 10s",
        # The tenant comes from the key and from nothing else that a client can write. `req.payload` is raw:
        # `req.hdr` would parse, and unfold folded lines in the very bytes that are passed on.
        "tcp-request content set-var(txn.tenant)"
        f" req.payload(0,0),{_KEY},sha2(256),hex,lower,map({balancer.tenant_map})",
        f"tcp-request content accept if {_ENOUGH}",
        # Nothing was sent: a connection that is only kept open belongs to nobody.
        "tcp-request content reject if WAIT_END { req.len eq 0 }",
        "tcp-request content accept if WAIT_END",
        # Goes to the worker in the PROXY header; "-" for a key that is in no tenant's Secret.
        "unique-id-format %[var(txn.tenant,-)]",
        "use_backend unavailable if { nbsrv(workers) eq 0 }",
        "default_backend workers",
    ]


def _workers(balancer: Balancer) -> list[str]:
    resolution = " init-addr none resolvers dns resolve-prefer ipv4" if balancer.resolve else ""
    return [
        # A connection without a known key goes round robin: refusing it is any worker's work.
        "balance hash var(txn.tenant)",
        "hash-type consistent sdbm avalanche",
        "option httpchk",
        "http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host worker",
        "http-check expect status 200",
        # 16 points per unit of weight on the ring: at 100 the shares of three workers differ by a few
        # percent.
        f"default-server weight 100 check inter 1s fall 2 rise 2{resolution}"
        " send-proxy-v2 proxy-v2-options unique-id",
        *(
            f"server worker-{server.ordinal} {server.address}:{server.port}"
            f" id {server.ordinal + 1} port {server.health_port}"
            for server in balancer.servers
        ),
    ]


def _unavailable() -> list[str]:
    """Return the one answer that HAProxy gives itself, on a socket that has no file."""
    body = json.dumps(_NO_WORKER, separators=(",", ":"))
    return [
        "mode http",
        "bind abns@unavailable",
        "option disable-h2-upgrade",
        "timeout http-request 5s",
        "timeout client 5s",
        f"http-request return status 503 content-type application/json string '{body}'"
        " hdr Retry-After 1 hdr Connection close",
    ]


def _metrics(balancer: Balancer) -> list[str]:
    return [
        "mode http",
        f"bind {balancer.metrics_bind}",
        "timeout http-request 5s",
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
        ("backend unavailable", ["server local abns@unavailable"]),
        ("frontend unavailable", _unavailable()),
        ("frontend metrics", _metrics(balancer)),
    ]
    text = "\n\n".join("\n".join([head, *(f"    {line}" for line in body)]) for head, body in sections)
    return f"# Generated by proofgate-operator; changes are overwritten.\n{text}\n"
