"""Renders haproxy.cfg: the key or token in a connection's first head identifies the tenant, which determines
the worker.

HAProxy does not parse HTTP here, so no two parsers can read a message differently: in `mode http` it would
repair requests that a worker refuses (see e2e/framing/README.md). The PROXY header names the tenant for which
the worker was chosen. The worker refuses a later request of another tenant on the same connection.

Written for HAProxy 2.6 and later. The ring of `hash-type consistent` is built from server ids, so every
HAProxy instance, also after a restart, sends a tenant to the same worker. A worker that is down or has no
address is not on the ring, and gets its tenants back when it returns. `hash-balance-factor` is not used,
because it would send a busy worker's tenants to another worker. `slowstart` is not used either: a server
whose address is set after HAProxy's start counts as newly up, so a restarted HAProxy would temporarily
disagree with the others. Instead, the operator sets a new worker's weight through the agent next to each
HAProxy.
"""

from dataclasses import dataclass

from proofgate_operator.build import haproxy_error_responses, haproxy_log


@dataclass(frozen=True)
class Server:
    """One worker in HAProxy's configuration."""

    ordinal: int
    address: str
    port: int
    health_port: int


@dataclass(frozen=True)
class ConnectionLimits:
    """Maximum numbers of connections.

    `max_total`: open connections of clients; others wait in the kernel's queue. `max_per_server`: open
    connections to one worker. `max_queued`: connections that wait for one worker; further ones are refused
    immediately. `max_new_per_source`: new connections of one client address per second; None: no limit.
    """

    max_total: int
    max_per_server: int
    max_queued: int = 64
    max_new_per_source: int | None = None


@dataclass(frozen=True)
class BackendTls:
    """TLS to the workers: the path of HAProxy's certificate (its key is in `<path>.key`), the path of the
    authorities, and the DNS name of all workers."""

    certificate: str
    authorities: str
    host: str


@dataclass(frozen=True)
class TokenIssuer:
    """An issuer of tokens, and the claim with the tenant's name."""

    issuer: str
    tenant_claim: str


@dataclass(frozen=True)
class HAProxySettings:
    """The values that differ between two configurations.

    Paths of map files: `tenant_map` maps the digest of a key, or a tenant's own name, to the tenant.
    `owner_map` maps a tenant to its worker, optionally followed by the worker's substitute and by the ring's
    hash input instead of the tenant's name, separated by OWNER_SEPARATOR. `routing_map` contains the key by
    which HAProxy authenticates to workers, as ROUTING_KEY.

    `issuers`: the issuers whose tokens name tenants. `pinned`: each tenant has a worker; otherwise
    connections go to the worker with the fewest connections. `accepts_proxy_protocol`: clients come through a
    load balancer that writes a PROXY header. `certificate` is the path of a chain, with its key in
    `<path>.key`; None: clients use plain text. `requires_owner`: if a tenant's owner is down, only its
    substitute serves the tenant. `server_timeout_seconds`: maximum wait for the next byte of a response.
    `max_header_bytes` and `header_timeout_seconds`: the largest head that a worker accepts, and the time in
    which a client must send it. `hard_stop_seconds`: when a stopping process closes its remaining streams.
    `backend_tls`: TLS to the workers; None: no TLS. `internal_bind`: an additional address for clients
    without a PROXY header; None: no such address. `server_state`: servers are given by name, the agent next
    to HAProxy sets their IP addresses and saves them at this path for the next start; None: servers are given
    by IP address.
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


#: Placeholder address (RFC 5737) of a worker whose address is unknown; its line is in maintenance. HAProxy
#: cannot set the address of a running line that has none.
_PLACEHOLDER_ADDRESS = "203.0.113.1"
#: In the map of owners, separates a worker from its substitute.
OWNER_SEPARATOR = "."
#: The key of the entry in `routing_map`.
ROUTING_KEY = "routing-key"
#: Sent instead of a tenant: the worker may serve any tenant on the connection.
ANY_TENANT = "*"
#: Maximum length of a tenant's name in the PROXY header: HAProxy keeps 127 characters of a unique id, and the
#: routing key and a colon take 33 of them.
MAX_ROUTED_TENANT = 94
#: Minimum buffer bytes for HAProxy's own responses and metrics.
_MIN_BUFFER_BYTES = 32768
#: Connections that HAProxy needs besides those of clients: for metrics, probes and its own responses.
_RESERVED_CONNECTIONS = 200
#: The "intermediate" profile of Mozilla's Server Side TLS 5.7; TLS 1.3 only has secure ciphers.
_CIPHERS = ":".join(
    f"ECDHE-{signature}-{cipher}"
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
    for signature in ("ECDSA", "RSA")
)
#: Finds the key in the header lines of a head, never in a body: in the first of the fields in which clients
#: send a key. The worker refuses contradicting fields. Every part of a line ends at a character that the next
#: part cannot start with, so no line is scanned more than twice. Without a match the text stays unchanged,
#: and no map contains its digest.
_EXTRACT_KEY = (
    r"""'regsub("(?s)^[^\r\n]+\r\n(?:[^\r\n]+\r\n)*?"""
    r"""(?:authorization:[ \t]*bearer[ \t]+|(?:x-(?:goog-)?)?api-key:[ \t]*)"""
    r"""([^\r\n \t]+)[ \t]*\r\n.*$","\1",i)'"""
)
#: Matches a complete head, or one that a worker refuses in any case: a bare LF or a control byte. Waiting for
#: more is pointless then. A text sample ends at a NUL, so a sample shorter than the bytes contains one.
_HEADER_COMPLETE = (
    r'{ req.payload(0,0) -m reg "\r\n\r\n|(?<!\r)\n|[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]" }'
    r" || { req.payload(0,0),length,sub(txn.received) lt 0 }"
)


def buffer_bytes(head_bytes: int) -> int:
    """Return the size of a buffer: twice the largest head that a worker accepts, so that a head always
    fits."""
    return max(2 * head_bytes, _MIN_BUFFER_BYTES)


def _global(balancer: HAProxySettings) -> list[str]:
    lines = [
        "log stdout format raw local0 info",
        # For the agent next to HAProxy, which has the same folder and user id.
        f"stats socket {balancer.runtime_socket} mode 600 level admin",
        f"tune.bufsize {buffer_bytes(balancer.max_header_bytes)}",
        f"maxconn {balancer.connection_limits.max_total + _RESERVED_CONNECTIONS}",
        # From this file, a starting process knows its workers before it accepts a connection.
        *([f"server-state-file {balancer.server_state}"] if balancer.server_state else []),
        # If a container may open fewer files, HAProxy starts with fewer connections instead of failing.
        "no strict-limits",
        f"hard-stop-after {balancer.hard_stop_seconds}s",
    ]
    if balancer.certificate:
        lines += [
            f"ssl-default-bind-ciphers {_CIPHERS}",
            # A ticket key that lives as long as the process would break forward secrecy.
            "ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets",
        ]
    return lines


def _defaults(balancer: HAProxySettings) -> list[str]:
    return [
        "mode tcp",
        "option clitcpka",
        "timeout connect 2s",
        "timeout queue 5s",
        # The worker enforces the real deadlines; these only close connections that it forgot.
        f"timeout client {balancer.server_timeout_seconds}s",
        "timeout client-fin 30s",
        f"timeout server {balancer.server_timeout_seconds}s",
        "timeout check 1s",
        # Only connecting is retried: data that was sent once is never sent again.
        "retries 3",
        "no option redispatch",
    ]


def _gateway(balancer: HAProxySettings) -> list[str]:
    accepting = " accept-proxy" if balancer.accepts_proxy_protocol else ""
    tls = f" ssl crt {balancer.certificate} alpn http/1.1" if balancer.certificate else ""
    routing_key = f"%[str({ROUTING_KEY}),map({balancer.routing_map})]"
    # Sent to the worker in the PROXY header; "-" for a key that belongs to no tenant.
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
        # An idle open connection belongs to no tenant.
        "tcp-request content reject if WAIT_END",
        f"unique-id-format {routing_key}:{tenant}",
        *_rejection_rules(balancer),
        "default_backend workers",
    ]


def _tenant_lookup_rules(balancer: HAProxySettings) -> list[str]:
    """Return the rules that find a connection's tenant and worker once its head is complete."""
    return [
        # These two rules run for every part of a head; the rules below run only for a complete head.
        "tcp-request content set-var(txn.received) req.len",
        f"tcp-request content set-var(txn.whole) bool(true)"
        f" if {_HEADER_COMPLETE} || {{ req.len gt {balancer.max_header_bytes} }} || WAIT_END",
        # The tenant comes only from the key. `req.payload` is raw: `req.hdr` would parse the head, and unfold
        # folded lines in the very bytes that are forwarded.
        f"tcp-request content set-var(txn.key) req.payload(0,0),{_EXTRACT_KEY}",
        "tcp-request content set-var(txn.tenant)"
        f" var(txn.key),sha2(256),hex,lower,map({balancer.tenant_map})",
        *(_token_routing_rule(balancer, issuer) for issuer in balancer.issuers),
        f"tcp-request content set-var(txn.owner) {_owner_expression(balancer, 1)}",
        *_backup_rules(balancer),
        *_hash_key_rules(balancer),
        # The worker of the tenant's previous connection: where this connection would have to wait.
        "tcp-request content set-var(txn.last) var(txn.tenant),table_server_id(workers),sub(1)",
    ]


def _token_routing_rule(balancer: HAProxySettings, issuer: TokenIssuer) -> str:
    """Return the rule that routes by a token. HAProxy does not verify the token. The worker does, and refuses
    a token of another tenant than it was routed for."""
    # Dots in a path separate names (HAProxy's configuration manual, json_query).
    claim = issuer.tenant_claim.replace(".", r"\\.")
    return (
        "tcp-request content set-var(txn.tenant)"
        f""" 'var(txn.key),jwt_payload_query("$.{claim}"),map({balancer.tenant_map})'"""
        " if !{ var(txn.tenant) -m found }"
        f""" {{ 'var(txn.key),jwt_payload_query("$.iss")' -m str -- {_quote(issuer.issuer)} }}"""
    )


def _quote(text: str) -> str:
    """Return a text quoted as one literal word of the configuration."""
    return "'" + text.replace("'", "'\\''") + "'"


def _owner_expression(balancer: HAProxySettings, place: int) -> str:
    """Return the expression for a tenant's owner (1), its substitute (2), or the ring's hash input (3)."""
    return f"var(txn.tenant),map({balancer.owner_map}),field({place},{OWNER_SEPARATOR})"


def _backup_rules(balancer: HAProxySettings) -> list[str]:
    """Return the rules by which a tenant's substitute serves it while its owner is down."""
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
    """Return the rules for the ring's hash input: the tenant, or the name of a group of tenants that the same
    worker must serve."""
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
    """Return the rules for HAProxy's own responses: HAProxy can only answer before it has chosen a worker."""
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
    """Return the name of a worker's server line, as in the map of owners."""
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
        # A unit of weight is 16 points on the ring: with weight 100, the shares of three workers differ by a
        # few percent.
        f"default-server weight 100 maxconn {balancer.connection_limits.max_per_server}"
        f" check inter 1s fastinter 200ms fall 2 rise 2{resolution}"
        # After one failed check or connection, the next check follows immediately.
        " observe layer4 error-limit 1 on-error fastinter"
        f" send-proxy-v2 proxy-v2-options unique-id{_server_tls_options(balancer.backend_tls)}",
        *(
            f"server {server_name(server.ordinal)} {server.address}:{server.port}"
            f" id {server.ordinal + 1} port {server.health_port}"
            for server in balancer.servers
        ),
    ]


def _server_tls_options(tls: BackendTls | None) -> str:
    """Return the TLS options of every server line. Health checks go to another port, unencrypted.

    The server name is the common name of all workers, so a changed address does not change which certificates
    HAProxy trusts.
    """
    if tls is None:
        return ""
    return (
        f" ssl verify required ca-file {tls.authorities} crt {tls.certificate}"
        f" sni str({tls.host}) verifyhost {tls.host} alpn http/1.1 ssl-min-ver TLSv1.3"
    )


def _pinning(balancer: HAProxySettings) -> list[str]:
    """Return the rules that keep each tenant on one worker."""
    return [
        # If the owner is down, the ring decides.
        "use-server %[var(txn.owner)] if { var(txn.owner) -m len gt 0 }",
        # A connection without a known key goes round robin: any worker can refuse it.
        f"balance hash var({'txn.tenant' if balancer.requires_owner else 'txn.ring'})",
        "hash-type consistent sdbm avalanche",
        f"stick-table type string len {MAX_ROUTED_TENANT + 1} size 1k expire 1h",
        "stick store-request var(txn.tenant)",
    ]


def _redispatch(balancer: HAProxySettings) -> list[str]:
    """Return the rules for a connection that is being opened to a worker which has just gone down."""
    if balancer.requires_owner:
        return []
    # It goes to another worker, like a new connection. The number counts attempts, of which there are at most
    # three: a worker that is up keeps its tenants.
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
