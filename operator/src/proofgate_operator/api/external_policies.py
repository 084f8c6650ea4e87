"""CEL rules of the section `policies`."""

from typing import Annotated

from proofgate_schema.external_policies import ExternalPolicy
from pydantic import Field

from proofgate_operator.api.fields import cel_rules

ExternalPolicyWithSource = Annotated[
    ExternalPolicy,
    Field(
        json_schema_extra=cel_rules(
            {
                "rule": "has(self.factory) != has(self.url)",
                "message": "spec.policies: a policy must have either factory or url",
            },
            {
                "rule": "has(self.factory) || !has(self.parameters)",
                "message": "spec.policies: a policy with a url must not have parameters",
            },
            {
                "rule": "!has(self.caFile) || has(self.url) && self.url.startsWith('https://')",
                "message": "spec.policies: caFile needs a url with https",
            },
            {
                "rule": "!has(self.tokenFile) || has(self.url) &&"
                " self.url.matches('^(https://|http://(127\\\\.0\\\\.0\\\\.1|localhost)[:/])')",
                "message": "spec.policies: tokenFile needs a url with https, or a url on loopback",
            },
        )
    ),
]
