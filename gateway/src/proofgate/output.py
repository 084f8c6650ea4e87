"""How commands print data: `--output table` for people, `json` and `yaml` for programs."""

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
    """Adds `--output`, with `more` forms than the three.

    `former` are names that it had: a flag of the name of a form (`--json`), or an option that takes one
    (`--format`). They work, and no help shows them.
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
    # The name of the table before there were three forms.
    return "table" if text == "text" else text


def is_data(options: argparse.Namespace) -> bool:
    """Whether a program reads the output."""
    return options.output in ("json", "yaml")


def show(options: argparse.Namespace, document: Any, *, indent: int | None = 2) -> None:
    """Prints data in the form that `--output` names: JSON or YAML, in the order of the document."""
    if options.output == "yaml":
        import yaml

        plain = json.loads(json.dumps(document))  # no classes of our own, and no references
        print(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=1 << 16), end="")
    else:
        print(json.dumps(document, indent=indent))


def table(rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest entry, each line without blanks at its end."""
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return "\n".join(
        "  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)).rstrip()
        for row in listed
    )
