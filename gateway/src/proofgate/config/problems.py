"""The problems for which a configuration is refused, each with a code and a location, never with a secret."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args, get_origin

from proofgate_schema.error_messages import plain_message
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from proofgate.config.document import Document, FieldPath

UNKNOWN_FIELD = "config_unknown_field"


@dataclass(frozen=True)
class Problem:
    """One reason why a configuration is refused. `line` counts from 1; None if the problem is about the whole
    file."""

    code: str
    path: FieldPath
    message: str
    line: int | None = None

    def describe(self, source: Path) -> str:
        """Returns `file:line: field: what to do`."""
        place = f"{source}:{self.line}" if self.line is not None else str(source)
        field_name = dotted_path(self.path)
        return f"{place}: {field_name}: {self.message}" if field_name else f"{place}: {self.message}"

    def location_as_json(self, source: Path) -> dict[str, Any]:
        """Code and location as JSON, without any of the file's content."""
        # The name of an unknown field is free text, and might be a secret key in the wrong place.
        path = self.path[:-1] if self.code == UNKNOWN_FIELD else self.path
        return {"code": self.code, "file": str(source), "line": self.line, "field": dotted_path(path)}

    def as_json(self, source: Path) -> dict[str, Any]:
        """Code, location and message as JSON."""
        report = self.location_as_json(source)
        return {**report, "field": dotted_path(self.path), "message": self.message}


def dotted_path(path: FieldPath) -> str:
    """Formats a path like `tenants[0].keyHashes`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name closest to `name`, without regard to case and separators; None if none is
    close."""
    by_letters = {_letters(entry): entry for entry in known}
    close = difflib.get_close_matches(_letters(name), by_letters, n=1)
    return by_letters[close[0]] if close else None


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


class InvalidConfigError(Exception):
    """A configuration cannot be used. Its text has one line for each problem: `file:line: field: what to do`.

    `files` has the files that were read, with the digests of their contents. When a file changes, the result
    may change.
    """

    code = "config_invalid"

    def __init__(
        self, source: Path, problems: Iterable[Problem], files: Mapping[Path, str | None] | None = None
    ) -> None:
        self.source = source
        self.problems = tuple(problems)
        self.files = dict(files or {})
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> list[str]:
        """One line for each problem."""
        return [problem.describe(self.source) for problem in self.problems]


@dataclass
class Findings:
    """A collector of problems, which finds their lines."""

    document: Document
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def report(self, code: str, path: FieldPath, message: str) -> None:
        """Adds one problem."""
        self.problems.append(with_line(self.document, Problem(code, path, message)))

    def downgrade_to_warnings(self, known: int, consequence: str) -> bool:
        """Turns all problems except the first `known` into warnings, and adds the consequence to each.

        Returns whether there were any. Used for problems that affect only one provider or tenant.
        """
        tolerated = self.problems[known:]
        del self.problems[known:]
        self.warnings += [
            replace(problem, message=f"{problem.message}: {consequence}") for problem in tolerated
        ]
        return bool(tolerated)


def report_duplicates(names: Iterable[str], where: FieldPath, field: str, findings: Findings) -> None:
    """Reports each name that an earlier entry of the list at `where` already has."""
    seen: set[str] = set()
    for position, name in enumerate(names):
        if name in seen:
            message = f"{name} is already defined: rename one"
            findings.report("config_duplicate_name", (*where, position, field), message)
        seen.add(name)


def with_line(document: Document, problem: Problem) -> Problem:
    """The problem with its line."""
    return replace(problem, line=document.line_of(problem.path))


def report_schema_problems(
    error: ValidationError, root: type[BaseModel], findings: Findings, below: FieldPath = ()
) -> None:
    """Reports pydantic's errors about the section at `below`, without the invalid values."""
    for detail in error.errors(include_url=False):
        path = (*below, *detail["loc"])
        if detail["type"] == "missing":
            findings.report("config_missing_field", path, plain_message(detail))
        elif detail["type"] == "extra_forbidden":
            close = did_you_mean(str(path[-1]), _fields_at(root, detail["loc"][:-1]))
            hint = f"did you mean {close}?" if close else "remove it"
            findings.report(UNKNOWN_FIELD, path, f"there is no such field: {hint}")
        else:
            findings.report("config_invalid_value", path, _invalid_value_message(detail))


def _invalid_value_message(detail: ErrorDetails) -> str:
    """A message about what a value must be, without the value itself."""
    given, message = detail["input"], plain_message(detail)
    # YAML parses 8080 as a number, and Off as false.
    if detail["type"] == "string_type" and isinstance(given, int | float):
        read_as = "true or false" if isinstance(given, bool) else "a number"
        return f"{message}; YAML reads this value as {read_as}: put it in quotes"
    if detail["type"] == "literal_error" and isinstance(given, str):
        close = did_you_mean(given, re.findall(r"'([^']*)'", detail["ctx"]["expected"]))
        return f"{message}: did you mean {close}?" if close else message
    return message


def _fields_at(section: type[BaseModel], path: FieldPath) -> list[str]:
    """The names of the fields in the section at a path."""
    inside_mapping = False
    for part in path:
        if inside_mapping:
            # A key of a mapping of sections, such as the name of a group.
            inside_mapping = False
        elif isinstance(part, str):
            fields = {entry.alias: entry.annotation for entry in section.model_fields.values()}
            below = _section_in(fields.get(part))
            inside_mapping = get_origin(fields.get(part)) is dict
            if below is None:
                return []
            section = below
    return [entry.alias or "" for entry in section.model_fields.values()]


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, (_section_in(inner) for inner in get_args(annotation))), None)
