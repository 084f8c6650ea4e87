"""Why a configuration is refused: every problem with its code and its place, never with a secret."""

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
    """One reason why a configuration is refused. `line` counts from 1; None when the whole file is meant."""

    code: str
    path: FieldPath
    message: str
    line: int | None = None

    def describe(self, source: Path) -> str:
        """`file:line: field: what to do`."""
        place = f"{source}:{self.line}" if self.line is not None else str(source)
        field_name = dotted_path(self.path)
        return f"{place}: {field_name}: {self.message}" if field_name else f"{place}: {self.message}"

    def location_as_json(self, source: Path) -> dict[str, Any]:
        """Code and place as JSON, without a word of what the file says."""
        # The name of an unknown field is the writer's text, and might be a key in the wrong place.
        path = self.path[:-1] if self.code == UNKNOWN_FIELD else self.path
        return {"code": self.code, "file": str(source), "line": self.line, "field": dotted_path(path)}

    def as_json(self, source: Path) -> dict[str, Any]:
        """Code, place and message as JSON."""
        report = self.location_as_json(source)
        return {**report, "field": dotted_path(self.path), "message": self.message}


def dotted_path(path: FieldPath) -> str:
    """A path as people write it: `tenants[0].keyHashes`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to what was written, whatever its case and separators."""
    by_letters = {_letters(entry): entry for entry in known}
    close = difflib.get_close_matches(_letters(name), by_letters, n=1)
    return by_letters[close[0]] if close else None


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


class InvalidConfigError(Exception):
    """A configuration cannot be used. Its text has one line for each problem: `file:line: field: what to do`.

    `files` are the files that were read, with the digests of what they held: when one changes, so may this.
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
    """Collects problems and knows their lines."""

    document: Document
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def report(self, code: str, path: FieldPath, message: str) -> None:
        """Adds one problem."""
        self.problems.append(with_line(self.document, Problem(code, path, message)))

    def downgrade_to_warnings(self, known: int, consequence: str) -> bool:
        """Makes warnings of all problems but the first `known`, each with what follows from it.

        Returns whether there were any. For what costs one provider or tenant, and nobody else.
        """
        tolerated = self.problems[known:]
        del self.problems[known:]
        self.warnings += [
            replace(problem, message=f"{problem.message}: {consequence}") for problem in tolerated
        ]
        return bool(tolerated)


def report_duplicates(names: Iterable[str], where: FieldPath, field: str, findings: Findings) -> None:
    """Reports each name that an earlier entry of the list at `where` has already."""
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
    """Reports what pydantic found in a section that stands at `below`, without the values it was given."""
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
    """What a value has to be, without the value."""
    given, message = detail["input"], plain_message(detail)
    # YAML takes 8080 for a number, and Off for false.
    if detail["type"] == "string_type" and isinstance(given, int | float):
        read_as = "true or false" if isinstance(given, bool) else "a number"
        return f"{message}; YAML reads this value as {read_as}: put it in quotes"
    if detail["type"] == "literal_error" and isinstance(given, str):
        close = did_you_mean(given, re.findall(r"'([^']*)'", detail["ctx"]["expected"]))
        return f"{message}: did you mean {close}?" if close else message
    return message


def _fields_at(section: type[BaseModel], path: FieldPath) -> list[str]:
    """The names of the fields of the section that stands at a path."""
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
