"""What the worker's YAML file may say: one frozen model per section, every default and every bound.

Durations are seconds and sizes are bytes, as the field names say. `proofgate.config` reads the files that the
settings name.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

_NAMES_ARE = "letters, digits, '.', '_' and '-', at most 63, beginning with a letter or digit"


def split_address(text: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port` to its parts. Raises ValueError with what to write instead."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("write an IPv6 address in brackets, for example [::]:8080")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("write an address and a port, for example 0.0.0.0:8080")
    return host, int(port)


def _address(text: str) -> str:
    split_address(text)
    return text


def _base_url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("write an http or https URL, for example https://api.openai.com/v1")
    if url.username is not None or url.password is not None:
        raise ValueError("remove the user name and password from the URL: a key belongs in apiKeyFile")
    if url.query or url.fragment:
        raise ValueError("remove the part from '?' or '#' on: the path of a request is appended to this URL")
    return text.rstrip("/")


def _origin(text: str) -> str:
    # The origin is a line of the checkpoint and names its signature: no space, no '+' (C2SP signed-note).
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", text) or text.endswith("/") or "//" in text:
        raise ValueError(
            "write a schema-less URL such as proofgate.example.com/team: letters, digits and . _ - /"
        )
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text):
        raise ValueError(f"a name has {_NAMES_ARE}")
    return text


def _model_name(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,128}", text):
        raise ValueError("a model name has 1 to 128 printable ASCII characters and no space")
    return text


T = TypeVar("T")


def _as_tuple(value: object) -> object:
    # YAML has lists; frozen models want tuples, which strict mode does not make of them.
    return tuple(value) if isinstance(value, list) else value


def _not_empty(entries: tuple[T, ...]) -> tuple[T, ...]:
    # Not min_length: pydantic counts valid entries only, and reports one broken entry a second time as none.
    if not entries:
        raise ValueError("list at least one")
    return entries


Listed = Annotated[tuple[T, ...], BeforeValidator(_as_tuple)]
NonEmptyListed = Annotated[tuple[T, ...], BeforeValidator(_as_tuple), AfterValidator(_not_empty)]
Address = Annotated[str, AfterValidator(_address)]
Name = Annotated[str, AfterValidator(_name)]
ModelName = Annotated[str, AfterValidator(_model_name)]
FilePath = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0.001, le=86_400, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        # Pydantic's own messages would quote the input, and with it whatever was pasted into the wrong field.
        hide_input_in_errors=True,
    )


class Ledger(_Section):
    """Where and how records are kept."""

    name: Annotated[str, AfterValidator(_origin)]
    directory: FilePath
    durability: Literal["written", "synced"] = "written"
    checkpoint_interval_seconds: Annotated[float, Field(ge=0.01, le=3600, allow_inf_nan=False)] = 1.0
    signing_key_file: FilePath
    segment_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 30)] = 32 << 20


class Admin(_Section):
    """The admin port. Without a token file nobody may drain over HTTP."""

    listen: Address = "127.0.0.1:9090"
    token_file: FilePath | None = None


class Provider(_Section):
    """An upstream that answers for models."""

    name: Name
    type: Literal["openai"]
    base_url: Annotated[str, AfterValidator(_base_url), Field(alias="baseURL")]
    api_key_file: FilePath | None = None
    ca_file: FilePath | None = None


class Model(_Section):
    """A model name that clients may ask for, and who serves it under which name."""

    name: ModelName
    provider: str
    upstream_model: ModelName | None = None


class Tenant(_Section):
    """Who is audited; known by the SHA-256 of its API keys."""

    name: Name
    key_hashes: Listed[str] = ()
    key_hashes_file: FilePath | None = None
    models: Listed[str] | None = None


class Timeouts(_Section):
    """How long each side may take, in seconds."""

    client_head_seconds: Seconds = 10.0
    client_body_seconds: Seconds = 30.0
    client_idle_seconds: Seconds = 75.0
    upstream_connect_seconds: Seconds = 5.0
    upstream_response_seconds: Seconds = 60.0
    drain_seconds: Seconds = 30.0
    lame_duck_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 3.0


class Limits(_Section):
    """How much one client may send, in bytes, and how many connections a worker holds."""

    head_bytes: Annotated[int, Field(ge=1024, le=1 << 20)] = 16 << 10
    body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 10 << 20
    connections: Annotated[int, Field(ge=1, le=1 << 20)] = 4096


class Settings(_Section):
    """The configuration file as written, before the files it names are read."""

    ledger: Ledger
    listen: Address = "0.0.0.0:8080"
    # Every connection begins with a PROXY v2 header, as from the load balancer; off for direct clients.
    proxy_protocol: bool = False
    admin: Admin = Admin()
    providers: NonEmptyListed[Provider]
    models: NonEmptyListed[Model]
    tenants: NonEmptyListed[Tenant]
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
