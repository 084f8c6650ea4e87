"""The section `policies`: external policies, in Python or from an HTTP service."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import NO_DEFAULT, PRESERVE_UNKNOWN_FIELDS, KubernetesOverride
from proofgate_schema.fields import MountedFile, file_validator
from proofgate_schema.section import Section
from proofgate_schema.urls import HookURL

_NAME = r"[a-z0-9]+(-[a-z0-9]+)*"
_FACTORY = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"
_PATTERN_REASON = "the API server checks patterns and lengths"
#: For the name of a policy, and for fields that refer to it.
POLICY_NAME = KubernetesOverride(_PATTERN_REASON, {"minLength": 1, "maxLength": 31, "pattern": f"^{_NAME}$"})


def _policy_name(text: str) -> str:
    if not re.fullmatch(_NAME, text) or len(text) > 31:
        raise ValueError(
            "write the name in kebab-case: lower-case letters, digits and single '-', at most 31 characters"
        )
    return text


def _factory(text: str) -> str:
    if not re.fullmatch(_FACTORY, text) or len(text) > 256:
        raise ValueError("write package.module:factory")
    return text


def _json(parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("write values that JSON supports: strings, numbers, lists and mappings") from None
    if len(text) > 65_536:
        raise ValueError("the parameters are longer than 65536 characters: put them into a file")
    return parameters


class ExternalPolicy(Section):
    """A policy that tenants and plans can use, from a Python `factory` or an HTTP service at `url`."""

    name: Annotated[str, AfterValidator(_policy_name), POLICY_NAME]
    """Name of the policy, as records and metrics show it."""
    factory: (
        Annotated[
            str,
            AfterValidator(_factory),
            KubernetesOverride(
                _PATTERN_REASON, {"minLength": 3, "maxLength": 256, "pattern": f"^{_FACTORY}$"}
            ),
        ]
        | None
    ) = None
    """Python function that creates the policy from `parameters` in every worker, as `package.module:factory`.
    The package is in the workers' image, or mounted and on PYTHONPATH (spec.worker.podTemplate). The function
    runs with all permissions of a worker."""
    url: HookURL | None = None
    """http or https URL of a service that evaluates batches of requests. Set it instead of `factory`."""
    ca_file: MountedFile | None = None
    """File with CA certificates (PEM) that replace the system's CA certificates, for an https URL. On
    Kubernetes, mount the file into the workers with spec.worker.podTemplate, and give its path in the
    container."""
    token_file: MountedFile | None = None
    """File with a bearer token for the service; only for https, or for http on loopback. The file is read for
    each batch. On Kubernetes, mount the file into the workers with spec.worker.podTemplate, and give its path
    in the container."""
    deadline_milliseconds: Annotated[int, Field(ge=1, le=60_000)] = 100
    """Maximum milliseconds that a request waits for a verdict."""
    on_failure: Literal["Deny", "Allow"] = "Deny"
    """Treatment of a request without a verdict. Deny: the request is refused. Allow: the request continues
    without the policy."""
    batch: Annotated[int, Field(ge=1, le=256)] = 32
    """Maximum number of requests that are evaluated together."""
    parameters: Annotated[dict[str, Any], file_validator(_json), PRESERVE_UNKNOWN_FIELDS, NO_DEFAULT] = {}  # noqa: RUF012 - pydantic copies it
    """Keyword arguments of the factory. Do not put secrets here: on Kubernetes the arguments are stored in a
    ConfigMap."""

    def revision(self) -> str:
        """Return a digest of all of the policy's fields, which changes with each of them."""
        made_of = self.model_dump(mode="json")
        return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
