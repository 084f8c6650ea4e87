"""What is wrong, for the one who can mend it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Why a configuration is not valid: a CamelCase reason, and a sentence that names the field or object."""

    reason: str
    message: str


@dataclass(frozen=True)
class Fault:
    """What is wrong with an object that one field names. It costs that field's owner alone: a tenant its
    keys, a provider its models, HAProxy its next certificate.

    `field` is the owner as a path of the spec, such as spec.tenants[acme].
    """

    field: str
    reason: str
    message: str
