"""Whether workers have exclusive use of the cores that they request, as far as they can detect it."""

from collections.abc import Sequence

from proofgate_schema.counts import format_count

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.plan.shards import Shard

#: Why a kubelet refuses a pod that requests exclusive cores, and what helps.
_REFUSAL_REASONS = {
    "SMTAlignmentError": "the node allocates only whole physical cores (full-pcpus-only): set "
    "spec.worker.cpu to a multiple of the threads of a core, usually 2",
    "TopologyAffinityError": "the node has too few free cores in one NUMA node: use another topology "
    "manager policy or a smaller spec.worker.cpu",
    "UnexpectedAdmissionError": "the node has no exclusive core left",
}


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(ConditionType.CPU_PINNED, status, reason, message)


def cpu_pinned_condition(cpu: str, shards: Sequence[Shard]) -> Condition:
    """Return the condition CPUPinned; `cpu` is the quantity that a worker requests.

    A worker whose CPU set is as large as its limit most likely has it exclusively: a worker that shares may
    run on every core that is not exclusive to another pod.
    """
    for shard in shards:
        status = shard.pod.get("status") or {}
        if status.get("phase") == "Failed" and status.get("reason") in _REFUSAL_REASONS:
            message = f"the kubelet refused {shard.name}: {_REFUSAL_REASONS[status['reason']]}"
            return _condition(ConditionStatus.FALSE, status["reason"], message)
    cores = parse_quantity(cpu)
    if cores is None or cores % 1:
        message = f"spec.worker.cpu is {cpu}: only whole cores can be exclusive"
        return _condition(ConditionStatus.FALSE, "FractionalCPU", message)
    ready = [shard for shard in shards if shard.ready]
    asked = [shard for shard in ready if shard.report and shard.report.cpus]
    shared = [shard for shard in asked if shard.report and shard.report.cpus != cores]
    if shared:
        first = shared[0].report
        assert first is not None
        held = ", and its CPU limit throttles it" if first.throttled else ""
        others = (
            f"; the same applies to {format_count(len(shared) - 1, 'other worker')}"
            if len(shared) > 1
            else ""
        )
        message = (
            f"{shared[0].name} requests {format_count(int(cores), 'core')} and runs on any of {first.cpus} "
            f"CPUs{held}{others}: a worker has exclusive cores only if the kubelet's CPU manager policy is "
            "static"
        )
        return _condition(ConditionStatus.FALSE, "SharedCores", message)
    if len(asked) < len(ready) or not ready:
        return _condition(
            ConditionStatus.UNKNOWN, "NotMeasured", "not every worker has reported its CPUs yet"
        )
    return _condition(
        ConditionStatus.TRUE,
        "Exclusive",
        f"every worker has exclusive use of {format_count(int(cores), 'core')}",
    )
