"""Changes of the workers or of their number: under a steady load no request fails, no stream breaks, and nothing is
lost.
"""

from __future__ import annotations

from e2e import operations
from e2e.load import SteadyLoad
from e2e.operations import Gateway
from e2e.tests.traffic import Runner, nobody_noticed, records


def test_scaling_from_two_to_four_and_back_is_not_noticed(ops: Gateway, under_load: Runner) -> None:
    def scale(load: SteadyLoad) -> None:
        ops.scale(4)
        load.goes_on(100)
        ops.scale(2)
        load.goes_on(100)

    nobody_noticed(under_load(scale))
    every_incarnation_that_ended_is_sealed(ops)


def every_incarnation_that_ended_is_sealed(ops: Gateway) -> None:
    """Checks that all logs end with a seal, except those of running workers."""
    kinds: dict[str, list[str]] = {}
    for record in records(ops.namespace, ops.name):
        kinds.setdefault(record["log"], []).append(record["kind"])
    sealed = [log for log, found in kinds.items() if found[-1] == "seal"]
    assert len(kinds) - len(sealed) == len(ops.pods("worker")), {log: found[-1] for log, found in kinds.items()}


def test_a_new_image_rolls_worker_by_worker_unnoticed(ops: Gateway, under_load: Runner) -> None:
    image = operations.second_worker_image()

    def upgrade(_: SteadyLoad) -> None:
        ops.roll("worker", lambda: ops.patch({"worker": {"image": image}}))

    nobody_noticed(under_load(upgrade))
    every_incarnation_that_ended_is_sealed(ops)


def test_with_required_affinity_workers_are_replaced_unnoticed(ops: Gateway, under_load: Runner) -> None:
    balancer = {"replicas": 2, "affinity": "Required"}
    ops.patch({"loadBalancer": balancer})
    ops.wait_settled(2)
    change = {"ledger": {"checkpointIntervalSeconds": 2}}
    nobody_noticed(under_load(lambda _: ops.roll("worker", lambda: ops.patch(change))))
    every_incarnation_that_ended_is_sealed(ops)
