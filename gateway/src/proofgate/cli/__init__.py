"""The command line. It imports only the module of the command that is called.

`catalogue` lists the commands. Each command's module describes its arguments and runs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from proofgate import __version__, terminal
from proofgate.cli.catalogue import BY_FORMER_PATH, BY_PATH, COMMANDS, GROUPS, Command
from proofgate.exit_codes import ExitCode, fail

if TYPE_CHECKING:
    import argparse

_HELP = ("-h", "--help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    terminal.install_escaping()
    options = parse(sys.argv[1:] if arguments is None else arguments)
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    from proofgate import _core
    from proofgate.descriptors import raise_descriptor_limit
    from proofgate.evidence import EvidenceError
    from proofgate.logs import UnknownLogFormatError

    raise_descriptor_limit()
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except (EvidenceError, UnknownLogFormatError) as error:
        return fail(str(error), ExitCode.USAGE)
    except _core.ConfigError as error:
        return fail(f"{error} [{error.code}]", ExitCode.USAGE)
    except _core.ProofgateError as error:
        if error.code == "not_a_log":
            advice = "give the directory of a ledger, of a shard or of a log"
            return fail(f"{error}: {advice} [{error.code}]", ExitCode.USAGE)
        return fail(f"{error} [{error.code}]", ExitCode.FAILED)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has exited. The interpreter must not report this a second time when it
        # flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command, as `command`, and its arguments. Raises SystemExit after help, and for an unknown
    command."""
    words = list(arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words:
        _show_help(None, ExitCode.USAGE)
    if words[0] == "--version":
        print(f"proofgate {__version__}")
        sys.exit(0)
    if words[0] in _HELP:
        _show_help(None, 0)
    if words[0] in GROUPS:
        if len(words) == 1:
            _show_help(words[0], ExitCode.USAGE)
        if words[1] in _HELP:
            _show_help(words[0], 0)
        command, rest = BY_PATH.get(" ".join(words[:2])), words[2:]
    else:
        command, rest = BY_PATH.get(words[0]), words[1:]
        if command is None and words[0] in BY_FORMER_PATH:
            command = BY_FORMER_PATH[words[0]]
            _warn_renamed(words[0], command)
    if command is None:
        _reject_unknown(words)
    parser = command_parser(command)
    options: argparse.Namespace = parser.parse_args(rest)
    return options


def command_parser(command: Command) -> argparse.ArgumentParser:
    """Returns the parser of a command. This imports the command's module."""
    import argparse
    import textwrap
    from importlib import import_module

    from proofgate.cli.overview import WIDTH
    from proofgate.cli.parsing import Parser

    made: list[Parser] = []

    def describe(
        run: Callable[[argparse.Namespace], int], details: str = "", epilog: str | None = None
    ) -> argparse.ArgumentParser:
        summary = f"{command.summary[0].upper()}{command.summary[1:]}. {details}"
        parser = Parser(
            prog=f"proofgate {command.path}",
            description=textwrap.fill(summary, WIDTH, break_on_hyphens=False),
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.set_defaults(command=run)
        made.append(parser)
        return parser

    module, _, function = command.add_function.partition(":")
    getattr(import_module(module), function)(describe)
    return made[0]


def all_parsers() -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of all commands by path, for documentation and completion."""
    return {command.path: command_parser(command) for command in COMMANDS}


def _show_help(group: str | None, code: int) -> NoReturn:
    from proofgate.cli import overview

    text = overview.render_overview() if group is None else overview.render_group(group)
    print(text, end="", file=sys.stderr if code else sys.stdout)
    sys.exit(code)


def _warn_renamed(former: str, command: Command) -> None:
    # The output to a file or a pipe stays unchanged for programs that read it.
    if sys.stderr.isatty():
        print(
            f"proofgate: {former} is now {command.path}; the old name works until the next version",
            file=sys.stderr,
        )


def _reject_unknown(words: Sequence[str]) -> NoReturn:
    from proofgate.cli.parsing import nearest_name, suggestion

    if words[0].startswith("-"):
        hint = suggestion(words[0], ("--help", "--version"))
        message = f"unknown option {words[0]}{hint or ': proofgate --help lists the options and commands'}"
    else:
        given = " ".join(words[:2]) if words[0] in GROUPS else words[0]
        names = {
            **{command.former_path: command.path for command in COMMANDS if command.former_path},
            **{command.name: command.path for command in COMMANDS},
            **{group: f"{group} COMMAND" for group in GROUPS},
        }
        # Search in the named group first, then in all groups.
        name = given.rpartition(" ")[2]
        own = {command.name: command.path for command in COMMANDS if command.group == words[0]}
        exact = names.get(name)
        found = own.get(nearest_name(name, own) or "") if own and exact is None else None
        found = found or exact or names.get(nearest_name(name, names) or "")
        hint = f": did you mean {found}?" if found else ": proofgate --help lists the commands"
        message = f"unknown command {given}{hint}"
    sys.exit(fail(message, ExitCode.USAGE))
