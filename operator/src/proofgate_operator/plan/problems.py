"""Faults for the person who can fix them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Why a configuration is invalid: a CamelCase reason, and a message that names the field or object."""

    reason: str
    message: str


@dataclass(frozen=True)
class Fault:
    """A fault of an object that one field names. It affects only that field's owner: a tenant loses keys, a
    provider its models, HAProxy its next certificate.

    `field` is the owner as a path of the spec, such as spec.tenants[acme].
    """

    field: str
    reason: str
    message: str
