"""The rule packs of the repository: TOML files beside the policy crate."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

REPOSITORY = Path(__file__).resolve().parents[2]
CRATE = REPOSITORY / "rust-core" / "crates" / "policy"
PACKS = CRATE / "packs"

Target = Literal["request", "response", "both"]
View = Literal["folded", "text"]
Action = Literal["block", "redact", "mask", "flag"]
Extent = Literal["match", "private_key", "token"]
Direction = Literal["request", "response"]


@dataclass(frozen=True)
class Rule:
    """One rule of a pack: the fields of the TOML file, with words spelled as in the engine's verdicts."""

    pack: str
    #: Whether the pack's rules scan instructions, which are messages of the roles `system` and `developer`.
    instructions: bool
    id: str
    reason: str
    target: Target
    view: View
    literals: tuple[str, ...]
    regex: str | None
    check: str | None
    score: int
    action: Action
    matching: tuple[str, ...]
    not_matching: tuple[str, ...]
    #: Whether the rule ignores values that are used only in documentation.
    spares_documentation: bool = False
    #: The extent of the replaced text.
    extent: Extent = "match"

    def applies_to(self, direction: Direction) -> bool:
        """Whether the rule takes part in scanning texts of this direction."""
        return self.target in ("both", direction)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions that the rule takes part in."""
        return tuple(direction for direction in ("request", "response") if self.applies_to(direction))


def pack_names() -> list[str]:
    """The names of all packs, in alphabetical order."""
    return sorted(path.stem for path in PACKS.glob("*.toml"))


def load_pack(name: str) -> list[Rule]:
    """The rules of one pack, in the order of the file. Raises ValueError for a file that names another pack."""
    document = tomllib.loads((PACKS / f"{name}.toml").read_text())
    if document["name"] != name:
        raise ValueError(f"{name}.toml calls itself {document['name']!r}")
    instructions = "Instructions" in document.get("scopes", ["Instructions"])
    spares = document.get("sparesDocumentation", False)
    return [_rule(name, instructions, spares, entry) for entry in document["rule"]]


def description(name: str) -> str:
    """The description of a pack."""
    return str(tomllib.loads((PACKS / f"{name}.toml").read_text())["description"])


def load_packs() -> list[Rule]:
    """The rules of all packs, packs in alphabetical order."""
    return [rule for name in pack_names() for rule in load_pack(name)]


def _rule(pack: str, instructions: bool, spares_documentation: bool, entry: dict[str, Any]) -> Rule:
    examples = entry.get("examples", {})
    return Rule(
        pack=pack,
        instructions=instructions,
        id=entry["id"],
        reason=entry["reason"],
        target=_word(entry["target"]),
        view=_word(entry.get("view", "Folded")),
        literals=tuple(entry.get("literals", ())),
        regex=entry.get("regex"),
        check=entry.get("check"),
        score=entry["score"],
        action=_word(entry["action"]),
        matching=tuple(examples.get("match", ())),
        not_matching=tuple(examples.get("noMatch", ())),
        spares_documentation=spares_documentation,
        extent=_word(entry.get("extent", "Match")),
    )


def _word(word: str) -> Any:
    """`PrivateKey` as `private_key`."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", word).lower()
