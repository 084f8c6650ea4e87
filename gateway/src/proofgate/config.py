"""The one loader of a worker's configuration: the settings, with every file they name read and checked.

`load` reports every problem at once, each with its line, and never quotes a secret: secrets stand in files of
their own, and messages name the file.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from proofgate import _core
from proofgate.document import Document, DocumentError, FieldPath, parse_document
from proofgate.settings import Provider, Settings, Tenant, split_address

_HASH = re.compile(r"[0-9a-f]{64}")
_NOT_A_HASH = "not the SHA-256 of an API key in lower-case hexadecimal"
_TOKEN_MINIMUM = 16
_FILE_MAXIMUM = 1 << 20


@dataclass(frozen=True)
class Problem:
    """One reason why a configuration is refused."""

    code: str
    path: FieldPath
    message: str


class InvalidConfigError(Exception):
    """A configuration cannot be used. Its text has one line per problem: `file:line: field: what to do`."""

    code = "config_invalid"

    def __init__(self, source: Path, problems: list[tuple[Problem, int | None]]) -> None:
        super().__init__("\n".join(_describe(source, problem, line) for problem, line in problems))
        self.problems = tuple(problem for problem, _ in problems)


def _describe(source: Path, problem: Problem, line: int | None) -> str:
    place = f"{source}:{line}" if line is not None else str(source)
    field = _dotted(problem.path)
    return f"{place}: {field}: {problem.message}" if field else f"{place}: {problem.message}"


def _dotted(path: FieldPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


@dataclass(frozen=True)
class Config:
    """A checked configuration with every file read. Its representation shows no secret."""

    source: Path
    settings: Settings
    ledger_directory: Path
    signing_key: SecretStr
    verifying_key: str
    admin_token: SecretStr | None
    provider_keys: dict[str, SecretStr]
    provider_cas: dict[str, str]
    tenant_hashes: dict[str, tuple[str, ...]]

    def to_core_json(self, shard: int) -> str:
        """The configuration as `_core.Worker` takes it: everything inline, secrets included. Never log it."""
        public = self._public()
        core: dict[str, Any] = {**public, "config_digest": self.digest()}
        core["ledger"] = {
            **public["ledger"],
            "shard": shard,
            "signing_key": self.signing_key.get_secret_value(),
        }
        core["providers"] = [
            {**provider, "api_key": _reveal(self.provider_keys.get(provider["name"]))}
            for provider in public["providers"]
        ]
        return json.dumps(core, ensure_ascii=False)

    def digest(self) -> str:
        """SHA-256 of the configuration without its secrets: the same on every shard with the same files."""
        canonical = json.dumps(self._public(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def _public(self) -> dict[str, Any]:
        settings, timeouts, limits = self.settings, self.settings.timeouts, self.settings.limits
        return {
            "ledger": {
                "name": settings.ledger.name,
                "directory": str(self.ledger_directory),
                "durability": settings.ledger.durability,
                "checkpoint_interval_ms": _milliseconds(settings.ledger.checkpoint_interval_seconds),
                "segment_bytes": settings.ledger.segment_bytes,
            },
            "listen": settings.listen,
            "proxy_protocol": settings.proxy_protocol,
            "providers": [
                {
                    "name": provider.name,
                    "type": provider.type,
                    "base_url": provider.base_url,
                    "ca_pem": self.provider_cas.get(provider.name),
                }
                for provider in settings.providers
            ],
            "models": [
                {
                    "name": model.name,
                    "provider": model.provider,
                    "upstream_model": model.upstream_model or model.name,
                }
                for model in settings.models
            ],
            "tenants": [
                {
                    "name": tenant.name,
                    "key_hashes": list(self.tenant_hashes[tenant.name]),
                    "models": None if tenant.models is None else list(tenant.models),
                }
                for tenant in settings.tenants
            ],
            "timeouts": {
                "client_head_ms": _milliseconds(timeouts.client_head_seconds),
                "client_body_ms": _milliseconds(timeouts.client_body_seconds),
                "client_idle_ms": _milliseconds(timeouts.client_idle_seconds),
                "upstream_connect_ms": _milliseconds(timeouts.upstream_connect_seconds),
                "upstream_response_ms": _milliseconds(timeouts.upstream_response_seconds),
                "drain_ms": _milliseconds(timeouts.drain_seconds),
                "lame_duck_ms": _milliseconds(timeouts.lame_duck_seconds),
            },
            "limits": {
                "head_bytes": limits.head_bytes,
                "body_bytes": limits.body_bytes,
                "connections": limits.connections,
            },
        }


def _reveal(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def load(path: Path) -> Config:
    """Reads and checks a configuration file and every file it names; relative paths start at its directory.

    Raises InvalidConfigError with all problems found.
    """
    try:
        document = parse_document(path.read_text("utf-8"))
    except OSError as error:
        problem = Problem("config_unreadable", (), f"cannot be read: {error.strerror}")
        raise InvalidConfigError(path, [(problem, None)]) from None
    except UnicodeDecodeError:
        problem = Problem("config_unreadable", (), "is not UTF-8 text")
        raise InvalidConfigError(path, [(problem, None)]) from None
    except DocumentError as error:
        raise InvalidConfigError(path, [(Problem("config_syntax", (), str(error)), error.line)]) from None

    try:
        settings = Settings.model_validate(document.data)
    except ValidationError as error:
        raise _refused(path, document, _schema_problems(error)) from None

    reading = _Reading(path.parent, settings)
    config = reading.config(path)
    if config is None:
        raise _refused(path, document, reading.problems)
    return config


def _refused(source: Path, document: Document, problems: Iterable[Problem]) -> InvalidConfigError:
    return InvalidConfigError(source, [(problem, document.line_of(problem.path)) for problem in problems])


def _schema_problems(error: ValidationError) -> list[Problem]:
    problems = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        path = detail["loc"]
        if detail["type"] == "missing":
            problem = Problem("config_missing_field", path, "this field is required: add it")
        elif detail["type"] == "extra_forbidden":
            known = {name.lower(): name for name in _known_fields(Settings)}
            close = difflib.get_close_matches(str(path[-1]).replace("_", "").lower(), known, n=1)
            hint = f"did you mean {known[close[0]]}?" if close else "remove it"
            problem = Problem("config_unknown_field", path, f"there is no such field: {hint}")
        else:
            problem = Problem("config_invalid_value", path, detail["msg"].removeprefix("Value error, "))
        problems.append(problem)
    return problems


def _known_fields(section: type[BaseModel]) -> set[str]:
    names = set()
    for field in section.model_fields.values():
        names.add(field.alias or "")
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                names |= _known_fields(kind)
    return names


class _Reading:
    """Reads the files that settings name and collects what is wrong with them and with the references."""

    def __init__(self, base: Path, settings: Settings) -> None:
        self._base = base
        self._settings = settings
        self.problems: list[Problem] = []

    def config(self, source: Path) -> Config | None:
        """The finished configuration, or None when there are problems."""
        settings = self._settings
        self._check_names()
        self._check_references()
        signing_key = self._secret(("ledger", "signingKeyFile"), settings.ledger.signing_key_file)
        config = Config(
            source=source,
            settings=settings,
            ledger_directory=self._ledger_directory(),
            signing_key=SecretStr(signing_key),
            verifying_key=self._verifying_key(signing_key),
            admin_token=self._admin_token(),
            provider_keys=self._provider_keys(),
            provider_cas=self._provider_cas(),
            tenant_hashes=self._tenant_hashes(),
        )
        return None if self.problems else config

    def _report(self, code: str, path: FieldPath, message: str) -> None:
        self.problems.append(Problem(code, path, message))

    def _check_names(self) -> None:
        settings = self._settings
        for section, names in (
            ("providers", [provider.name for provider in settings.providers]),
            ("models", [model.name for model in settings.models]),
            ("tenants", [tenant.name for tenant in settings.tenants]),
        ):
            for position, name in enumerate(names):
                if name in names[:position]:
                    path = (section, position, "name")
                    self._report("config_duplicate_name", path, f"{name} is already defined: rename one")

    def _check_references(self) -> None:
        settings = self._settings
        providers = {provider.name for provider in settings.providers}
        models = {model.name for model in settings.models}
        for position, model in enumerate(settings.models):
            if model.provider not in providers:
                message = f"no provider is named {model.provider}: define it under providers"
                self._report("config_unknown_provider", ("models", position, "provider"), message)
        for position, tenant in enumerate(settings.tenants):
            for place, name in enumerate(tenant.models or ()):
                if name not in models:
                    message = f"no model is named {name}: define it under models"
                    self._report("config_unknown_model", ("tenants", position, "models", place), message)
        traffic, admin = split_address(settings.listen), split_address(settings.admin.listen)
        if traffic == admin and traffic[1] != 0:
            message = "the admin port must not be the traffic port: choose another"
            self._report("config_same_port", ("admin", "listen"), message)

    def _ledger_directory(self) -> Path:
        directory = (self._base / self._settings.ledger.directory).absolute()
        if not directory.is_dir():
            # Never made here: on a volume that is not mounted, the evidence would vanish with the container.
            message = f"{directory} is not a directory: create it, or mount the volume that belongs there"
            self._report("config_no_directory", ("ledger", "directory"), message)
        return directory

    def _verifying_key(self, signing_key: str) -> str:
        if not signing_key:
            return ""
        ledger = self._settings.ledger
        try:
            verifying_key = _core.verifying_key(signing_key)
        except ValueError:
            # The core's message may describe the key: only its meaning is repeated.
            message = f"{ledger.signing_key_file} holds no signing key: make one with proofgate keygen"
            self._report("config_bad_signing_key", ("ledger", "signingKeyFile"), message)
            return ""
        named = verifying_key.split("+")[0]
        if named != ledger.name:
            message = f"the key is for the ledger {named}: rename the ledger or make a key for {ledger.name}"
            self._report("config_foreign_key", ("ledger", "signingKeyFile"), message)
        return verifying_key

    def _admin_token(self) -> SecretStr | None:
        path = self._settings.admin.token_file
        if path is None:
            return None
        token = self._secret(("admin", "tokenFile"), path)
        if token and len(token) < _TOKEN_MINIMUM:
            message = (
                f"the token in {path} is shorter than {_TOKEN_MINIMUM} characters: use openssl rand -hex 32"
            )
            self._report("config_weak_token", ("admin", "tokenFile"), message)
        return SecretStr(token)

    def _provider_keys(self) -> dict[str, SecretStr]:
        keys = {}
        for position, provider in enumerate(self._settings.providers):
            if provider.api_key_file is not None:
                key = self._secret(("providers", position, "apiKeyFile"), provider.api_key_file)
                keys[provider.name] = SecretStr(key)
        return keys

    def _provider_cas(self) -> dict[str, str]:
        bundles = {}
        for position, provider in enumerate(self._settings.providers):
            if provider.ca_file is not None:
                bundles[provider.name] = self._certificates(position, provider, provider.ca_file)
        return bundles

    def _certificates(self, position: int, provider: Provider, name: str) -> str:
        path: FieldPath = ("providers", position, "caFile")
        text = self._text(path, name) or ""
        if text and "-----BEGIN CERTIFICATE-----" not in text:
            self._report("config_bad_ca", path, f"{name} holds no PEM certificate")
        if not provider.base_url.startswith("https:"):
            self._report("config_unused_ca", path, "baseURL is not https: remove caFile or use https")
        return text

    def _tenant_hashes(self) -> dict[str, tuple[str, ...]]:
        owners: dict[str, str] = {}
        hashes: dict[str, tuple[str, ...]] = {}
        for position, tenant in enumerate(self._settings.tenants):
            own = self._hashes_of(position, tenant)
            for digest, path in own.items():
                owner = owners.setdefault(digest, tenant.name)
                if owner != tenant.name:
                    message = f"an API key of {tenant.name} also belongs to {owner}: a key has one tenant"
                    self._report("config_shared_key", path, message)
            hashes[tenant.name] = tuple(sorted(own))
        return hashes

    def _hashes_of(self, position: int, tenant: Tenant) -> dict[str, FieldPath]:
        hashes: dict[str, FieldPath] = {}
        where: FieldPath = ("tenants", position)
        if not tenant.key_hashes and tenant.key_hashes_file is None:
            self._report("config_no_keys", where, "the tenant has no API key: set keyHashes or keyHashesFile")
        for place, digest in enumerate(tenant.key_hashes):
            path = (*where, "keyHashes", place)
            if _HASH.fullmatch(digest):
                hashes[digest] = path
            else:
                self._report("config_bad_hash", path, f"{_NOT_A_HASH}: make one with proofgate hash-key")
        if tenant.key_hashes_file is not None:
            path = (*where, "keyHashesFile")
            text = self._text(path, tenant.key_hashes_file) or ""
            for number, line in enumerate(text.splitlines(), start=1):
                digest = line.strip()
                if _HASH.fullmatch(digest):
                    hashes[digest] = path
                elif digest and not digest.startswith("#"):
                    message = f"line {number} of {tenant.key_hashes_file} is {_NOT_A_HASH}"
                    self._report("config_bad_hash", path, message)
        return hashes

    def _secret(self, path: FieldPath, name: str) -> str:
        """The one line of a secret file, or "" after reporting why there is none."""
        text = self._text(path, name)
        if text is None:
            return ""
        secret = text.strip()
        if not secret:
            self._report("config_empty_secret", path, f"{name} is empty")
        elif not re.fullmatch(r"[!-~]+", secret):
            # A key goes into an HTTP header: a second line in it would be a second header.
            self._report(
                "config_bad_secret", path, f"{name} must hold one line of printable ASCII without spaces"
            )
            return ""
        return secret

    def _text(self, path: FieldPath, name: str) -> str | None:
        file = self._base / name
        try:
            with file.open("rb") as stream:
                data = stream.read(_FILE_MAXIMUM + 1)
            if len(data) > _FILE_MAXIMUM:
                self._report("config_file_too_large", path, f"{file} is larger than {_FILE_MAXIMUM} bytes")
                return None
            return data.decode()
        except OSError as error:
            self._report("config_file_unreadable", path, f"{file} cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            self._report("config_file_unreadable", path, f"{file} is not UTF-8 text")
        return None
