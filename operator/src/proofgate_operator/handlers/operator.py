"""What the handlers share, passed to them by kopf as `memo.operator`."""

from dataclasses import dataclass, field

from proofgate_operator.handlers.probe import Pulse
from proofgate_operator.handlers.secrets import Readers
from proofgate_operator.handlers.wake import Wakes
from proofgate_operator.kube.client import Client
from proofgate_operator.settings import Settings


@dataclass
class Operator:
    """One running operator."""

    client: Client
    settings: Settings
    wakes: Wakes = field(default_factory=Wakes)
    readers: Readers = field(default_factory=Readers)
    pulse: Pulse = field(default_factory=Pulse)

    def __copy__(self) -> "Operator":
        """Kopf copies its memo for every object; the operator in it stays one."""
        return self
