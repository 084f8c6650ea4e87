"""The section `metrics`, which is part of `monitoring` in a manifest."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proofgate_schema.section import Section


class Metrics(Section):
    """Metrics by tenant, model and provider."""

    label_sets: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Maximum combinations of tenant, model and provider that have their own metric series on each worker.
    Further combinations are counted under the tenant "(other)"."""
