"""The part of `telemetry` that gateway and manifest spell alike."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proofgate_schema.section import Section


class Traces(Section):
    """Traces of exchanges: a span for the exchange, and one for what its provider does."""

    ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of traces that are sampled of those that begin here. A trace that a client names is sampled where
    the client sampled it."""
    propagate: bool = True
    """Whether providers are told of the trace (traceparent and tracestate)."""
