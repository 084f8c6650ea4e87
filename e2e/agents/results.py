"""What came of a run: of each client, API and provider the result of each scenario, and where from."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

HERE = Path(__file__).parent
#: Where a run writes its results, if it is to.
VARIABLE = "PROOFGATE_AGENTS_RESULTS"

#: Client, API, provider, scenario: `works`, `none`, or a kind and a reason.
Results = dict[str, dict[str, dict[str, dict[str, str]]]]


def version_of(client: str) -> str:
    """The pinned version of a client. Raises KeyError if no lock file has it."""
    for file in (HERE / "package.json", HERE / "sdk" / "package.json"):
        found = json.loads(file.read_text())["dependencies"].get(client)
        if found is not None:
            return str(found)
    named = {"llama-index": "llama-index-core", "pydantic-ai": "pydantic-ai-slim"}.get(client, client)
    for file in sorted((HERE / "requirements").glob("*.txt")):
        line = re.search(rf"^{re.escape(named)}==(\S+)", file.read_text(), re.MULTILINE)
        if line:
            return line[1]
    raise KeyError(client)


def record(client: str, api: str, provider: str, scenario: str, result: str) -> None:
    """Adds a result to those of the run, of all of its processes, where the run was told to keep them."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        results: Results = json.loads(file.read() or "{}")
        results.setdefault(client, {}).setdefault(api, {}).setdefault(provider, {})[scenario] = result
        file.truncate(0)
        file.write(json.dumps(results, indent=1) + "\n")


def read(path: Path) -> Results:
    """The results of a run. Raises FileNotFoundError if there was none."""
    results: Results = json.loads(path.read_text())
    return results
