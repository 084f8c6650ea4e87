"""Header fields of requests to a provider, as in the configuration file. Secret values are in separate
files."""

from __future__ import annotations

import proofgate_schema.static_fields
from proofgate_schema.fields import FilePath


class ProviderHeader(proofgate_schema.static_fields.ProviderHeader):
    """A header field of every request to a provider."""

    value_file: FilePath | None = None
    """File with the value, one line, if it is a secret; instead of `value`."""
