"""A copy of a ledger's directory, made as the documentation says."""

import re
import subprocess
from pathlib import Path

from e2e.programs import PATIENCE

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "back-up-and-restore.md"


def copy_volume(volume: Path, copy: Path) -> None:
    """Copies a ledger directory while it is written, by the commands of docs/how-to/back-up-and-restore.md."""
    (script,) = re.findall(r"^```\n(cd /var/lib/proofgate\n.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    commands = script.replace("/var/lib/proofgate", str(volume)).replace("/backup", str(copy))
    copy.mkdir()
    subprocess.run(["bash", "-eu", "-c", commands], check=True, timeout=PATIENCE)
