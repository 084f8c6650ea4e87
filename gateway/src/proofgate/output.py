"""Output of commands' data: `--output table` for people, `json` and `yaml` for programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import Any

_FORMATS = ("table", "json", "yaml")


def add_argument(
    parser: argparse.ArgumentParser,
    *former: str,
    more: Sequence[str] = (),
    meaning: str = "the output format",
) -> None:
    """Adds `--output`, with the formats in `more` besides the three.

    `former` are old options: a flag with the name of a format (`--json`), or an option that takes a format
    (`--format`). They still work, and help does not show them.
    """
    parser.add_argument(
        "--output",
        type=_parse_format,
        choices=(*_FORMATS, *more),
        default="table",
        help=f"{meaning} (default: %(default)s)",
    )
    for name in former:
        form = name.removeprefix("--")
        if form in (*_FORMATS, *more):
            parser.add_argument(name, dest="output", action="store_const", const=form, help=argparse.SUPPRESS)
        else:
            parser.add_argument(
                name, dest="output", type=_parse_format, choices=(*_FORMATS, *more), help=argparse.SUPPRESS
            )


def _parse_format(text: str) -> str:
    # `text` is the former name of the format `table`.
    return "table" if text == "text" else text


def is_data(options: argparse.Namespace) -> bool:
    """Whether the output is a format for programs."""
    return options.output in ("json", "yaml")


def show(options: argparse.Namespace, document: Any, *, indent: int | None = 2) -> None:
    """Prints data in the format that `--output` names: JSON or YAML, in the order of the document."""
    if options.output == "yaml":
        import yaml

        plain = json.loads(json.dumps(document))  # only built-in types, and no shared references
        print(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=1 << 16), end="")
    else:
        print(json.dumps(document, indent=indent))


def table(rows: Iterable[Sequence[str]]) -> str:
    """Formats rows in columns as wide as their widest entry, without trailing blanks."""
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return "\n".join(
        "  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)).rstrip()
        for row in listed
    )
