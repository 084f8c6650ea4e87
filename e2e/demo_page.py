"""The last picture of the demonstration: one exchange on the auditor's page for a reader."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import httpx

from e2e.browser import CHROMIUM, browser
from e2e.screenshots import sign_in

PICTURE = "exchange.png"


@dataclass(frozen=True)
class ExchangePage:
    """One exchange at an auditor's port, for the reader who has the key."""

    url: str
    request_id: str
    reader_key: str

    def is_indexed(self) -> bool:
        """Whether the auditor's index contains the exchange and its end."""
        headers = {"Authorization": f"Bearer {self.reader_key}"}
        try:
            answer = httpx.get(f"{self.url}/v1/exchanges/{self.request_id}", headers=headers, timeout=10)
        except httpx.HTTPError:
            return False
        return answer.is_success and answer.json()["exchanges"][0]["outcome"] != "open"

    def leave_picture(self, folder: Path) -> str:
        """Writes a picture of the page with verified records; prints its path, or why there is none."""
        if not Path(CHROMIUM).exists() or shutil.which("chromedriver") is None:
            return f"no picture of the auditor's page: {CHROMIUM} and chromedriver are not both here"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="proofgate-demo-") as scratch, browser(Path(scratch)) as window:
            window.see(1100, 900)
            sign_in(window, self.url, f"#/exchange/{self.request_id}", self.reader_key)
            window.wait_for("Verified: checkpoints signed by the ledger's key cover these records")
            (folder / PICTURE).write_bytes(window.screenshot())
        return f"the browser has verified the exchange's records on the auditor's page: {folder / PICTURE}"
