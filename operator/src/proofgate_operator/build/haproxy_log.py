"""The access log: a line of JSON for each connection, when it has ended.

HAProxy knows connections and not requests (mode tcp), so a line has no path, status or request id: those are
in the worker's records, which have the tenant and the time in common with it. The values are numbers or made
by HAProxy, except for the tenant, whose name needs no escapes; nothing that a client sent is in it.
"""

#: Times are in milliseconds, -1 for what was not reached; bytes are without those of TLS.
_FIELDS = (
    ("time", "%Ts.%ms"),
    ("event", '"connection"'),
    # Unique among all replicas: the pod, its process, and a count.
    ("id", '"%H-%pid-%Ts-%rt"'),
    ("client", '"%ci:%cp"'),
    ("tenant", '"%[var(txn.tenant,-)]"'),
    ("backend", '"%b"'),
    ("worker", '"%s"'),
    ("tls", '"%sslv"'),
    ("handshake_ms", "%Th"),
    ("queued_ms", "%Tw"),
    ("connect_ms", "%Tc"),
    ("total_ms", "%Tt"),
    ("bytes_received", "%U"),
    ("bytes_sent", "%B"),
    ("termination", '"%ts"'),
    ("retries", "%rc"),
    ("connections", "%fc"),
    ("worker_connections", "%sc"),
    ("worker_queue", "%sq"),
)
#: A connection that ended before there was a stream: a failed handshake, mostly.
_ERROR_FIELDS = (
    ("time", "%Ts.%ms"),
    ("event", '"refused connection"'),
    ("client", '"%ci:%cp"'),
    ("reason", '"%[fc_err_str]"'),
)


def _format(fields: tuple[tuple[str, str], ...]) -> str:
    text = ",".join(f'"{name}":{value}' for name, value in fields)
    return f"'{{{text}}}'"


def log_lines(*, everything: bool) -> list[str]:
    """Return the frontend's lines; without `everything`, only what went wrong is logged."""
    found = ["log global", f"log-format {_format(_FIELDS)}", f"error-log-format {_format(_ERROR_FIELDS)}"]
    # Probes of load balancers connect and leave.
    found.append("option dontlognull")
    return found if everything else [*found, "option dontlog-normal"]
