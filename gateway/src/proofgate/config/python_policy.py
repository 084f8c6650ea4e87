"""Policies outside of the rules: Python in the worker, or a service elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, Literal

from proofgate_schema.fields import FilePath
from proofgate_schema.section import Section
from pydantic import AfterValidator, Field

from proofgate.config.fields import HookURL

_FACTORY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def _policy_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) or len(text) > 31:
        raise ValueError("a name is kebab-case: lower-case letters, digits and single '-', at most 31")
    return text


def _factory(text: str) -> str:
    if not _FACTORY.fullmatch(text) or len(text) > 256:
        raise ValueError("write package.module:factory")
    return text


def _json(parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("write what JSON can say: texts, numbers, lists and mappings") from None
    if len(text) > 65_536:
        raise ValueError("the parameters are longer than 65536 characters: put them into a file")
    return parameters


class PythonPolicy(Section):
    """A policy that tenants and plans may ask for, by `factory` or by `url`."""

    name: Annotated[str, AfterValidator(_policy_name)]
    """Kebab-case, at most 31 characters, unique: records and metrics have it."""
    factory: Annotated[str | None, AfterValidator(lambda text: text and _factory(text))] = None
    """`package.module:factory`, which makes the policy of `parameters`. It runs with the worker's rights."""
    url: HookURL | None = None
    """Of a service that evaluates batches of requests; http or https."""
    ca_file: FilePath | None = None
    """Certificates to trust in place of the system's roots, PEM; https only."""
    token_file: FilePath | None = None
    """A bearer token for the service, one line, read for each batch; https only, or http on loopback."""
    deadline_milliseconds: Annotated[int, Field(ge=1, le=60_000)] = 100
    """How long a request waits for its verdict, 1 to 60000."""
    on_failure: Literal["Deny", "Allow"] = "Deny"
    """What becomes of a request that gets none: it is denied, or goes on as if the policy were not there."""
    batch: Annotated[int, Field(ge=1, le=256)] = 32
    """Requests that are evaluated together, at most, 1 to 256."""
    parameters: Annotated[dict[str, Any], AfterValidator(_json)] = {}  # noqa: RUF012 - pydantic copies it
    """Keyword arguments of the factory. No secrets: name a file in them."""

    def revision(self) -> str:
        """Changes with everything that the policy is made of."""
        made_of = self.model_dump(mode="json")
        return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
