"""Analysis of answers after their clients were served: entropy, drift, repetition."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from proofgate.config.fields import Listed, ModelName, Section, TenantName


class Analysis(Section):
    """Which answers are analysed, and how. Without this section none is. What it finds are numbers: no text
    of an answer is kept, recorded or exported. Fixed for the life of a worker."""

    sample: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The share of answers that are analysed, 0 to 1; which ones is drawn for each."""
    tenants: Annotated[Listed[TenantName], Field(max_length=256)] = ()
    """Whose answers; without any, all tenants'."""
    models: Annotated[Listed[ModelName], Field(max_length=256)] = ()
    """Answers of which models, by the names of `models`; without any, of all. A name that is not there
    matches nothing."""
    window: Annotated[int, Field(ge=30, le=10_000)] = 200
    """Answers of one tenant and model that are compared at a time with those of the reference, the first
    window."""
    false_alarms: Annotated[float, Field(ge=0.0001, le=0.1)] = 0.001
    """The most findings of drift, for each window that is compared, while nothing has changed."""
    top_logprobs: Annotated[int, Field(ge=1, le=8)] = 5
    """Alternatives of a token by which entropies are compared. Answers that tell fewer (`top_logprobs` of the
    request) are measured, and not compared by entropy."""
    vocabulary: Annotated[int, Field(ge=2, le=10_000_000)] | None = None
    """Tokens that the models know, for an upper bound of entropies; without it there is none."""
    repetition: Annotated[float, Field(ge=0, le=1)] = 0.5
    """From which share of repeated groups of four words on an answer is flagged."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=4 * 1024 * 1024)] = 256 * 1024
    """Bytes of an answer that are copied at most. Of a longer stream the beginning is analysed, a longer
    answer that is no stream is not."""
    max_copy_bytes: Annotated[int, Field(ge=64 * 1024, le=1024 * 1024 * 1024)] = 16 * 1024 * 1024
    """Bytes of memory that copies may take together, those on their way and those that wait to be analysed.
    They are not part of `limits.bufferedBytes`. What finds no room is counted and not analysed."""
    max_pairs: Annotated[int, Field(ge=1, le=4096)] = 128
    """Pairs of tenant and model that are followed. Beyond that, the one that was least recently seen is
    forgotten. Each takes about 60 KiB with the default window, and has at most 13 series in the metrics.
    `window` times this is at most 400,000."""

    @model_validator(mode="after")
    def _is_bounded(self) -> Analysis:
        if self.window * self.max_pairs > 400_000:
            raise ValueError("window times maxPairs is at most 400000: make one of them smaller")
        return self
