"""The access log: one line of JSON for each ended connection.

HAProxy logs connections, not requests (mode tcp), so a line has no path, status or request id: these are in
the worker's records, which share the tenant and the time with it. All values are numbers or made by HAProxy,
except the tenant, whose name needs no escapes. Nothing that a client sent is logged.
"""

#: Times are in milliseconds, -1 for a phase that was not reached; bytes exclude TLS overhead.
_FIELDS = (
    ("time", "%Ts.%ms"),
    ("event", '"connection"'),
    # Unique among all HAProxy instances: the pod, its process, and a counter.
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
#: A connection that ended before a stream existed: usually a failed handshake.
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
    """Return the frontend's lines; without `everything`, only failed connections are logged."""
    found = ["log global", f"log-format {_format(_FIELDS)}", f"error-log-format {_format(_ERROR_FIELDS)}"]
    # Probes of load balancers only connect and disconnect.
    found.append("option dontlognull")
    return found if everything else [*found, "option dontlog-normal"]
