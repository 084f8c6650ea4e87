"""What workers tell of themselves on their admin port, and how their answer is read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: One period of the CPU's limit in so many is forgiven.
_THROTTLED_SHARE = 20
#: A spec has no more.
_MAX_PROVIDERS = 16


@dataclass(frozen=True)
class UnrenewedCredentials:
    """A provider whose credentials a worker could not renew."""

    provider: str
    #: Whether those that it has are still good.
    valid: bool
    #: Why; it names hosts, files and codes, never a token.
    message: str


@dataclass(frozen=True)
class OmittedKeys:
    """Keys in shards of tenants that let nobody in, because everybody can guess them: how many, and the
    first, each as its tenant and name."""

    count: int = 0
    first: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class WorkerReport:
    """One worker's answer; of one that could not be asked, only that."""

    reachable: bool = True
    #: Takes new connections, whether or not its pod is Ready yet.
    serving: bool = False
    #: On its way out, reversibly: not ready, serving what comes.
    retiring: bool = False
    #: Exchanges admitted and not ended.
    in_flight: int = 0
    #: Open client connections.
    connections: int = 0
    #: Digest of the configuration in force, as the worker counts it.
    config_digest: str = ""
    #: Digest of the configuration file in force, without the files that it names.
    file_digest: str = ""
    #: Why it refused the last configuration; it names places, never values.
    refusal_reason: str | None = None
    #: The last configuration differs in what is fixed while a worker runs.
    needs_restart: bool = False
    #: CPUs that it may run on.
    cpus: int = 0
    #: Whether the kernel held it back in one of twenty periods or more.
    throttled: bool = False
    #: The newest signed checkpoint of its log, as it was told; empty when it told none.
    checkpoint: str = ""
    #: Providers whose credentials it could not renew.
    unrenewed_credentials: tuple[UnrenewedCredentials, ...] = ()
    #: Keys that it left out.
    omitted_keys: OmittedKeys = OmittedKeys()

    @property
    def idle(self) -> bool:
        """Whether nobody would notice if it went: it is off the ring, and nothing is open."""
        return self.reachable and self.retiring and not self.connections and not self.in_flight


UNREACHABLE = WorkerReport(reachable=False)


def _number(status: Mapping[str, Any], name: str) -> int:
    value = status.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(name)
    return value


def _refusal(error: Any) -> str | None:
    """Say why a worker refused a configuration: places and reasons, which quote no value."""
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
    """Yield what a worker tells of credentials that clouds did not issue."""
    for source in (found if isinstance(found, list) else ())[:_MAX_PROVIDERS]:
        if isinstance(source, dict) and source.get("error"):
            left = source.get("seconds_left")
            message = f"{source['error']}: {source.get('message') or ''}"[:256]
            yield UnrenewedCredentials(
                str(source.get("provider", ""))[:63], isinstance(left, int) and left > 0, message
            )


def _left_out(shards: Any) -> OmittedKeys:
    """Return what a worker tells of keys that it left out."""
    found = shards if isinstance(shards, dict) else {}
    count, first = found.get("well_known"), found.get("first_well_known")
    if not isinstance(count, int) or count <= 0:
        return OmittedKeys()
    named = [key for key in (first if isinstance(first, list) else ())[:2] if isinstance(key, dict)]
    return OmittedKeys(
        count, tuple((str(key.get("tenant", ""))[:127], str(key.get("key", ""))[:63]) for key in named)
    )


def parse_worker_report(status: Any) -> WorkerReport:
    """Read the answer of `GET /status`; raises ValueError for what is none."""
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
