"""Checks that a user's additions to pods do not replace fields that the operator needs."""

from collections.abc import Iterator

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, haproxy, statefulset
from proofgate_operator.build.naming import Defaults
from proofgate_operator.build.pod_overrides import collisions
from proofgate_operator.plan.audit_key import AUDITOR_FIELD
from proofgate_operator.plan.problems import Fault, Problem


def _without_additions(gateway: Gateway) -> Gateway:
    """Return the gateway without any additions to its pods."""
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


def worker_template_problems(gateway: Gateway, defaults: Defaults) -> Iterator[Problem]:
    """Yield the additions to workers' pods that would replace the operator's fields, or cost a worker its
    exclusive core."""
    additions = gateway.spec.worker.pod_template
    if additions:
        template = statefulset.statefulset(_without_additions(gateway), defaults, 1, "")["spec"]["template"]
        for fault in collisions(template, additions, guaranteed=True):
            yield Problem("PodTemplateInvalid", f"spec.worker.podTemplate.{fault}")


def balancer_template_problems(gateway: Gateway, defaults: Defaults) -> Iterator[Problem]:
    """Yield the additions to HAProxy's pods that would replace the operator's fields."""
    additions = gateway.spec.load_balancer.pod_template
    if additions:
        template = haproxy.deployment(_without_additions(gateway), defaults, "")["spec"]["template"]
        for fault in collisions(template, additions, guaranteed=False):
            yield Problem("PodTemplateInvalid", f"spec.loadBalancer.podTemplate.{fault}")


def auditor_template_faults(gateway: Gateway, defaults: Defaults) -> Iterator[Fault]:
    """Yield the additions to the auditor's pod that would replace the operator's fields. They affect the
    auditor alone."""
    wanted = gateway.enabled_auditor
    if wanted and wanted.pod_template:
        bare = wanted.model_copy(update={"pod_template": None})
        template = auditor.statefulset(gateway, bare, "", "", "", defaults)["spec"]["template"]
        for fault in collisions(template, wanted.pod_template, guaranteed=False):
            yield Fault(AUDITOR_FIELD, "PodTemplateInvalid", f"{AUDITOR_FIELD}.podTemplate.{fault}")
