"""The statements of `docs/concepts/compliance.md` on commands and laws."""

from __future__ import annotations

import re
from pathlib import Path

from proofgate.cli import all_parsers

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "compliance.md").read_text()
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def test_every_command_of_the_page_exists_with_its_options() -> None:
    commands = all_parsers()
    named = re.findall(r"`proofgate ([^`]+)`", PAGE)
    assert len(named) > 15
    for said in named:
        words = said.split()
        options = {word for word in words if word.startswith("--")}
        command = commands.get(words[0]) or commands[" ".join(words[:2])]
        assert options <= command._option_string_actions.keys(), said


def test_dates_of_law_stand_beside_a_source_with_the_day_on_which_it_was_read() -> None:
    [section] = re.findall(r"#### Dates\n(.*?)\n#### ", PAGE, re.DOTALL)
    outside = PAGE.replace(section, "")
    assert re.findall(rf"\d+ (?:{_MONTHS}) 20\d\d", outside) == []
    assert re.search(rf"were read on \d+ (?:{_MONTHS}) 20\d\d in", section)
    assert section.count("](https://") >= 3
