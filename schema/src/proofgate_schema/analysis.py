"""The section `analysis`: entropy, drift and repetition of answers after their clients were served."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from proofgate_schema.annotations import SET, Kubernetes
from proofgate_schema.fields import Listed, ModelName, TenantName
from proofgate_schema.section import Section

_FEWER = Kubernetes("the object has to fit into etcd", {"maxItems": 64})


class Analysis(Section):
    """Which answers are analysed, and how. Without this section none is. What it finds are numbers: no text
    of an answer is kept, recorded or exported. Fixed for the life of a worker."""

    sample: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of answers that are analysed; which ones is drawn for each."""
    tenants: Annotated[Listed[TenantName], Field(max_length=256), SET, _FEWER] = ()
    """Whose answers. Empty: all tenants'."""
    models: Annotated[Listed[ModelName], Field(max_length=256), SET, _FEWER] = ()
    """Answers of which models, by the names in `models`; a name that is not there matches nothing. Empty: of
    all."""
    window: Annotated[int, Field(ge=30, le=10_000)] = 200
    """Answers of one tenant and model, at one worker, that are compared at a time with those of the
    reference, the first window."""
    false_alarms: Annotated[float, Field(ge=0.0001, le=0.1)] = 0.001
    """The most findings of drift, for each window that is compared, while nothing has changed."""
    top_logprobs: Annotated[int, Field(ge=1, le=8)] = 5
    """Alternatives of a token by which entropies are compared. Answers that tell fewer (`top_logprobs` of the
    request) are measured, and not compared by entropy."""
    vocabulary: Annotated[int, Field(ge=2, le=10_000_000)] | None = None
    """Tokens that the models know, for an upper bound of entropies. Absent: there is none."""
    repetition: Annotated[float, Field(ge=0, le=1)] = 0.5
    """From which share of repeated groups of four words on an answer is flagged."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=4 << 20)] = 256 << 10
    """Bytes of an answer that are copied at most. Of a longer stream the beginning is analysed, a longer
    answer that is no stream is not."""
    max_copy_bytes: Annotated[int, Field(ge=64 << 10, le=1 << 30)] = 16 << 20
    """Bytes of a worker's memory that copies may take together, those on their way and those that wait to be
    analysed, half of it those of one tenant. They are not part of `limits.bufferedBytes`. What finds no room
    is counted and not analysed."""
    max_pairs: Annotated[int, Field(ge=1, le=4096)] = 128
    """Pairs of tenant and model that a worker follows; beyond that, the one that was least recently seen is
    forgotten. Each takes about 60 KiB with the default window, and has at most 13 series in the metrics.
    `window` times this is at most 400,000."""

    @model_validator(mode="after")
    def _is_bounded(self) -> Analysis:
        if self.window * self.max_pairs > 400_000:
            raise ValueError("window times maxPairs is at most 400000: make one of them smaller")
        return self

    @property
    def memory(self) -> int:
        """Bytes of a worker's memory that analysis takes: docs/how-to/size-a-worker.md."""
        one_answer = 4 * self.max_answer_bytes + (1 << 20)
        return self.max_copy_bytes + one_answer + 300 * self.window * self.max_pairs
