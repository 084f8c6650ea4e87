"""A parser for one command. Its errors are one sentence and suggest the intended name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from proofgate.exit_codes import EXIT_USAGE

#: Maximum number of choices that an error lists.
_MAX_LISTED_CHOICES = 8


class Parser(argparse.ArgumentParser):
    """Parses the arguments of one command."""

    def error(self, message: str) -> NoReturn:
        """Prints the error and how to get help, and exits."""
        print(f"{self.prog}: {message}\nFor help: {self.prog} --help", file=sys.stderr)
        sys.exit(EXIT_USAGE)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses all arguments. An unexpected argument is refused."""
        options, extra = self.parse_known_args(args, namespace)
        if extra:
            self.error(f"unexpected argument {extra[0]}")
        return options

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses the arguments that this parser knows. An unknown option is reported before a missing one."""
        words = list(sys.argv[1:] if args is None else args)
        # The arguments after an action belong to the parser of the action.
        if not any(isinstance(action, argparse._SubParsersAction) for action in self._actions):
            self._require_options(words)
        return super().parse_known_args(words, namespace)

    def _require_options(self, words: Sequence[str]) -> None:
        for word in words:
            if word == "--":
                return
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in name and name not in self._option_string_actions:
                known = (option for option in self._option_string_actions if option.startswith("--"))
                self.error(f"unknown option {name}{suggestion(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        listed = f": choose from {', '.join(names)}" if len(names) <= _MAX_LISTED_CHOICES else ""
        hint = suggestion(str(value), names) or listed
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"unknown command {value}{hint}")
        raise argparse.ArgumentError(action, f"unknown choice {value}{hint}")


def suggestion(given: str, known: Iterable[str]) -> str:
    """Returns `: did you mean …?` with the known name most similar to `given`; empty if no name is
    similar."""
    found = nearest_name(given, known)
    return f": did you mean {found}?" if found is not None else ""


def nearest_name(given: str, known: Iterable[str]) -> str | None:
    """Returns the known name most similar to `given`; None if no name is similar."""
    from difflib import get_close_matches  # imported only after an error, because it is slow

    names = {name.lower(): name for name in known}
    found = get_close_matches(given.lower(), names, n=1, cutoff=0.6)
    if found:
        return names[found[0]]
    # A prefix of a long name is not similar to the whole name.
    whole = [name for short, name in names.items() if given.strip("-") and short.startswith(given.lower())]
    return whole[0] if len(whole) == 1 else None
