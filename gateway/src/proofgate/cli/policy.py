"""The arguments of the commands of the group `policy`. Files that the configuration names are not read, so
no secret is needed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from proofgate import commands as handlers
from proofgate import output

_Describe = Callable[..., argparse.ArgumentParser]

_SAMPLES = """\
samples, for example:
  - text: my card is 4539 5787 6362 1486
    direction: request          # or response; default: request
    tenant: acme                # default: the gateway's policy
    expect: mask                # allow, flag, mask, redact or block; default: any
    rules: [pii-card]           # must match; others may match, too
"""


def test(command: _Describe) -> None:
    """Describes `test`."""
    parser = command(
        handlers.policy_test,
        "Evaluates the policy as if it were enforced. Prints each failure and what matched. Exit "
        "code 1 if an example or a sample fails.",
        _SAMPLES,
    )
    parser.add_argument("--samples", type=Path, metavar="FILE", help="a YAML list of samples")
    output.add_argument(parser)
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the worker's YAML file")


def rules(command: _Describe) -> None:
    """Describes `rules`."""
    parser = command(handlers.policy_rules)
    parser.add_argument("--pack", metavar="NAME", help="only the rules of this pack")
    output.add_argument(parser)
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the worker's YAML file")


def check(command: _Describe) -> None:
    """Describes `check`."""
    from proofgate_schema.policy import Scope

    parser = command(
        handlers.policy_check,
        "Prints the decision, scopes, scores and matches.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", metavar="TEXT", help="the text, or - for standard input")
    what.add_argument(
        "--request", metavar="FILE", help="a file with a whole request in JSON, or - for standard input"
    )
    parser.add_argument(
        "--endpoint",
        default="/v1/chat/completions",
        metavar="PATH",
        help="the endpoint of the request (default: %(default)s)",
    )
    parser.add_argument(
        "--scope", choices=get_args(Scope), help="the scope of the text (default: User or Answer)"
    )
    parser.add_argument(
        "--direction",
        choices=("request", "response"),
        default="request",
        help="the direction: prompt or answer (default: %(default)s)",
    )
    parser.add_argument(
        "--tenant", metavar="NAME", help="the tenant whose policy applies (default: the gateway's policy)"
    )
    output.add_argument(parser)
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the worker's YAML file")
