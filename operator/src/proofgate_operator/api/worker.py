"""The part of the spec that says how large a worker is. A change of it replaces the workers one by one."""

from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import Cores, Image, ObjectName, Quantity, Section, rules
from proofgate_operator.api.pod_template import AnnotationValue, PodTemplate

#: Bytes that a worker takes besides connections and the bodies and answers that it has:
#: docs/how-to/size-a-worker.md.
MEMORY_OTHERWISE = 142 << 20
#: The longest body in bytes where the spec names none: as Anthropic takes it, and where memory is shortest.
BODY_MOST = 32 << 20
BODY_LEAST = 10 << 20
#: What one body takes while it is read, in its own sizes, and how many must find room in what is held.
BODY_READ = 5
BODIES_HELD = 4
#: Bytes of bodies and answers without which a worker is too small.
BODIES_LEAST = (BODY_READ + BODIES_HELD) * BODY_LEAST
#: Bytes of memory without which a worker could not have its largest bodies.
MEMORY_LEAST = 384 << 20
MEMORY_FAULT = (
    "spec.worker.memory must be at least 384Mi: a worker needs 270Mi, and 114Mi for the "
    "bodies and answers that it holds"
)


class ServiceAccount(Section):
    """Who workers are to clouds. It needs no permission in the cluster."""

    name: ObjectName | None = None
    """A ServiceAccount of yours in the gateway's namespace. Absent: the operator makes GATEWAY-worker."""
    annotations: Annotated[dict[str, AnnotationValue], Field(max_length=16)] = Field(default_factory=dict)
    """Annotations of the one that the operator makes, for example eks.amazonaws.com/role-arn,
    azure.workload.identity/client-id or iam.gke.io/gcp-service-account."""


#: Rules over the ServiceAccount of workers.
SERVICE_ACCOUNT_RULES = (
    {
        "rule": "!has(self.name) || !has(self.annotations) || self.annotations.size() == 0",
        "message": "spec.worker.serviceAccount: annotations are only for the ServiceAccount that the "
        "operator creates; annotate your own yourself",
    },
)


class Worker(Section):
    """Size of one worker: one gateway process on one core."""

    cpu: Annotated[
        Cores,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "type(self) == int ? self >= 1 && self <= 64 :"
                    " self.matches('^([1-9]|[1-5][0-9]|6[0-4]|[1-9][0-9]{2,3}m)$')",
                    "message": "spec.worker.cpu must be a whole number of cores from 1 to 64, or thousandths"
                    " of a core from 100m to 9999m",
                }
            )
        ),
    ] = "1"
    """Cores of a worker; request and limit are equal. One core is what a worker can use; two are for nodes
    whose CPU manager hands out whole physical cores (full-pcpus-only). A fraction such as 500m works, without
    a core of its own: CPUPinned says so."""
    memory: Annotated[
        Quantity,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "quantity(self).compareTo(quantity('384Mi')) >= 0",
                    "message": MEMORY_FAULT,
                }
            )
        ),
    ] = "640Mi"
    """Memory of a worker, at least 384Mi; request and limit are equal. What it has beyond 270Mi, and beyond
    what spec.analysis takes, is for bodies and answers, at least 90Mi. More or fewer limits.connections than
    4096, and longer heads, change the 270Mi. The longest body is a ninth of the rest, at most 32Mi unless
    limits.bodyBytes says otherwise."""
    image: Image | None = None
    """Image of the worker. Absent: the one the operator was installed with."""
    termination_grace_period_seconds: Annotated[int, Field(ge=5, le=3600)] = 60
    """Seconds from SIGTERM to SIGKILL; a worker drains and seals its log in that time."""
    service_account: Annotated[
        ServiceAccount | None, Field(json_schema_extra=rules(*SERVICE_ACCOUNT_RULES))
    ] = None
    """The ServiceAccount that workers run as, by which clouds know them. A change of it rolls them. Absent:
    one that the operator makes, without annotations."""
    pod_template: PodTemplate | None = None
    """Additions to the workers' pods."""
