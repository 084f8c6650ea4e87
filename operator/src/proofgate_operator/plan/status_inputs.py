"""What a gateway's status is made of."""

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
    """Everything the status is made of."""

    gateway: Gateway
    seen: ObservedState
    configuration: Configuration
    conflicts: tuple[Ref, ...] = ()
    #: What bears the auditor's name and is none of the gateway's. It costs the auditor alone.
    auditor_conflicts: tuple[Ref, ...] = ()
    #: What bears the retention job's. It costs the retention job alone.
    retention_conflicts: tuple[Ref, ...] = ()
    leaving: tuple[Ref, ...] = ()
    has_writes: bool = False
    shards: tuple[Shard, ...] = ()
    scaling_step: ScalingStep = field(default_factory=lambda: ScalingStep(0))
    #: Workers whose tenants move to them, or back.
    workers_taking_over: tuple[int, ...] = ()
    #: What is held of the workers' checkpoints, and what they tell against it.
    held_checkpoints: HeldCheckpoints = field(default_factory=HeldCheckpoints)
    #: What is held of the auditor's log of heads, and what it tells against it.
    held_aggregate: HeldAggregate = field(default_factory=HeldAggregate)
    #: Whose fields somebody else sets otherwise again and again.
    contested: tuple[str, ...] = ()
