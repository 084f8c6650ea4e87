"""haproxy.cfg: the tenant of a connection, found from the key or token in its first head, decides on its
worker.

HAProxy does not speak HTTP here, so no two parsers on the way can read a message differently: in `mode http`
it would repair what a worker refuses (see e2e/framing/README.md). The worker learns in the PROXY header which
tenant the choice was made for, and turns away a later request of another tenant on the same connection.

Written for HAProxy 2.6 and later. The ring of `hash-type consistent` is made from server ids, so every
replica of HAProxy, before and after any restart, sends a tenant to the same worker; a worker that is down or
has no address is simply not on the ring, and gets its tenants back when it returns. `hash-balance-factor`
stays away: it would send a busy worker's tenants to another one. So does `slowstart`: an address that is set
after HAProxy's start counts as a worker that comes up, so for its time a restarted HAProxy would disagree
with the others. A new worker's weight comes from the operator instead, by the agent beside each HAProxy.
"""

from dataclasses import dataclass

from proofgate_operator.build import haproxy_error_responses, haproxy_log


@dataclass(frozen=True)
class Server:
    """One worker as HAProxy sees it."""

    ordinal: int
    address: str
    port: int
    health_port: int


@dataclass(frozen=True)
class ConnectionLimits:
    """Maximum numbers of connections.

    `max_total`: of clients at a time; others wait in the kernel's queue. `max_per_server`: to one worker at a
    time. `max_queued`: waiting for one worker; more are refused at once. `max_new_per_source`: new connections
    of one client address in a second; None: no limit.
    """

    max_total: int
    max_per_server: int
    max_queued: int = 64
    max_new_per_source: int | None = None


@dataclass(frozen=True)
class BackendTls:
    """TLS to the workers: the path of what HAProxy shows, with its key in `<path>.key`, that of the
    authorities, and the DNS name of all workers."""

    certificate: str
    authorities: str
    host: str


@dataclass(frozen=True)
class TokenIssuer:
    """Who signs tokens, and the claim in which they name their tenant."""

    issuer: str
    tenant_claim: str


@dataclass(frozen=True)
class HAProxySettings:
    """Everything that differs between two configurations.

    `tenant_map` and `owner_map` are paths of map files: digest of a key, or a tenant's own name, to tenant,
    and tenant to worker, which the one that stands in for it may follow after OWNER_SEPARATOR, and after
    another one what the ring goes by in the place of the tenant's name. `routing_map` is the path of one with
    the key by which workers know HAProxy, as ROUTING_KEY. `issuers`: whose tokens name tenants. `pinned`:
    whether each tenant has a worker of its own; otherwise connections go to the worker with the fewest.
    `proxied`: whether clients come through a load balancer that writes a PROXY header. `certificate` is the
    path of a chain, with its key in `<path>.key`; None for plain text. `strict`: a tenant whose owner is down
    gets its stand-in and no other worker. `server_timeout_seconds`: longest wait for the next byte of a response.
    `max_header_bytes` and `header_timeout_seconds`: the largest head that a worker takes, and how long a client may
    take for it. `hard_stop_seconds`: when a stopping process cuts the streams it still has. `backend_tls`: TLS to the
    workers; None for connections in clear. `internal_bind`: where clients connect that write no PROXY header,
    beside those that do. `server_state`: addresses are names, whose numbers the agent beside HAProxy sets,
    and leaves at this path for the next start; None where they are numbers.
    """

    servers: tuple[Server, ...]
    traffic_bind: str
    metrics_bind: str
    runtime_socket: str
    tenant_map: str
    owner_map: str
    routing_map: str
    connection_limits: ConnectionLimits
    server_timeout_seconds: int
    hard_stop_seconds: int
    max_header_bytes: int = 16384
    header_timeout_seconds: int = 10
    backend_tls: BackendTls | None = None
    internal_bind: str | None = None
    issuers: tuple[TokenIssuer, ...] = ()
    pinned: bool = True
    accepts_proxy_protocol: bool = False
    certificate: str | None = None
    requires_owner: bool = False
    log_all: bool = False
    server_state: str | None = None


#: Until a worker's address is known, its line is in maintenance at one that nobody has (RFC 5737): of a line
#: without any, HAProxy takes no address while it runs.
_PLACEHOLDER_ADDRESS = "203.0.113.1"
#: In the map of owners, between a worker and the one that stands in for it.
OWNER_SEPARATOR = "."
#: The entry of `routing_map`.
ROUTING_KEY = "routing-key"
#: In the place of a tenant: a worker may serve any of them on the connection.
ANY_TENANT = "*"
#: Characters of the longest tenant that the PROXY header can name: HAProxy keeps 127 of a unique id, and the
#: routing key and a colon take 33 of them.
MAX_ROUTED_TENANT = 94
#: What HAProxy's own answers and metrics take, however short a head may be.
_MIN_BUFFER_BYTES = 32768
#: Connections that HAProxy needs beside those of clients: metrics, probes, its own answers.
_RESERVED_CONNECTIONS = 200
#: The "intermediate" profile of Mozilla's Server Side TLS 5.7; TLS 1.3 has only good ones.
_CIPHERS = ":".join(
    f"ECDHE-{signature}-{cipher}"
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
    for signature in ("ECDSA", "RSA")
)
#: Finds the key in the header lines of a head, never in a body: in the first of the fields in which clients
#: send one. Fields that disagree are the worker's to refuse. Every part of a line ends at a character that
#: the next part cannot begin with, so no line is gone through more than twice. Without a match the text
#: stays as it is, and no map holds its digest.
_EXTRACT_KEY = (
    r"""'regsub("(?s)^[^\r\n]+\r\n(?:[^\r\n]+\r\n)*?"""
    r"""(?:authorization:[ \t]*bearer[ \t]+|(?:x-(?:goog-)?)?api-key:[ \t]*)"""
    r"""([^\r\n \t]+)[ \t]*\r\n.*$","\1",i)'"""
)
#: A head that is complete, or that a worker refuses as it stands: a bare LF or a control byte. There is
#: nothing to wait for. A text sample ends at a NUL, so one that is shorter than the bytes has one.
_HEADER_COMPLETE = (
    r'{ req.payload(0,0) -m reg "\r\n\r\n|(?<!\r)\n|[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]" }'
    r" || { req.payload(0,0),length,sub(txn.received) lt 0 }"
)


def buffer_bytes(head_bytes: int) -> int:
    """Return the size of a buffer: twice the largest head that a worker takes, so that it is always in view
    as a whole."""
    return max(2 * head_bytes, _MIN_BUFFER_BYTES)


def _global(balancer: HAProxySettings) -> list[str]:
    lines = [
        "log stdout format raw local0 info",
        # For the agent beside HAProxy, which shares the folder and the user id.
        f"stats socket {balancer.runtime_socket} mode 600 level admin",
        f"tune.bufsize {buffer_bytes(balancer.max_header_bytes)}",
        f"maxconn {balancer.connection_limits.max_total + _RESERVED_CONNECTIONS}",
        # From it a process that starts knows its workers before it accepts a connection.
        *([f"server-state-file {balancer.server_state}"] if balancer.server_state else []),
        # Where a container may open fewer files, fewer connections are better than none.
        "no strict-limits",
        f"hard-stop-after {balancer.hard_stop_seconds}s",
    ]
    if balancer.certificate:
        lines += [
            f"ssl-default-bind-ciphers {_CIPHERS}",
            # A key for tickets that lives as long as the process would undo forward secrecy.
            "ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets",
        ]
    return lines


def _defaults(balancer: HAProxySettings) -> list[str]:
    return [
        "mode tcp",
        "option clitcpka",
        "timeout connect 2s",
        "timeout queue 5s",
        # The worker has the real deadlines; these only reap connections that it forgot.
        f"timeout client {balancer.server_timeout_seconds}s",
        "timeout client-fin 30s",
        f"timeout server {balancer.server_timeout_seconds}s",
        "timeout check 1s",
        # Only connecting is tried again: what was sent once is never sent twice.
        "retries 3",
        "no option redispatch",
    ]


def _gateway(balancer: HAProxySettings) -> list[str]:
    accepting = " accept-proxy" if balancer.accepts_proxy_protocol else ""
    tls = f" ssl crt {balancer.certificate} alpn http/1.1" if balancer.certificate else ""
    routing_key = f"%[str({ROUTING_KEY}),map({balancer.routing_map})]"
    # Goes to the worker in the PROXY header; "-" for a key that is in no tenant's Secret.
    tenant = "%[var(txn.tenant,-)]" if balancer.pinned else ANY_TENANT
    return [
        f"bind {balancer.traffic_bind}{accepting}{tls}",
        *([f"bind {balancer.internal_bind}{tls}"] if balancer.internal_bind else []),
        f"maxconn {balancer.connection_limits.max_total}",
        *haproxy_log.log_lines(everything=balancer.log_all),
        *_source_limit_rules(balancer.connection_limits),
        f"tcp-request inspect-delay {balancer.header_timeout_seconds}s",
        *(_tenant_lookup_rules(balancer) if balancer.pinned else []),
        "tcp-request content accept if { req.len gt 0 }",
        # A connection that is only kept open belongs to nobody.
        "tcp-request content reject if WAIT_END",
        f"unique-id-format {routing_key}:{tenant}",
        *_rejection_rules(balancer),
        "default_backend workers",
    ]


def _tenant_lookup_rules(balancer: HAProxySettings) -> list[str]:
    """Return what finds the tenant of a connection, and its worker, once its head is there."""
    return [
        # These two are gone through with every piece of a head, and nothing below them is before it is whole.
        "tcp-request content set-var(txn.received) req.len",
        f"tcp-request content set-var(txn.whole) bool(true)"
        f" if {_HEADER_COMPLETE} || {{ req.len gt {balancer.max_header_bytes} }} || WAIT_END",
        # The tenant comes from the key and from nothing else that a client can write. `req.payload` is raw:
        # `req.hdr` would parse, and unfold folded lines in the very bytes that are passed on.
        f"tcp-request content set-var(txn.key) req.payload(0,0),{_EXTRACT_KEY}",
        "tcp-request content set-var(txn.tenant)"
        f" var(txn.key),sha2(256),hex,lower,map({balancer.tenant_map})",
        *(_token_routing_rule(balancer, issuer) for issuer in balancer.issuers),
        f"tcp-request content set-var(txn.owner) {_owner_expression(balancer, 1)}",
        *_backup_rules(balancer),
        *_hash_key_rules(balancer),
        # The worker that the tenant's last connection reached: where this one would have to wait.
        "tcp-request content set-var(txn.last) var(txn.tenant),table_server_id(workers),sub(1)",
    ]


def _token_routing_rule(balancer: HAProxySettings, issuer: TokenIssuer) -> str:
    """Return the rule that routes by a token. It is not verified here: the worker does that, and turns one
    away that names another tenant than it was routed for."""
    # A path's dots part its names (HAProxy's configuration manual, json_query).
    claim = issuer.tenant_claim.replace(".", r"\\.")
    return (
        "tcp-request content set-var(txn.tenant)"
        f""" 'var(txn.key),jwt_payload_query("$.{claim}"),map({balancer.tenant_map})'"""
        " if !{ var(txn.tenant) -m found }"
        f""" {{ 'var(txn.key),jwt_payload_query("$.iss")' -m str -- {_quote(issuer.issuer)} }}"""
    )


def _quote(text: str) -> str:
    """Return a text as one word of the configuration that means nothing but itself."""
    return "'" + text.replace("'", "'\\''") + "'"


def _owner_expression(balancer: HAProxySettings, place: int) -> str:
    """Return what finds a tenant's owner (1), its stand-in (2), or what the ring goes by (3)."""
    return f"var(txn.tenant),map({balancer.owner_map}),field({place},{OWNER_SEPARATOR})"


def _backup_rules(balancer: HAProxySettings) -> list[str]:
    """Return what lets a tenant's stand-in serve it while its owner is down."""
    if not balancer.requires_owner:
        return []
    up = (
        f"{{ var(txn.owner) -m str {name} }} {{ srv_is_up(workers/{name}) }}"
        for name in (server_name(server.ordinal) for server in balancer.servers)
    )
    return [
        *(f"tcp-request content set-var(txn.present) bool(true) if {condition}" for condition in up),
        f"tcp-request content set-var(txn.stand_in) {_owner_expression(balancer, 2)}",
        "tcp-request content set-var(txn.owner) var(txn.stand_in)"
        " if !{ var(txn.present) -m found } { var(txn.stand_in) -m len gt 0 }",
    ]


def _hash_key_rules(balancer: HAProxySettings) -> list[str]:
    """Return what the ring decides by: the tenant, or what it has in common with others that are to be served
    by the same worker."""
    if balancer.requires_owner:
        return []
    return [
        "tcp-request content set-var(txn.ring) var(txn.tenant)",
        f"tcp-request content set-var(txn.group) {_owner_expression(balancer, 3)}",
        "tcp-request content set-var(txn.ring) var(txn.group) if { var(txn.group) -m len gt 0 }",
    ]


def _source_limit_rules(bounds: ConnectionLimits) -> list[str]:
    if bounds.max_new_per_source is None:
        return []
    return [
        "stick-table type ipv6 size 100k expire 10s store conn_rate(1s)",
        "tcp-request connection track-sc0 src",
        f"tcp-request connection reject if {{ sc0_conn_rate gt {bounds.max_new_per_source} }}",
    ]


def _rejection_rules(balancer: HAProxySettings) -> list[str]:
    """Return what is answered here: only before a worker is chosen can HAProxy still answer."""
    unavailable, overloaded = (
        haproxy_error_responses.UNAVAILABLE.name,
        haproxy_error_responses.OVERLOADED.name,
    )
    queued = balancer.connection_limits.max_queued
    lines = [f"use_backend {unavailable} if {{ nbsrv(workers) eq 0 }}"]
    if balancer.requires_owner:
        for name in (server_name(server.ordinal) for server in balancer.servers):
            down = f"!{{ srv_is_up(workers/{name}) }}"
            lines.append(f"use_backend {unavailable} if {{ var(txn.owner) -m str {name} }} {down}")
    if balancer.pinned:
        waiting = f"{{ str(workers/worker-),concat(,txn.last),srv_queue ge {queued} }}"
        lines.append(f"use_backend {overloaded} if {waiting}")
    return [
        *lines,
        f"use_backend {overloaded} if {{ be_conn_free(workers) le 0 }} {{ queue(workers) ge {queued} }}",
    ]


def server_name(ordinal: int) -> str:
    """Return the name of a worker's server line, as the map of owners has it."""
    return f"worker-{ordinal}"


def _workers(balancer: HAProxySettings) -> list[str]:
    resolution = f" init-addr last,{_PLACEHOLDER_ADDRESS} disabled" if balancer.server_state else ""
    return [
        "log global",
        *(["load-server-state-from-file global"] if balancer.server_state else []),
        *(_pinning(balancer) if balancer.pinned else ["balance leastconn"]),
        *_redispatch(balancer),
        "option httpchk",
        "http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host worker",
        "http-check expect status 200",
        # 16 points per unit of weight on the ring: at 100 the shares of three workers differ by a few
        # percent.
        f"default-server weight 100 maxconn {balancer.connection_limits.max_per_server}"
        f" check inter 1s fastinter 200ms fall 2 rise 2{resolution}"
        # A change that was seen once, also by a connection that failed, is looked at again at once.
        " observe layer4 error-limit 1 on-error fastinter"
        f" send-proxy-v2 proxy-v2-options unique-id{_server_tls_options(balancer.backend_tls)}",
        *(
            f"server {server_name(server.ordinal)} {server.address}:{server.port}"
            f" id {server.ordinal + 1} port {server.health_port}"
            for server in balancer.servers
        ),
    ]


def _server_tls_options(tls: BackendTls | None) -> str:
    """Return what every server line has for TLS. Checks go to another port, in clear.

    The name is that of all workers and stands here: an address that changes while HAProxy runs changes
    nothing of whom it believes.
    """
    if tls is None:
        return ""
    return (
        f" ssl verify required ca-file {tls.authorities} crt {tls.certificate}"
        f" sni str({tls.host}) verifyhost {tls.host} alpn http/1.1 ssl-min-ver TLSv1.3"
    )


def _pinning(balancer: HAProxySettings) -> list[str]:
    """Return what keeps each tenant on one worker."""
    return [
        # An owner that is down is passed over, and the ring decides.
        "use-server %[var(txn.owner)] if { var(txn.owner) -m len gt 0 }",
        # A connection without a known key goes round robin: refusing it is any worker's work.
        f"balance hash var({'txn.tenant' if balancer.requires_owner else 'txn.ring'})",
        "hash-type consistent sdbm avalanche",
        f"stick-table type string len {MAX_ROUTED_TENANT + 1} size 1k expire 1h",
        "stick store-request var(txn.tenant)",
    ]


def _redispatch(balancer: HAProxySettings) -> list[str]:
    """Return what becomes of a connection that still tries to reach a worker which is down by now."""
    if balancer.requires_owner:
        return []
    # It goes on to another one, as it would if it came now. The number is one of attempts, of which there are
    # no more than three: a worker that is up keeps its tenants.
    return ["option redispatch 9"]


def _metrics(balancer: HAProxySettings) -> list[str]:
    return [
        "mode http",
        f"bind {balancer.metrics_bind}",
        "timeout http-request 5s",
        "http-request use-service prometheus-exporter if { path /metrics }",
        "http-request return status 200 content-type text/plain string alive if { path /healthz }",
        "http-request return status 404",
    ]


def render(balancer: HAProxySettings) -> str:
    """Return the whole configuration file."""
    sections = [
        ("global", _global(balancer)),
        ("defaults", _defaults(balancer)),
        ("frontend gateway", _gateway(balancer)),
        ("backend workers", _workers(balancer)),
        *haproxy_error_responses.error_backends(haproxy_error_responses.UNAVAILABLE),
        *haproxy_error_responses.error_backends(haproxy_error_responses.OVERLOADED),
        ("frontend metrics", _metrics(balancer)),
    ]
    text = "\n\n".join("\n".join([head, *(f"    {line}" for line in body)]) for head, body in sections)
    return f"# Generated by proofgate-operator; changes are overwritten.\n{text}\n"
