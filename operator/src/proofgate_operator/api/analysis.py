"""Analysis of answers after their clients were served, as a frozen model."""

from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import SET, ModelName, Section
from proofgate_operator.api.upstream import TenantName


class Analysis(Section):
    """Which answers are analysed, and how. What it finds are numbers: no text of an answer is kept."""

    sample: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of answers that are analysed; which ones is drawn for each."""
    tenants: Annotated[tuple[TenantName, ...], Field(max_length=64, json_schema_extra=SET)] = ()
    """Whose answers. Empty: all tenants'."""
    models: Annotated[tuple[ModelName, ...], Field(max_length=64, json_schema_extra=SET)] = ()
    """Answers of which models, by the names in spec.models; a name that is not there matches nothing. Empty:
    of all."""
    window: Annotated[int, Field(ge=30, le=10_000)] = 200
    """Answers of one tenant and model, at one worker, that are compared at a time with those of the
    reference, the first window."""
    false_alarms: Annotated[float, Field(ge=0.0001, le=0.1)] = 0.001
    """The most findings of drift, for each window that is compared, while nothing has changed."""
    top_logprobs: Annotated[int, Field(ge=1, le=8)] = 5
    """Alternatives of a token by which entropies are compared. Answers that tell fewer (top_logprobs of the
    request) are measured, and not compared by entropy."""
    vocabulary: Annotated[int | None, Field(ge=2, le=10_000_000)] = None
    """Tokens that the models know, for an upper bound of entropies. Absent: there is none."""
    repetition: Annotated[float, Field(ge=0, le=1)] = 0.5
    """From which share of repeated groups of four words on an answer is flagged."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=4 * 1024 * 1024)] = 256 * 1024
    """Bytes of an answer that are copied at most."""
    max_copy_bytes: Annotated[int, Field(ge=64 * 1024, le=1024 * 1024 * 1024)] = 16 * 1024 * 1024
    """Bytes of a worker's memory that copies may take together, half of it those of one tenant. They are
    taken from what bodies and answers may take. What finds no room is counted and not analysed."""
    max_pairs: Annotated[int, Field(ge=1, le=4096)] = 128
    """Pairs of tenant and model that a worker follows; beyond that, the one that was least recently seen is
    forgotten."""

    @property
    def memory(self) -> int:
        """Bytes of a worker's memory that analysis takes: docs/how-to/size-a-worker.md."""
        one_answer = 4 * self.max_answer_bytes + (1 << 20)
        return self.max_copy_bytes + one_answer + 300 * self.window * self.max_pairs


#: Rules over the fields of the section.
ANALYSIS_RULES = (
    {
        "rule": "self.window * self.maxPairs <= 400000",
        "message": "spec.analysis: window times maxPairs is at most 400000",
    },
)
