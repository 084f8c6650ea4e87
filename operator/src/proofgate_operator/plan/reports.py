"""What workers tell of themselves on their admin port."""

from dataclasses import dataclass


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
    refused: str | None = None
    #: The last configuration differs in what is fixed while a worker runs.
    needs_restart: bool = False
    #: CPUs that it may run on.
    cpus: int = 0
    #: Whether the kernel held it back in one of twenty periods or more.
    throttled: bool = False
    #: The newest signed checkpoint of its log, as it was told; empty when it told none.
    checkpoint: str = ""

    @property
    def idle(self) -> bool:
        """Whether nobody would notice if it went: it is off the ring, and nothing is open."""
        return self.reachable and self.retiring and not self.connections and not self.in_flight


UNREACHABLE = WorkerReport(reachable=False)
