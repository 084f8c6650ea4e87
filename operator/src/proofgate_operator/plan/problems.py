"""What is wrong with a configuration, for the one who wrote it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Why a configuration is not valid: a CamelCase reason, and a sentence that names the field or object."""

    reason: str
    message: str
