"""The CRD, generated from the models of `gateway.py`; `python -m proofgate_operator.api.crd` prints it.

A structural schema allows no `$ref`, no `anyOf` with null and no `title`, so pydantic's JSON schema is
rewritten. An object with a default gets `default: {}` if possible: the API server then fills in the defaults
of its fields, so each default is in the CRD only once.
"""

from typing import Any

import yaml
from proofgate_schema.annotations import KUBERNETES_KEYWORD, WORKER_ONLY_KEYWORD

from proofgate_operator.api import API_VERSION, GROUP, KIND, PLURAL, VERSION
from proofgate_operator.api.gateway import MAX_REPLICAS, GatewaySpec
from proofgate_operator.api.gateway_rules import ROOT_RULES, SPEC_RULES

_DROPPED = {"title", "$defs", KUBERNETES_KEYWORD}
_INT32_MAXIMUM = 2**31 - 1
#: The maximum number of faults in the status; the message of ResolvedRefs counts the others.
MAX_FAULTS = 64
#: The maximum number of kinds of findings in the status; there are fewer kinds.
MAX_FINDING_CODES = 64
#: The maximum number of witnesses in the status, which is also the maximum of a policy.
MAX_WITNESSES = 32
#: The maximum number of holds outside the manifest that the status names.
MAX_NAMED_HOLDS = 16
#: The maximum number of former verifying keys in the status.
MAX_FORMER_KEYS = 32


def to_structural(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a JSON schema node and its children as a structural schema."""
    if schema.get(KUBERNETES_KEYWORD):
        own = schema[KUBERNETES_KEYWORD]
        schema = {
            key: value for key, value in {**schema, **own}.items() if key not in own or value is not None
        }
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    if "anyOf" in schema:
        # Optional means absent here: a structural field is not nullable by default.
        chosen = [option for option in schema["anyOf"] if option.get("type") != "null"]
        assert len(chosen) == 1, schema
        rest = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
        return to_structural({**chosen[0], **rest}, definitions)
    node = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "description" in node:
        node["description"] = " ".join(node["description"].split())
    if node.get("x-kubernetes-int-or-string"):
        node.pop("type", None)
        node["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in node:
        node["properties"] = {
            name: to_structural(child, definitions)
            for name, child in schema["properties"].items()
            if WORKER_ONLY_KEYWORD not in child
        }
        if "default" in node:
            # The API server validates a default against the object's rules before it adds the fields' own
            # defaults.
            full = {key: value for key, value in node["default"].items() if value is not None}
            node["default"] = full if "x-kubernetes-validations" in node else {}
    if "items" in node:
        node["items"] = to_structural(schema["items"], definitions)
    if node.get("additionalProperties") is False:
        # The API server prunes fields without a property; it does not accept both keywords together.
        del node["additionalProperties"]
    if "additionalProperties" in node:
        node["additionalProperties"] = to_structural(schema["additionalProperties"], definitions)
    if node.get("type") == "integer":
        node |= {key: int(node[key]) for key in ("default", "minimum", "maximum") if key in node}
        node["format"] = "int64" if node.get("maximum", 0) > _INT32_MAXIMUM else "int32"
    return node


def spec_schema() -> dict[str, Any]:
    """Return the structural schema of `.spec`."""
    generated = GatewaySpec.model_json_schema(by_alias=True)
    schema = to_structural(generated, generated["$defs"])
    schema["x-kubernetes-validations"] = SPEC_RULES
    return schema


def shard_schema() -> dict[str, Any]:
    """Return the structural schema of one item of `.status.shards`."""
    return {
        "type": "object",
        "required": ["ordinal", "phase"],
        "properties": {
            "ordinal": {
                "type": "integer",
                "format": "int32",
                "description": "Number of the shard and of its pod.",
            },
            "phase": {
                "type": "string",
                "enum": ["Pending", "Starting", "Ready", "Retiring", "Leaving", "Failed"],
                "description": "Phase of the worker. Retiring: the worker will be removed, and the operator "
                "can still cancel the removal. Leaving: the worker finishes its requests and seals its log.",
            },
            "retiringSince": {
                "type": "string",
                "format": "date-time",
                "description": "Time at which the worker was asked to retire.",
            },
            "configDigest": {
                "type": "string",
                "maxLength": 64,
                "description": "Digest of the worker's active configuration.",
            },
            "message": {
                "type": "string",
                "maxLength": 1024,
                "description": "Reason why the worker is not ready.",
            },
        },
    }


def fault_schema() -> dict[str, Any]:
    """Return the structural schema of one item of `.status.faults`."""
    return {
        "type": "object",
        "required": ["field", "reason", "message"],
        "properties": {
            "field": {
                "type": "string",
                "maxLength": 256,
                "description": "Field of the spec that the problem affects, for example spec.tenants[acme].",
            },
            "reason": {"type": "string", "maxLength": 64, "description": "Code of the problem."},
            "message": {"type": "string", "maxLength": 1024, "description": "Description of the problem."},
        },
    }


def auditor_schema() -> dict[str, Any]:
    """Return the structural schema of `.status.auditor`."""
    number = {"type": "integer", "format": "int64"}
    time = {"type": "string", "format": "date-time"}
    text = {"type": "string", "maxLength": 512}
    finding = {
        "type": "object",
        "required": ["code", "count"],
        "properties": {
            "code": {"type": "string", "maxLength": 64, "description": "Code of the finding."},
            "count": {**number, "description": "Number of logs or shards with this finding."},
        },
    }
    witness = {
        "type": "object",
        "required": ["name", "size"],
        "properties": {
            "name": {"type": "string", "maxLength": 128, "description": "Name of the witness in the policy."},
            "lastResult": {
                "type": "string",
                "maxLength": 32,
                "description": "Result of the last request to the witness: cosigned, or the reason why the "
                "witness did not cosign.",
            },
            "size": {
                **number,
                "description": "Size of the newest checkpoint that the witness has cosigned, in tree heads.",
            },
            "cosignedTime": {
                **time,
                "description": "Time of the cosignature of the newest checkpoint, by the witness's clock.",
            },
        },
    }
    return {
        "type": "object",
        "description": "The auditor's last report. Numbers are updated once a minute; findings and other "
        "problems are updated sooner. The condition Audited summarizes the report.",
        "properties": {
            "origin": {**text, "description": "Name of the auditor's log of tree heads."},
            "verifyingKey": {**text, "description": "Public key that verifies the auditor's checkpoints."},
            "exportVerifyingKey": {
                **text,
                "description": "Public key that verifies signed exports. The field stays after "
                "index.exportKey is removed, for earlier exports.",
            },
            "size": {
                **number,
                "description": (
                    "Size of the auditor's newest checkpoint, in tree heads; absent until witnesses have "
                    "cosigned one."
                ),
            },
            "newestHeadTime": {
                **time,
                "description": "Time at which the auditor accepted the newest tree head of a log.",
            },
            "lastPollTime": {**time, "description": "Time of the auditor's last poll of the ledger."},
            "lagSeconds": {
                **number,
                "description": "Seconds for which the oldest signed checkpoint has waited to be verified.",
            },
            "findings": {
                "type": "array",
                "description": "Numbers of findings, by code.",
                "maxItems": MAX_FINDING_CODES,
                "items": finding,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["code"],
            },
            "findingsLeftOut": {
                **number,
                "description": "Number of findings that the auditor does not keep because there are too "
                "many findings.",
            },
            "witnesses": {
                "type": "array",
                "description": "The witnesses in the policy of the auditor.",
                "maxItems": MAX_WITNESSES,
                "items": witness,
                "x-kubernetes-list-type": "atomic",
            },
            "cosigningLagSeconds": {
                **number,
                "description": "Seconds for which tree heads have waited for a quorum of witnesses.",
            },
            "index": {
                "type": "object",
                "description": "The auditor's index of exchanges; absent if the auditor has no index.",
                "properties": {
                    "recordsBehind": {
                        **number,
                        "description": "Number of accepted records that are not in the index yet.",
                    },
                    "problem": {
                        "type": "string",
                        "maxLength": 64,
                        "description": "Code of the reason why the index stopped; absent if it has not "
                        "stopped.",
                    },
                },
            },
        },
    }


def keeping_schema() -> dict[str, Any]:
    """Return the structural schema of `.status.keeping`."""
    number = {"type": "integer", "format": "int64"}
    time = {"type": "string", "format": "date-time"}
    text = {"type": "string", "maxLength": 512}
    staying = {
        "type": "object",
        "required": ["reason", "count"],
        "properties": {
            "reason": {
                "type": "string",
                "maxLength": 64,
                "description": "The reason, for example held, young or damaged.",
            },
            "count": {**number, "description": "Number of logs that are kept for this reason."},
        },
    }
    return {
        "type": "object",
        "description": "Report of the retention job's last run. The condition Kept summarizes it.",
        "properties": {
            "retentionKeyName": {**text, "description": "Name of the retention key."},
            "verifyingKey": {
                **text,
                "description": "Public key that verifies the job's signatures, for fsck.",
            },
            "lastRunTime": {
                **time,
                "description": "Start of the last run that has finished, with any result.",
            },
            "lastSuccessTime": {**time, "description": "Start of the last run that succeeded."},
            "result": {
                "type": "string",
                "maxLength": 64,
                "description": "Result of the last run: ok, or the code of the failure.",
            },
            "message": {**text, "description": "Description of the failure."},
            "plan": {
                "type": "string",
                "maxLength": 64,
                "description": "Digest of the plan (holds and retention periods) that the run executed.",
            },
            "anchor": {
                "type": "string",
                "maxLength": 16,
                "description": "Source that confirms the times in the job's signed statements. auditor: the job "
                "waits until the statements are in the auditor's log. none: there is no auditor, and only "
                "the job itself confirms the times.",
            },
            "holds": {**number, "description": "Number of active holds."},
            "knownHolds": {
                **number,
                "description": "Number of holds that the job's state has ever contained. If this number "
                "falls, the state was rolled back.",
            },
            "holdsNotInManifest": {
                "type": "array",
                "description": "Active holds that are not in the manifest: by name, or "
                "#number for a hold that was added by hand.",
                "maxItems": MAX_NAMED_HOLDS,
                "items": {"type": "string", "maxLength": 64},
                "x-kubernetes-list-type": "atomic",
            },
            "holdsNotInManifestCount": {
                **number,
                "description": "Number of active holds that are not in the manifest, including holds that "
                "are not listed.",
            },
            "removedLogs": {**number, "description": "Number of logs that were removed so far."},
            "erasedExchanges": {
                **number,
                "description": "Number of exchanges with destroyed salts, of tenants with maximumDays, in "
                "logs that still exist.",
            },
            "staying": {
                "type": "array",
                "description": "The reasons why logs, or salts in logs, are kept.",
                "maxItems": 32,
                "items": staying,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["reason"],
            },
        },
    }


def condition_schema() -> dict[str, Any]:
    """Return the structural schema of one item of `.status.conditions`."""
    return {
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            "type": {"type": "string", "maxLength": 316, "description": "Type of the condition."},
            "status": {
                "type": "string",
                "enum": ["True", "False", "Unknown"],
                "description": "Status of the condition.",
            },
            "reason": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "description": "Code of the reason for the status.",
            },
            "message": {
                "type": "string",
                "maxLength": 32768,
                "description": "Explanation of the status.",
            },
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "Generation of the spec that the condition describes.",
            },
            "lastTransitionTime": {
                "type": "string",
                "format": "date-time",
                "description": "Time of the last change of the status.",
            },
        },
    }


#: Without a status, kstatus treats an object as ready. So the status starts with observedGeneration -1 (as
#: Flux's own kinds do).
NEVER_OBSERVED: dict[str, Any] = {"observedGeneration": -1}


def observed_generation_schema() -> dict[str, Any]:
    """Return the structural schema of `.status.observedGeneration`."""
    return {
        "type": "integer",
        "format": "int64",
        "description": "Generation of the spec that this status describes; -1: the operator has not seen "
        "the spec.",
    }


def status_schema() -> dict[str, Any]:
    """Return the structural schema of `.status`."""
    integer = {"type": "integer", "format": "int32"}
    return {
        "type": "object",
        "description": "Observed state of the gateway.",
        "default": dict(NEVER_OBSERVED),
        "properties": {
            "observedGeneration": observed_generation_schema(),
            "replicas": {**integer, "description": "Number of worker pods."},
            "readyReplicas": {**integer, "description": "Number of ready worker pods."},
            "updatedReplicas": {**integer, "description": "Number of worker pods with the newest template."},
            "selector": {"type": "string", "description": "Label selector of the worker pods."},
            "endpoint": {
                "type": "string",
                "description": "Base URL for an OpenAI client inside the cluster.",
            },
            "ledger": {
                "type": "object",
                "description": "Keys of the ledger.",
                "properties": {
                    "verifyingKey": {
                        "type": "string",
                        "description": "Public key that verifies every checkpoint of the ledger"
                        " (C2SP signed-note form).",
                    },
                    "formerVerifyingKeys": {
                        "type": "array",
                        "description": "Earlier public keys of the ledger, which verify older evidence; newest last.",
                        "maxItems": MAX_FORMER_KEYS,
                        "items": {"type": "string", "maxLength": 512},
                        "x-kubernetes-list-type": "set",
                    },
                    "signing": {
                        "type": "array",
                        "description": "The shards that sign with each key, according to the newest "
                        "checkpoint of each shard. During a key rotation there are several keys.",
                        "maxItems": MAX_FORMER_KEYS + 1,
                        "items": {
                            "type": "object",
                            "required": ["verifyingKey", "shards"],
                            "properties": {
                                "verifyingKey": {
                                    "type": "string",
                                    "maxLength": 512,
                                    "description": "Public key that verifies the checkpoints of these shards.",
                                },
                                "shards": {
                                    "type": "array",
                                    "description": "Shards that sign with this key.",
                                    "maxItems": 2 * MAX_REPLICAS,
                                    "items": {"type": "integer", "format": "int32"},
                                    "x-kubernetes-list-type": "set",
                                },
                            },
                        },
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["verifyingKey"],
                    },
                },
            },
            "auditor": auditor_schema(),
            "keeping": keeping_schema(),
            "faults": {
                "type": "array",
                "description": "Problems of objects to which the spec refers. Each problem affects only "
                "one field of the spec. The condition ResolvedRefs summarizes them.",
                "maxItems": MAX_FAULTS,
                "items": fault_schema(),
                "x-kubernetes-list-type": "atomic",
            },
            "shards": {
                "type": "array",
                "description": "The workers, by shard.",
                "maxItems": 2 * MAX_REPLICAS,
                "items": shard_schema(),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["ordinal"],
            },
            "conditions": {
                "type": "array",
                "description": "Conditions of the gateway.",
                "items": condition_schema(),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }


def printer_columns() -> list[dict[str, Any]]:
    """Return the columns of `kubectl get ggw`, including those of `-o wide`."""

    def condition(kind: str) -> str:
        return f".status.conditions[?(@.type=='{kind}')]"

    return [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Workers", "type": "integer", "jsonPath": ".status.readyReplicas"},
        {"name": "Available", "type": "string", "jsonPath": f"{condition('Available')}.status"},
        {"name": "Ready", "type": "string", "jsonPath": f"{condition('Ready')}.status"},
        {"name": "Status", "type": "string", "jsonPath": f"{condition('Ready')}.reason"},
        {
            "name": "Scaling",
            "type": "string",
            "jsonPath": f"{condition('ScalingSafe')}.reason",
            "priority": 1,
        },
        {"name": "Pinned", "type": "string", "jsonPath": f"{condition('CPUPinned')}.status", "priority": 1},
        {"name": "Endpoint", "type": "string", "jsonPath": ".status.endpoint", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def crd_manifest(
    kind: str,
    plural: str,
    short_name: str,
    schema: dict[str, Any],
    subresources: dict[str, Any],
    columns: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a namespaced kind of this group, in its only version.

    `schema` describes the whole object, except apiVersion, kind and metadata.
    """
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **schema["properties"],
    }
    root = {"type": "object", **schema, "properties": properties}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short_name],
                "categories": ["proofgate"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": root},
                    "subresources": subresources,
                    "additionalPrinterColumns": columns,
                }
            ],
        },
    }


def crd() -> dict[str, Any]:
    """Return the CustomResourceDefinition of GovernanceGateways."""
    schema = {
        "description": "A governed, recorded LLM gateway: workers, one per core, behind HAProxy.",
        "required": ["spec"],
        "properties": {"spec": spec_schema(), "status": status_schema()},
        "x-kubernetes-validations": ROOT_RULES,
    }
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return crd_manifest(KIND, PLURAL, "ggw", schema, {"status": {}, "scale": scale}, printer_columns())


class _Dumper(yaml.SafeDumper):
    """A dumper without YAML aliases, which would make a CRD unreadable."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never write an alias."""
        return True


def render_crd(manifest: dict[str, Any], module: str) -> str:
    """Return a CRD as the text of its file; `module` is the module that prints it."""
    header = (
        f"# {API_VERSION} {manifest['spec']['names']['kind']}. Generated by"
        f" `python -m proofgate_operator.api.{module}`\n"
        "# from the models in operator/src/proofgate_operator/api; do not edit.\n"
    )
    return header + yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=110)


if __name__ == "__main__":
    print(render_crd(crd(), "crd"), end="")
