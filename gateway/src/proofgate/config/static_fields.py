"""Header fields that requests to a provider carry, as the file has them: secret values are in files."""

from __future__ import annotations

import proofgate_schema.static_fields
from proofgate_schema.fields import FilePath


class ProviderHeader(proofgate_schema.static_fields.ProviderHeader):
    """A header field of every request to a provider."""

    value_file: FilePath | None = None
    """File with the value, one line, if it is a secret; instead of `value`."""
