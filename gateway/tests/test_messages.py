"""A hundred wrong invocations and configurations; `messages/` contains the output of each for review.

PROOFGATE_UPDATE_GOLDEN=1 pytest gateway/tests/test_messages.py      # writes both files
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from conftest import SECRETS, ConfigDirectory
from signing import VKEY

from proofgate.cli import main

GOLDEN = Path(__file__).parent / "messages"
KEY = "--key vkey"

#: Arguments of `proofgate`, run in a folder with a configuration, a verifying key, and other files.
INVOCATIONS = (
    "",
    "nothing",
    "fcsk ledger",
    "ledger",
    "ledger fcsk ledger",
    "audit fsck ledger",
    "--verbose",
    "serve",
    "serve --config nowhere.yaml",
    "serve --config ledger",
    "serve --config gateway.yaml --shard 65536",
    "serve --config gateway.yaml --shard one",
    "serve --conf gateway.yaml",
    "validate",
    "validate nowhere.yaml",
    "validate empty",
    "validate list.yaml",
    "validate binary",
    "validate tabs.yaml",
    "validate gateway.yaml --format xml",
    "validate gateway.yaml gateway.yaml",
    "quickstart --directory full --base-url http://127.0.0.1:1/v1",
    "quickstart --directory gateway.yaml --base-url http://127.0.0.1:1/v1",
    "quickstart --directory new --base-url api.openai.com",
    "quickstart --directory new --base-url http://user:secret@localhost/v1",
    "quickstart --directory new --key-env NOT_SET",
    "quickstart --directory new --listen 8080",
    "quickstart --directory new --listen 127.0.0.1:port",
    "quickstart --directory new --name 'a name' --base-url http://127.0.0.1:1/v1",
    "quickstart --directory new --model '' --base-url http://127.0.0.1:1/v1",
    "status --admin 127.0.0.1:9090",
    "status --admin http://127.0.0.1:1",
    "status --admin http://127.0.0.1:1 --token-file nowhere",
    "status --output html",
    "status -A -n llm",
    "gateway prices nowhere.yaml",
    "gateway prices gateway.yaml --at tomorrow",
    "policy",
    "policy check gateway.yaml",
    "policy check gateway.yaml --text hi --direction sideways",
    "policy check gateway.yaml --text hi --tenant nobody",
    "policy rules gateway.yaml --pack nothing",
    "policy test gateway.yaml --samples nowhere.yaml",
    "policy test gateway.yaml --samples list.yaml",
    "receipt req_1 --url http://127.0.0.1:1",
    "receipt req_1 --url http://127.0.0.1:1 --api-key-file nowhere",
    "receipt req_1 --url http://127.0.0.1:1 --api-key-file empty",
    "receipt req_1 --url http://127.0.0.1:1 --api-key-file tenant-key",
    "receipt req_1 --url http://127.0.0.1:1 --api-key-file tenant-key --timeout 601",
    "receipt no-id --url http://127.0.0.1:1 --api-key-file tenant-key",
    f"verify nowhere {KEY}",
    f"verify empty {KEY}",
    f"verify list.yaml {KEY}",
    "verify list.yaml --key nowhere",
    "verify list.yaml",
    "ledger prove req_1",
    "ledger prove req_1 --ledger nowhere",
    "ledger prove req_1 --ledger ledger",
    f"ledger reveal req_1 --body empty {KEY} --ledger ledger",
    f"ledger consistency empty empty {KEY} --ledger ledger",
    "ledger fsck",
    "ledger fsck nowhere",
    "ledger fsck ledger",
    f"verify binary {KEY}",
    "ledger fsck ledger --key nokey",
    f"ledger fsck ledger {KEY} --against nowhere",
    "ledger configuration ledger 12",
    "ledger configuration ledger 0123456789abcdef",
    "audit exchanges --index nowhere",
    "audit exchanges --index nowhere --since yesterday",
    "keys generate",
    "keys generate --name 'a b'",
    "keys hash --key abc",
    "audit run",
)

#: Changes to the tests' configuration: the old text and the new text.
CONFIGURATIONS = (
    ("listen: 127.0.0.1:0", "listen: 8080"),
    ("listen: 127.0.0.1:0", "listen: ::1:8080"),
    ("listen: 127.0.0.1:0", "listen: 127.0.0.1:70000"),
    ("listen: 127.0.0.1:0", "listne: 127.0.0.1:0"),
    ("type: OpenAI", "type: openai"),
    ("type: OpenAI", "type: Mistral"),
    ("baseURL: https://api.openai.com/v1/", "baseURL: api.openai.com/v1"),
    ("baseURL: https://api.openai.com/v1/", "baseURL: https://me:sk-very-secret@api.openai.com"),
    ("baseURL: https://api.openai.com/v1/", "baseUrl: https://api.openai.com/v1/"),
    ("apiKeyFile: openai-key", "apiKeyFile: nowhere"),
    ("apiKeyFile: openai-key", "apiKey: sk-very-secret"),
    ("apiKeyFile: openai-key", "apiKeyFile: /dev/null"),
    ("provider: openai", "provider: opnai"),
    ("provider: openai", "providers: [openai]"),
    ("name: fast", "name: gpt-4o-mini"),
    ("name: fast", "name: ''"),
    ("name: globex", "name: acme"),
    ("models: [gpt-4o-mini]", "models: [gpt-4o]"),
    ("models: [gpt-4o-mini]", "models: gpt-4o-mini"),
    ("keyHashesFile: globex-keys", "keyHashesFile: nowhere"),
    ("keyHashesFile: globex-keys", "keyHashes: [sk-plain-key]"),
    ("keyHashesFile: globex-keys", "keyHashes: []"),
    ("durability: Synced", "durability: fast"),
    ("directory: ledger", "directory: nowhere"),
    ("signingKeyFile: signing-key", "signingKeyFile: openai-key"),
    ("name: proofgate.dev/ns/demo", "name: proofgate.dev/other"),
    ("checkpointIntervalSeconds: 0.5", "checkpointIntervalSeconds: 0"),
    ("drainSeconds: 20", "drainSeconds: '20'"),
    ("drainSeconds: 20", "drainSeconds: 20s"),
    ("drainSeconds: 20", "drainSeconds: -1"),
    ("drainSeconds: 20", "drain: 20"),
    ("name: acme", "name: acme\n    limits: {requestsPerMinute: 0}"),
    ("name: acme", "name: acme\n    limits: {dollarsPerMonth: 10}"),
    ("name: acme", "name: acme\n    limits: {dollarsPerMonth: $10}"),
    ("name: acme", "name: acme\n    limits: {dollarsPerMonth: '10'}"),
    ("name: acme", "name: acme\n    policy: {mode: Off}"),
    ("timeouts:", "policy: {packs: [nothing]}\ntimeouts:"),
    ("timeouts:", "policy: {rules: [{id: a, reason: text, regex: '(', score: 5}]}\ntimeouts:"),
    ("timeouts:", "policy: {rules: {id: a}}\ntimeouts:"),
    ("timeouts:", "cors: {allowedOrigins: [example.com]}\ntimeouts:"),
    ("timeouts:", "telemetry: {endpoint: collector:4317}\ntimeouts:"),
    ("timeouts:", "timeouts: {}\ntimeouts:"),
)


@pytest.fixture
def here(config_directory: ConfigDirectory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the invocations."""
    config_directory.write("vkey", f"{VKEY}\n")
    config_directory.write("nokey", "not a key\n")
    config_directory.write("tenant-key", "acme-key\n")
    config_directory.write("empty", "")
    config_directory.write("list.yaml", "- one\n- two\n")
    config_directory.write("tabs.yaml", "ledger:\n\tname: a\n")
    (config_directory.path / "binary").write_bytes(bytes(range(256)))
    (config_directory.path / "full").mkdir()
    config_directory.write("full/file", "")
    monkeypatch.chdir(config_directory.path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("PATH", str(config_directory.path))
    for name in ("OPENAI_API_KEY", "NOT_SET", "KUBECONFIG", "PROOFGATE_AUTHOR"):
        monkeypatch.delenv(name, raising=False)
    return config_directory.path


def printed(arguments: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The output and the exit code of an invocation."""
    try:
        code: object = main(shlex.split(arguments))
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    text = f"{out}{err}".replace(str(folder), "DIR")
    # The digest depends on the folder's name.
    text = re.sub(r"(?<=digest )[0-9a-f]{64}", "DIGEST", text)
    return f"{text}exit code {code}\n"


def compare(name: str, text: str) -> None:
    file = GOLDEN / name
    for secret in SECRETS:
        assert secret not in text
    assert "Traceback" not in text
    if os.environ.get("PROOFGATE_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), (
        f"{file} differs: review it, then write it with PROOFGATE_UPDATE_GOLDEN=1"
    )


def test_there_are_a_hundred() -> None:
    assert len(set(INVOCATIONS)) + len(set(CONFIGURATIONS)) >= 100


def test_a_wrong_invocation_says_what_is_wrong(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [f"$ proofgate {arguments}\n{printed(arguments, here, capsys)}" for arguments in INVOCATIONS]
    compare("invocations.txt", "\n".join(found))


def test_a_wrong_configuration_says_what_is_wrong_and_where(
    here: Path, config_directory: ConfigDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    before = config_directory.file.read_text()
    found = []
    for old, new in CONFIGURATIONS:
        config_directory.replace(old, new)
        found.append(f"{old}\n→ {new}\n{printed('validate gateway.yaml', here, capsys)}")
        config_directory.file.write_text(before)
    compare("configurations.txt", "\n".join(found).replace("sk-very-secret", "SECRET"))


if sys.version_info >= (3, 12):
    # argparse's messages differ between releases of Python.
    pytestmark = pytest.mark.skip("messages/ was written with Python 3.11")
