"""Whether what a user adds to pods leaves what the operator needs of them."""

from collections.abc import Iterator

from proofgate_operator.api.types import Gateway
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.naming import Defaults
from proofgate_operator.build.pod_overrides import collisions
from proofgate_operator.plan.problems import Problem


def _bare(gateway: Gateway) -> Gateway:
    """Return the gateway without any addition to its pods."""
    spec = gateway.spec
    return gateway.model_copy(
        update={
            "spec": spec.model_copy(
                update={
                    "worker": spec.worker.model_copy(update={"pod_template": None}),
                    "load_balancer": spec.load_balancer.model_copy(update={"pod_template": None}),
                }
            )
        }
    )


def pod_template_problems(gateway: Gateway, defaults: Defaults) -> Iterator[Problem]:
    """Yield an addition that would replace what the operator sets, or cost a worker its core."""
    spec = gateway.spec
    if spec.worker.pod_template:
        workers = statefulset.statefulset(_bare(gateway), defaults, 1, "")["spec"]["template"]
        for fault in collisions(workers, spec.worker.pod_template, guaranteed=True):
            yield Problem("PodTemplateInvalid", f"spec.worker.podTemplate.{fault}")
    if spec.load_balancer.pod_template:
        balancers = haproxy.deployment(_bare(gateway), defaults, "")["spec"]["template"]
        for fault in collisions(balancers, spec.load_balancer.pod_template, guaranteed=False):
            yield Problem("PodTemplateInvalid", f"spec.loadBalancer.podTemplate.{fault}")
