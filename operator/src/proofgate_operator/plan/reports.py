"""Status reports of workers, and the parser of their HTTP answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: One throttled period in this many is tolerated.
_THROTTLED_SHARE = 20
#: The maximum number of providers in a spec.
_MAX_PROVIDERS = 16


@dataclass(frozen=True)
class UnrenewedCredentials:
    """A provider whose credentials a worker could not renew."""

    provider: str
    #: Whether the current credentials are still valid.
    valid: bool
    #: The error message; it contains hosts, files and codes, never a token.
    message: str


@dataclass(frozen=True)
class OmittedKeys:
    """Keys in shards of tenants that a worker ignores because everybody can guess them: their number, and the
    first of them as tenant and name."""

    count: int = 0
    first: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class WorkerReport:
    """One worker's status answer. If the worker could not be asked, `reachable` is False and the rest is
    empty."""

    reachable: bool = True
    #: Whether it accepts new connections, even if its pod is not Ready yet.
    serving: bool = False
    #: Whether it is retiring, which is reversible: it is not ready but serves incoming requests.
    retiring: bool = False
    #: The number of exchanges that were admitted and have not ended.
    in_flight: int = 0
    #: The number of open client connections.
    connections: int = 0
    #: Digest of the active configuration, as the worker computes it.
    config_digest: str = ""
    #: Digest of the active configuration file, without the files that it names.
    file_digest: str = ""
    #: Why it refused the last configuration; field paths without values.
    refusal_reason: str | None = None
    #: Whether the last configuration differs in values that a worker reads only at its start.
    needs_restart: bool = False
    #: The number of CPUs that it may run on.
    cpus: int = 0
    #: Whether the kernel throttled it in at least one of twenty periods.
    throttled: bool = False
    #: The newest signed checkpoint of its log, unparsed; empty if it reported none.
    checkpoint: str = ""
    #: Providers whose credentials it could not renew.
    unrenewed_credentials: tuple[UnrenewedCredentials, ...] = ()
    #: Keys that it ignores.
    omitted_keys: OmittedKeys = OmittedKeys()

    @property
    def idle(self) -> bool:
        """Whether its termination would affect no client: it receives no new connections, and nothing is
        open."""
        return self.reachable and self.retiring and not self.connections and not self.in_flight


UNREACHABLE = WorkerReport(reachable=False)


def _number(status: Mapping[str, Any], name: str) -> int:
    value = status.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(name)
    return value


def _refusal(error: Any) -> str | None:
    """Describe why a worker refused a configuration: field paths and reasons, which quote no value."""
    if not isinstance(error, dict):
        return None
    problems = error.get("problems")
    places = [
        f"{problem.get('field') or problem.get('file', '')}: {problem.get('message', '')}"
        for problem in (problems[:2] if isinstance(problems, list) else ())
        if isinstance(problem, dict)
    ]
    return "; ".join([str(error.get("code", "unknown")), *places])[:512]


def _parse_unrenewed(found: Any) -> Iterator[UnrenewedCredentials]:
    """Yield the worker's report of cloud credentials that could not be obtained."""
    for source in (found if isinstance(found, list) else ())[:_MAX_PROVIDERS]:
        if isinstance(source, dict) and source.get("error"):
            left = source.get("seconds_left")
            message = f"{source['error']}: {source.get('message') or ''}"[:256]
            yield UnrenewedCredentials(
                str(source.get("provider", ""))[:63], isinstance(left, int) and left > 0, message
            )


def _left_out(shards: Any) -> OmittedKeys:
    """Return the worker's report of ignored keys."""
    found = shards if isinstance(shards, dict) else {}
    count, first = found.get("well_known"), found.get("first_well_known")
    if not isinstance(count, int) or count <= 0:
        return OmittedKeys()
    named = [key for key in (first if isinstance(first, list) else ())[:2] if isinstance(key, dict)]
    return OmittedKeys(
        count, tuple((str(key.get("tenant", ""))[:127], str(key.get("key", ""))[:63]) for key in named)
    )


def parse_worker_report(status: Any) -> WorkerReport:
    """Parse the answer of `GET /status`; raises ValueError if it is invalid."""
    if not isinstance(status, dict):
        raise ValueError("not an object")
    error = status.get("last_reload_error")
    cpus = status.get("effective_cpus")
    checkpoint = status.get("checkpoint")
    periods, throttled = status.get("cpu_periods"), status.get("cpu_periods_throttled")
    return WorkerReport(
        serving=status.get("not_ready", "") is None,
        retiring=status.get("not_ready") in ("retiring", "draining"),
        in_flight=_number(status, "in_flight"),
        connections=_number(status, "connections"),
        config_digest=str(status.get("config_digest", ""))[:64],
        file_digest=str(status.get("config_file_digest", ""))[:64],
        refusal_reason=_refusal(error),
        needs_restart=isinstance(error, dict) and error.get("code") == "config_needs_restart",
        cpus=len(cpus) if isinstance(cpus, list) else 0,
        throttled=isinstance(periods, int)
        and isinstance(throttled, int)
        and throttled * _THROTTLED_SHARE > periods,
        checkpoint=checkpoint if isinstance(checkpoint, str) else "",
        unrenewed_credentials=tuple(_parse_unrenewed(status.get("credentials"))),
        omitted_keys=_left_out(status.get("tenant_shards")),
    )
