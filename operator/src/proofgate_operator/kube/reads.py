"""Classifies the results of reads from the API server. No other code evaluates the status of a failed read.

| answer | outcome |
|---|---|
| 200 with the object, or a list | Found |
| 404 NotFound that names the object | Gone |
| 401, 403, any other 404 (unknown kind) | MayNotLook |
| 429, 5xx, a broken connection, an invalid answer | Unavailable |

Only `Gone` means that an object does not exist.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from proofgate_operator import metrics
from proofgate_operator.build.naming import Manifest
from proofgate_operator.kube.errors import ApiError


class ReadOutcome(StrEnum):
    """The outcome of a read."""

    FOUND = "Found"
    NOT_FOUND = "Gone"
    ACCESS_DENIED = "MayNotLook"
    UNAVAILABLE = "Unavailable"


@dataclass(frozen=True)
class ReadRequest:
    """A read: its verb (get, list, watch), the kind, its namespace (None: all), and the name of the object,
    if one."""

    verb: str
    kind: str
    namespace: str | None
    name: str = ""


class ReadFailed(ApiError):
    """A failed read; `outcome` is MayNotLook or Unavailable."""

    def __init__(self, read: ReadRequest, outcome: ReadOutcome, error: Exception) -> None:
        if isinstance(error, ApiError):
            super().__init__(error.status, error.reason, error.message, error.retry_after, error.subject)
        else:
            super().__init__(503, type(error).__name__, "the API server cannot be reached")
        self.read = read
        self.outcome = outcome
        metrics.FAILED_READS.labels(read.verb, read.kind, outcome).inc()


@dataclass(frozen=True, repr=False)
class ReadResult:
    """The outcome of a read of one object: the object if it was found, otherwise the failure."""

    outcome: ReadOutcome
    manifest: Manifest | None = None
    failure: ReadFailed | None = None


def outcome_of(read: ReadRequest, error: Exception) -> ReadOutcome:
    """Return the outcome of a failed read."""
    if isinstance(error, ReadFailed):
        return error.outcome
    if isinstance(error, ApiError):
        if error.status == 404:
            names_it = error.reason == "NotFound" and error.subject == read.name
            return ReadOutcome.NOT_FOUND if read.name and names_it else ReadOutcome.ACCESS_DENIED
        if error.status in (401, 403):
            return ReadOutcome.ACCESS_DENIED
    return ReadOutcome.UNAVAILABLE


def is_unknown_kind(error: ApiError) -> bool:
    """Return whether the API server says that it does not serve a group and version, or a kind."""
    return error.status == 404


@contextlib.contextmanager
def wrap_read_errors(read: ReadRequest) -> Iterator[None]:
    """Convert an `ApiError` of the block into `ReadFailed`. Exceptions of the connection are not
    converted."""
    try:
        yield
    except ReadFailed:
        raise
    except ApiError as error:
        raise ReadFailed(read, outcome_of(read, error), error) from error
