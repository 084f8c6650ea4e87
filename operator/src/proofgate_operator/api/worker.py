"""The section `worker`: the size of a worker. A change replaces the workers one by one."""

from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import Cores, Image, ObjectName, Quantity, Section, cel_rules
from proofgate_operator.api.pod_template import AnnotationValue, PodTemplate

#: Bytes that a worker needs besides connections, bodies and responses: docs/how-to/size-a-worker.md.
BASE_MEMORY = 142 << 20
#: The maximum body in bytes if the spec sets none: Anthropic's limit, and the limit for the smallest memory.
DEFAULT_MAX_BODY = 32 << 20
MIN_BODY = 10 << 20
#: Memory of one body while it is read, as a multiple of its size; and how many such bodies must fit into the
#: body memory.
READ_BUFFER_FACTOR = 5
MIN_BUFFERED_BODIES = 4
#: Minimum bytes for bodies and responses of a worker.
MIN_BODY_MEMORY = (READ_BUFFER_FACTOR + MIN_BUFFERED_BODIES) * MIN_BODY
#: Minimum memory in bytes of a worker that can read its largest bodies.
MIN_MEMORY = 384 << 20
MEMORY_TOO_SMALL = (
    "spec.worker.memory must be at least 384Mi: 270Mi for the worker itself, and the "
    "rest for bodies and responses"
)


class ServiceAccount(Section):
    """The ServiceAccount by which clouds identify workers. It needs no permissions in the cluster."""

    name: ObjectName | None = None
    """Name of your own ServiceAccount in the gateway's namespace. Absent: the operator creates
    GATEWAY-worker."""
    annotations: Annotated[dict[str, AnnotationValue], Field(max_length=16)] = Field(default_factory=dict)
    """Annotations of the ServiceAccount that the operator creates, for example eks.amazonaws.com/role-arn,
    azure.workload.identity/client-id or iam.gke.io/gcp-service-account."""


#: Rules over several fields of the workers' ServiceAccount.
SERVICE_ACCOUNT_RULES = (
    {
        "rule": "!has(self.name) || !has(self.annotations) || self.annotations.size() == 0",
        "message": "spec.worker.serviceAccount: annotations are only for the ServiceAccount that the "
        "operator creates; annotate your own ServiceAccount yourself",
    },
)


class Worker(Section):
    """Size of one worker: one gateway process on one core."""

    cpu: Annotated[
        Cores,
        Field(
            json_schema_extra=cel_rules(
                {
                    "rule": "type(self) == int ? self >= 1 && self <= 64 :"
                    " self.matches('^([1-9]|[1-5][0-9]|6[0-4]|[1-9][0-9]{2,3}m)$')",
                    "message": "spec.worker.cpu must be a whole number of cores from 1 to 64, or thousandths"
                    " of a core from 100m to 9999m",
                }
            )
        ),
    ] = "1"
    """CPU cores of a worker, for both request and limit. A worker can use one core; set two on nodes whose
    CPU manager allocates whole physical cores (full-pcpus-only). With a fraction such as 500m, the worker has
    no exclusive core, and the condition CPUPinned reports this."""
    memory: Annotated[
        Quantity,
        Field(
            json_schema_extra=cel_rules(
                {
                    "rule": "quantity(self).compareTo(quantity('384Mi')) >= 0",
                    "message": MEMORY_TOO_SMALL,
                }
            )
        ),
    ] = "640Mi"
    """Memory of a worker, at least 384Mi, for both request and limit. The worker itself uses 270Mi by
    default. limits.connections and limits.headBytes change this amount, and spec.analysis adds to it. The
    remaining memory is for bodies and responses, and must be at least 90Mi. Unless limits.bodyBytes is set, a
    body can be as long as a ninth of the remaining memory, at most 32Mi."""
    image: Image | None = None
    """Image of the worker. Absent: the image with which the operator was installed."""
    termination_grace_period_seconds: Annotated[int, Field(ge=5, le=3600)] = 60
    """Seconds from SIGTERM to SIGKILL. In this time a worker drains and seals its log."""
    service_account: Annotated[
        ServiceAccount | None, Field(json_schema_extra=cel_rules(*SERVICE_ACCOUNT_RULES))
    ] = None
    """ServiceAccount of the workers' pods, by which clouds identify them. A change rolls the workers. Absent:
    the operator creates one without annotations."""
    pod_template: PodTemplate | None = None
    """Additions to the workers' pods."""
