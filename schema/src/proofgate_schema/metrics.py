"""The section `metrics`; in a manifest it is a part of `monitoring`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proofgate_schema.section import Section


class Metrics(Section):
    """What is counted by tenant, model and provider."""

    label_sets: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Combinations of a tenant, a model and its provider with series of their own on each worker. What comes
    beyond counts for the tenant (other)."""
