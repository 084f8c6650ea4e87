"""The inputs of a gateway's status."""

from dataclasses import dataclass, field

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.plan.configuration import Configuration
from proofgate_operator.plan.held_aggregate import HeldAggregate
from proofgate_operator.plan.held_checkpoints import HeldCheckpoints
from proofgate_operator.plan.observed_state import ObservedState, Ref
from proofgate_operator.plan.scaling import ScalingStep
from proofgate_operator.plan.shards import Shard


@dataclass(frozen=True)
class StatusInputs:
    """All inputs of the status."""

    gateway: Gateway
    seen: ObservedState
    configuration: Configuration
    conflicts: tuple[Ref, ...] = ()
    #: Foreign objects with the auditor's name. They affect the auditor alone.
    auditor_conflicts: tuple[Ref, ...] = ()
    #: Foreign objects with the retention job's name. They affect the retention job alone.
    retention_conflicts: tuple[Ref, ...] = ()
    leaving: tuple[Ref, ...] = ()
    has_writes: bool = False
    shards: tuple[Shard, ...] = ()
    scaling_step: ScalingStep = field(default_factory=lambda: ScalingStep(0))
    #: Workers to which tenants are moving, or returning.
    workers_taking_over: tuple[int, ...] = ()
    #: The held checkpoints of the workers, and how their reports contradict them.
    held_checkpoints: HeldCheckpoints = field(default_factory=HeldCheckpoints)
    #: The held checkpoint of the auditor's log of tree heads, and how its report contradicts it.
    held_aggregate: HeldAggregate = field(default_factory=HeldAggregate)
    #: Objects whose fields another client overwrites repeatedly.
    contested: tuple[str, ...] = ()
