"""Creates a gateway in one folder: keys, a ledger and a commented configuration, ready to serve.

The folder is created atomically. An existing folder is never overwritten, because a ledger cannot continue
without its signing key. Keys are only in files that only their owner can read, and are never printed.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proofgate import _core
from proofgate.address import reachable_address
from proofgate.keys import SIGNING_KEY_FILE, VERIFYING_KEY_FILE, KeyFileError, write_key_pair, write_new_file

CONFIGURATION_FILE = "gateway.yaml"
LEDGER_FOLDER = "ledger"
TENANT_KEY_FILE = "tenant-key"
PROVIDER_KEY_FILE = "provider-key"
SECOND_PROVIDER_KEY_FILE = "second-key"
ADMIN_TOKEN_FILE = "admin-token"  # noqa: S105 - the name of a file

#: The tenant of every folder, and the tenants of a demonstration.
DEFAULT_TENANT = "acme"
DEMO_TENANTS = ("globex", "initech")
DEMO_MODELS = ("gpt-4o-mini", "gpt-4o", "text-embedding-3-small")
#: A model for which the simulated provider responds with 503, so that the second provider answers.
OVERLOADED_MODEL = "mock-overloaded"

OPENAI_URL = "https://api.openai.com/v1"
CLAUDE_MODEL = "claude-sonnet-4-5"
ANTHROPIC_URL = "https://api.anthropic.com/v1"
_KEY_BYTES = 24
_PRIVATE_FILE_MODE = 0o600
_PRIVATE_FOLDER_MODE = 0o700


class QuickstartError(Exception):
    """The folder cannot be created or used. The message says what to do."""


@dataclass(frozen=True)
class SecondProvider:
    """The fallback provider for requests that the first provider rejects. It has Anthropic's API."""

    model: str
    """The provider's name for the model, regardless of the name in the client's request."""
    base_url: str = ANTHROPIC_URL
    provider_key: str | None = None


@dataclass(frozen=True)
class QuickstartSetup:
    """The provider, models and addresses. The configuration's own rules apply to every value."""

    base_url: str = OPENAI_URL
    provider_key: str | None = None
    """The provider's API key; None if the provider needs no key."""
    models: tuple[str, ...] = ("gpt-4o-mini",)
    second: SecondProvider | None = None
    name: str = "proofgate.dev/local/quickstart"
    """Name of the ledger and prefix of every origin; it cannot be changed later."""
    listen: str = "127.0.0.1:8080"
    admin_listen: str = "127.0.0.1:9090"
    demo: bool = False
    """For simulated providers: more tenants, prices, limits, and a second provider."""

    @property
    def tenants(self) -> tuple[str, ...]:
        """The tenants, each with its own API key."""
        return (DEFAULT_TENANT, *DEMO_TENANTS) if self.demo else (DEFAULT_TENANT,)


def demo_setup(base_url: str, listen: str, admin_listen: str, name: str) -> QuickstartSetup:
    """Returns the setup of a demonstration with a simulated provider."""
    return QuickstartSetup(
        base_url=base_url,
        models=(*DEMO_MODELS, OVERLOADED_MODEL),
        second=SecondProvider(CLAUDE_MODEL, base_url=base_url),
        name=name,
        listen=listen,
        admin_listen=admin_listen,
        demo=True,
    )


def tenant_key_file(tenant: str) -> str:
    """Returns the name of the file with a tenant's API key."""
    return TENANT_KEY_FILE if tenant == DEFAULT_TENANT else f"{TENANT_KEY_FILE}-{tenant}"


def is_quickstart(folder: Path) -> bool:
    """Whether a folder has the files that `create` makes."""
    names = (CONFIGURATION_FILE, SIGNING_KEY_FILE, VERIFYING_KEY_FILE, TENANT_KEY_FILE, ADMIN_TOKEN_FILE)
    return (folder / LEDGER_FOLDER).is_dir() and all((folder / name).is_file() for name in names)


def create(folder: Path, setup: QuickstartSetup) -> None:
    """Creates the folder with everything that a worker needs. Raises QuickstartError."""
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".proofgate-", dir=folder.parent) as scratch:
            made = Path(scratch) / folder.name
            made.mkdir(mode=_PRIVATE_FOLDER_MODE)
            write_key_pair(setup.name, made)
            for name in (*map(tenant_key_file, setup.tenants), ADMIN_TOKEN_FILE):
                write_new_file(made / name, secrets.token_hex(_KEY_BYTES), _PRIVATE_FILE_MODE)
            (made / LEDGER_FOLDER).mkdir(mode=_PRIVATE_FOLDER_MODE)
            configure(made, setup)
            made.rename(folder)  # fails if anything exists at this path
    except KeyFileError as error:
        raise QuickstartError(str(error)) from None
    except OSError as error:
        if folder.exists():
            raise QuickstartError(_existing_folder_message(folder)) from None
        raise QuickstartError(f"cannot create {folder}: {error.strerror}") from None


def configure(folder: Path, setup: QuickstartSetup) -> None:
    """Rewrites the providers' keys and the configuration; keeps the folder's other keys and its ledger.

    Raises QuickstartError if a worker could not use the configuration.
    """
    from proofgate.config import InvalidConfigError, load  # other functions do not need it

    try:
        for name, provider_key in (
            (PROVIDER_KEY_FILE, setup.provider_key),
            (SECOND_PROVIDER_KEY_FILE, setup.second.provider_key if setup.second else None),
        ):
            if provider_key is None:
                (folder / name).unlink(missing_ok=True)
            else:
                _replace(folder / name, provider_key)
        digests = {tenant: _digest(folder / tenant_key_file(tenant)) for tenant in setup.tenants}
        _replace(folder / CONFIGURATION_FILE, render(setup, digests))
        load(folder / CONFIGURATION_FILE)
    except InvalidConfigError as error:
        told = "\n".join(problem.describe(Path(CONFIGURATION_FILE)) for problem in error.problems)
        raise QuickstartError(f"the configuration is not valid\n{told}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "its keys are not text"
        place = getattr(error, "filename", None) or folder
        raise QuickstartError(f"{place} cannot be used: {reason}") from None


def set_provider_url(folder: Path, base_url: str, former: str) -> None:
    """Replaces only a provider's URL in the configuration. Raises OSError."""
    path = folder / CONFIGURATION_FILE
    text = path.read_text(encoding="utf-8")
    # The lookahead prevents a match in a URL with a longer port number.
    changed = re.sub(rf"{re.escape(former)}(?![\w/])", base_url, text)
    if changed != text:
        _replace(path, changed)


def request_command(folder: Path, address: str, model: str) -> str:
    """Returns the command that sends a first request to a gateway, without any key in it."""
    key = shlex.quote(str(folder / TENANT_KEY_FILE))
    question = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return f"""\
  sed 's/^/Authorization: Bearer /' {key} | \\
    curl -i -H @- -H 'Content-Type: application/json' http://{address}/v1/chat/completions \\
    -d {shlex.quote(json.dumps(question))}"""


def instructions(folder: Path, setup: QuickstartSetup, command: str = "proofgate") -> str:
    """Returns the next commands for the gateway of a folder, without any key in them."""
    inside = {
        name: shlex.quote(str(folder / name))
        for name in (
            TENANT_KEY_FILE,
            ADMIN_TOKEN_FILE,
            VERIFYING_KEY_FILE,
            LEDGER_FOLDER,
            "evidence",
            "receipt.json",
        )
    }
    evidence = inside["evidence"]
    admin, address = f"http://{reachable_address(setup.admin_listen)}", reachable_address(setup.listen)
    return f"""\
Send a request, as the tenant whose API key is in {inside[TENANT_KEY_FILE]}:
{request_command(folder, address, setup.models[0])}

Fetch the receipt with the tenant's API key, and verify it (ID is the x-request-id of the response):
  {command} receipt ID --url http://{address} --api-key-file {inside[TENANT_KEY_FILE]} \\
    --out {inside["receipt.json"]}
  {command} verify {inside["receipt.json"]} --key {inside[VERIFYING_KEY_FILE]}

As the administrator, prove the exchange, and check the whole ledger:
  {command} ledger prove ID --admin {admin} --token-file {inside[ADMIN_TOKEN_FILE]} --out {evidence}
  {command} verify {evidence}/ID.completion.tlog-proof --record {evidence}/ID.completion.json \\
    --key {inside[VERIFYING_KEY_FILE]}
  {command} ledger fsck {inside[LEDGER_FOLDER]} --key {inside[VERIFYING_KEY_FILE]}

Show the status:
  {command} status --admin {admin}"""


def render(setup: QuickstartSetup, digests: Mapping[str, str]) -> str:
    """Renders the configuration, with comments on the settings that a user might change.

    `digests` has the SHA-256 of each tenant's API key.
    """
    provider_key = (
        "" if setup.provider_key is None else f"\n    auth: {_api_key_reference(PROVIDER_KEY_FILE)}"
    )
    second, fallback = _second_provider_sections(setup.second)
    models = "\n".join(_model_entry(setup, model, fallback) for model in setup.models)
    demo_models, demo_tenants = _demo_sections(setup, digests)
    return f"""\
# A gateway without Kubernetes: one worker in front of providers. Paths are relative to this folder. A running
# worker reloads this file within seconds; `proofgate validate {CONFIGURATION_FILE}` reports every problem in it.
ledger:
  # The name of the signing key. Every checkpoint is signed under it, so it cannot be changed later.
  name: {json.dumps(setup.name)}
  # Each request is recorded here before its response is sent.
  directory: {LEDGER_FOLDER}
  # Secret. The file {VERIFYING_KEY_FILE} is for those who verify what was signed.
  signingKeyFile: {SIGNING_KEY_FILE}
  # Records also survive a loss of power, at a higher latency.
  #durability: Synced
# The traffic port, for clients. To serve other machines too, use 0.0.0.0:8080 and a certificate.
listen: {json.dumps(setup.listen)}
#tls: {{certificateFile: tls.crt, privateKeyFile: tls.key}}
# The admin port, for administrators: health, metrics, proofs.
admin: {{listen: {json.dumps(setup.admin_listen)}, tokenFile: {ADMIN_TOKEN_FILE}}}
providers:
  - name: upstream
    type: OpenAI
    baseURL: {json.dumps(setup.base_url)}{provider_key}
  {second}
# The models that clients may request. A second provider is the fallback when the first one cannot serve:
# fallbacks: [{{provider: second, upstreamModel: {CLAUDE_MODEL}}}]
models:
{models}{demo_models}
tenants:
  - name: acme
    # SHA-256 of the API key in the file {TENANT_KEY_FILE}, which the worker does not read. To create another
    # key: openssl rand -hex 24. `proofgate keys hash` prints its hash.
    keyHashes: [{digests[DEFAULT_TENANT]}]
    #limits: {{requestsPerMinute: 60, tokensPerDay: 1000000, concurrency: 8}}
{demo_tenants}\
# The rules for prompts and responses; `proofgate policy rules {CONFIGURATION_FILE}` lists them. Attacks are
# recorded as flagged. Secrets are replaced; a live key in a user's message is refused. The provider gets
# placeholders for personal data in a chat, and the response gets the data back.
policy:
  packs: [prompt-injection, jailbreak, exfiltration, obfuscation, secrets, pii]
  # Refuse a message if its attack score reaches this value.
  #threshold: 100
  # Record decisions without enforcing them.
  #mode: DryRun
# No load balancer is in front of this worker, so it stops at once.
timeouts: {{lameDuckSeconds: 0}}
"""


def _model_entry(setup: QuickstartSetup, model: str, fallback: str) -> str:
    more = ""
    if setup.demo:
        # The second provider has no embeddings, so it is no fallback for them.
        fallback = "" if model.startswith("text-embedding") else fallback
        more = ", maxOutputTokens: 4096"
    return f"  - {{name: {json.dumps(model)}, provider: upstream{more}{fallback}}}"


#: US dollars per million input tokens and per million output tokens.
_DEMO_PRICES = {
    "gpt-4o-mini": ("0.15", "0.60"),
    "gpt-4o": ("2.50", "10"),
    "text-embedding-3-small": ("0.02", "0"),
    OVERLOADED_MODEL: ("0.15", "0.60"),
    CLAUDE_MODEL: ("3", "15"),
}
_DEMO_LIMITS = {
    "globex": "{requestsPerMinute: 600, tokensPerDay: 100000, dollarsPerDay: '1.00'}",
    "initech": "{requestsPerDay: 1000, dollarsPerMonth: '5.00', concurrency: 8}",
}


def _demo_sections(setup: QuickstartSetup, digests: Mapping[str, str]) -> tuple[str, str]:
    """The additional models with all prices, and the additional tenants."""
    if not setup.demo:
        return "", ""
    prices = "\n".join(
        f"  - {{model: {model}, effectiveFrom: '2026-01-01', input: '{paid}', output: '{got}'}}"
        for model, (paid, got) in _DEMO_PRICES.items()
    )
    tenants = "".join(
        f"  - name: {tenant}\n    keyHashes: [{digests[tenant]}]\n    limits: {_DEMO_LIMITS[tenant]}\n"
        for tenant in DEMO_TENANTS
    )
    models = f"""
  - {{name: {CLAUDE_MODEL}, provider: second, maxOutputTokens: 4096}}
# US dollars per million tokens. Public providers have default prices; the simulated provider has none.
prices:
{prices}"""
    return models, tenants


def _digest(path: Path) -> str:
    return _core.hash_api_key(path.read_text(encoding="ascii").strip())


def _second_provider_sections(second: SecondProvider | None) -> tuple[str, str]:
    """The second provider's entry, and the fallback entry of a model."""
    if second is None:
        head = f"#- {{name: second, type: Anthropic, baseURL: {ANTHROPIC_URL}"
        return f"{head}, auth: {_api_key_reference(SECOND_PROVIDER_KEY_FILE)}}}", ""
    key = "" if second.provider_key is None else f", auth: {_api_key_reference(SECOND_PROVIDER_KEY_FILE)}"
    entry = f"- {{name: second, type: Anthropic, baseURL: {json.dumps(second.base_url)}{key}}}"
    return entry, f", fallbacks: [{{provider: second, upstreamModel: {json.dumps(second.model)}}}]"


def _api_key_reference(file: str) -> str:
    return f"{{type: APIKey, apiKeyFile: {file}}}"


def _existing_folder_message(folder: Path) -> str:
    found = folder / CONFIGURATION_FILE
    start = (
        f", or start the worker of this folder: proofgate serve --config {shlex.quote(str(found))}"
        if found.exists()
        else ""
    )
    return f"{folder} exists, and nothing in it is overwritten: choose another --directory{start}"


def _replace(path: Path, text: str) -> None:
    """Replaces a file atomically."""
    fresh = path.with_name(f".{path.name}")
    fresh.unlink(missing_ok=True)
    write_new_file(fresh, text, _PRIVATE_FILE_MODE)
    os.replace(fresh, path)  # noqa: PTH105 - Path.replace, by the name that says what it does
