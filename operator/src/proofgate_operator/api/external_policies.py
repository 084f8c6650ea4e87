"""What the API server refuses of `policies` besides single fields."""

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
                "message": "spec.policies: a policy has either factory or url",
            },
            {
                "rule": "has(self.factory) || !has(self.parameters)",
                "message": "spec.policies: a policy with url takes no parameters",
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
