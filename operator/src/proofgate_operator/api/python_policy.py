"""Policies outside of the rules: Python in the workers, or services elsewhere, as frozen models."""

from enum import StrEnum
from typing import Annotated

from proofgate_schema.urls import AUTHORITY
from pydantic import Field

from proofgate_operator.api.fields import Section, rules
from proofgate_operator.api.pod_template import OpenObject

_NAME = r"^[a-z0-9]+(-[a-z0-9]+)*$"
_FACTORY = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
_URL = rf'^https?://{AUTHORITY}(/[!-"$-~]*)?$'
_PATH = r"^/[!-~]*$"

PolicyName = Annotated[str, Field(min_length=1, max_length=31, pattern=_NAME)]
_WorkerPath = Annotated[str, Field(max_length=256, pattern=_PATH)]


class OnFailure(StrEnum):
    """What becomes of a request whose policy gives no verdict."""

    DENY = "Deny"
    ALLOW = "Allow"


class PythonPolicy(Section):
    """A policy that tenants and plans may ask for."""

    name: PolicyName
    """Name of the policy: records and metrics have it."""
    factory: Annotated[str | None, Field(min_length=3, max_length=256, pattern=_FACTORY)] = None
    """`package.module:factory`, which makes the policy of `parameters` in every worker. The package is a part
    of the workers' image, or is mounted and on PYTHONPATH: spec.worker.podTemplate. It runs with all that a
    worker may do."""
    url: Annotated[str | None, Field(min_length=1, max_length=512, pattern=_URL)] = None
    """A service that evaluates batches of requests, in the place of factory."""
    ca_file: _WorkerPath | None = None
    """Certificates to trust in place of the system's roots, PEM: where they are mounted in the workers."""
    token_file: _WorkerPath | None = None
    """A bearer token for the service: where it is mounted in the workers. Read for each batch."""
    deadline_milliseconds: Annotated[int, Field(ge=1, le=60_000)] = 100
    """How long a request waits for its verdict."""
    on_failure: OnFailure = OnFailure.DENY
    """Deny: a request that gets no verdict is refused. Allow: it goes on as if the policy were not there."""
    batch: Annotated[int, Field(ge=1, le=256)] = 32
    """Requests that are evaluated together, at most."""
    parameters: OpenObject | None = None
    """Keyword arguments of the factory. No secrets: they stand in a ConfigMap."""


PythonPolicyWithSource = Annotated[
    PythonPolicy,
    Field(
        json_schema_extra=rules(
            {
                "rule": "has(self.factory) != has(self.url)",
                "message": "spec.policies: a policy has either factory or url",
            },
            {
                "rule": "has(self.factory) || !has(self.parameters)",
                "message": "spec.policies: a service takes no parameters",
            },
            {
                "rule": "!has(self.caFile) || has(self.url) && self.url.startsWith('https://')",
                "message": "spec.policies: caFile is for a url with https",
            },
            {
                "rule": "!has(self.tokenFile) || has(self.url) &&"
                " self.url.matches('^(https://|http://(127\\\\.0\\\\.0\\\\.1|localhost)[:/])')",
                "message": "spec.policies: tokenFile is for a url with https, or on loopback",
            },
        )
    ),
]
