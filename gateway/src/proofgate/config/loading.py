"""Loads a YAML file into a checked configuration, or reports all its problems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from proofgate.config.config import Config
from proofgate.config.document import Document, DocumentError, parse_document
from proofgate.config.files import MAX_CONFIG_BYTES, ReferencedFiles, current_digests, digest_of, read_bounded
from proofgate.config.policy_rules import check_policy
from proofgate.config.problems import Findings, InvalidConfigError, Problem, report_schema_problems
from proofgate.config.reading import read_config
from proofgate.config.settings import Settings


def load(path: Path, content: bytes | None = None) -> Config:
    """Reads and checks a configuration file and every file it names; relative paths start at its directory.

    `content` replaces the content of the configuration file; the files that it names are read from disk.
    Raises InvalidConfigError with all problems of fields, or, if there are none, with all problems of files
    and references.
    """
    content = _read(path) if content is None else content
    digests: dict[Path, str | None] = {path: digest_of(content)}
    document = _parse(path, content, digests)
    settings = _validate(path, document, digests)
    findings = Findings(document)
    files = ReferencedFiles(path.parent, findings)
    files.digests |= digests
    config = read_config(path, document, settings, files, findings)
    if findings.problems:
        raise InvalidConfigError(path, findings.problems, files.digests)
    return replace(config, content=content)


def load_settings(path: Path) -> Settings:
    """Loads the settings and checks their policy. The files that they name are not read.

    For work on rules without access to the secrets. Raises InvalidConfigError.
    """
    content = _read(path)
    document = _parse(path, content, {})
    settings = _validate(path, document, {})
    findings = Findings(document)
    check_policy(settings, findings)
    if findings.problems:
        raise InvalidConfigError(path, findings.problems)
    return settings


def _read(path: Path) -> bytes:
    try:
        content = read_bounded(path, MAX_CONFIG_BYTES)
    except OSError as error:
        problem = Problem("config_unreadable", (), f"cannot be read: {error.strerror}")
        raise InvalidConfigError(path, [problem], current_digests([path])) from None
    if len(content) > MAX_CONFIG_BYTES:
        problem = Problem("config_unreadable", (), f"is larger than {MAX_CONFIG_BYTES} bytes")
        raise InvalidConfigError(path, [problem], {path: digest_of(content)})
    return content


def _parse(path: Path, content: bytes, digests: dict[Path, str | None]) -> Document:
    try:
        return parse_document(content.decode())
    except UnicodeDecodeError:
        problem = Problem("config_unreadable", (), "is not UTF-8 text")
    except DocumentError as error:
        problem = Problem("config_syntax", (), str(error), error.line)
    raise InvalidConfigError(path, [problem], digests)


def _validate(path: Path, document: Document, digests: dict[Path, str | None]) -> Settings:
    try:
        return Settings.model_validate(document.data)
    except ValidationError as error:
        findings = Findings(document)
        report_schema_problems(error, Settings, findings)
        raise InvalidConfigError(path, findings.problems, digests) from None
