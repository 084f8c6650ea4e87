"""The section `analysis`: entropy, drift and repetition of responses, measured after their delivery."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from proofgate_schema.annotations import UNIQUE_ITEMS, KubernetesOverride
from proofgate_schema.fields import ModelName, TenantName, TupleOf
from proofgate_schema.section import Section

_MANIFEST_LIST_LIMIT = KubernetesOverride("etcd limits the size of an object", {"maxItems": 64})


class Analysis(Section):
    """Analysis of responses. Without this section, no response is analysed. The results are numbers: no text
    of a response is kept, recorded or exported. Fixed for the life of a worker."""

    sample: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Fraction of responses to analyse. These responses are chosen at random."""
    tenants: Annotated[TupleOf[TenantName], Field(max_length=256), UNIQUE_ITEMS, _MANIFEST_LIST_LIMIT] = ()
    """Tenants whose responses are analysed. Empty: all tenants."""
    models: Annotated[TupleOf[ModelName], Field(max_length=256), UNIQUE_ITEMS, _MANIFEST_LIST_LIMIT] = ()
    """Models whose responses are analysed, by their names in `models`. A name that is not in `models` matches
    nothing. Empty: all models."""
    window: Annotated[int, Field(ge=30, le=10_000)] = 200
    """Number of responses in a window. For each tenant and model, each worker compares each later window with
    its first window, the reference."""
    false_alarms: Annotated[float, Field(ge=0.0001, le=0.1)] = 0.001
    """Maximum probability that a compared window is reported as drift although the model has not changed."""
    top_logprobs: Annotated[int, Field(ge=1, le=8)] = 5
    """Number of alternative tokens for each token of a response that a worker uses to compute entropies.
    Responses with fewer alternatives (`top_logprobs` of the request) are measured, but their entropies are
    not compared."""
    vocabulary: Annotated[int, Field(ge=2, le=10_000_000)] | None = None
    """Number of tokens in the models' vocabulary, for an upper bound of entropies. Absent: no upper bound."""
    repetition: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Fraction of repeated four-word groups at which a response is flagged."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=4 << 20)] = 256 << 10
    """Maximum bytes that are copied from a response. The beginning of a longer stream is analysed; a longer
    response that is not a stream is skipped."""
    max_copy_bytes: Annotated[int, Field(ge=64 << 10, le=1 << 30)] = 16 << 20
    """Maximum bytes of a worker's memory for copies of responses, both copies in progress and copies that
    wait for analysis. One tenant can use half of this memory. The memory is not part of
    `limits.bufferedBytes`. Responses that do not fit are counted and not analysed."""
    max_pairs: Annotated[int, Field(ge=1, le=4096)] = 128
    """Maximum pairs of tenant and model that a worker tracks. If there are more pairs, the least recently
    seen pair is dropped. Each pair takes about 60 KiB with the default window, and has at most 13 metric
    series. `window` times `maxPairs` is at most 400,000."""

    @model_validator(mode="after")
    def _is_bounded(self) -> Analysis:
        if self.window * self.max_pairs > 400_000:
            raise ValueError("window times maxPairs must be at most 400000: make one of them smaller")
        return self

    @property
    def memory(self) -> int:
        """The bytes of a worker's memory that the analysis needs: docs/how-to/size-a-worker.md."""
        one_answer = 4 * self.max_answer_bytes + (1 << 20)
        return self.max_copy_bytes + one_answer + 300 * self.window * self.max_pairs
