"""Parsing of a mirror's address: a directory, or `s3://bucket/prefix?…` with parameters."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from proofgate_schema.urls import is_loopback, split_url

from proofgate.mirror.target import MirrorTarget

_PREFIX = re.compile(r"([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z0-9-]{1,64}")
_MODES = {"compliance": "COMPLIANCE", "governance": "GOVERNANCE"}
_OPTION_NAMES = {"endpoint", "region", "lock", "days", "credentials", "ca", "http"}
_MAX_DAYS = 36_500


class TargetAddressError(ValueError):
    """The text is not a mirror's address. The message says what to write."""


def parse(text: str) -> MirrorTarget:
    """Creates the target for an address. Raises TargetAddressError."""
    if not text.startswith("s3://"):
        from proofgate.mirror.directory import DirectoryTarget

        if "://" in text:
            raise TargetAddressError(
                f"{text.split('://')[0]}:// is not known: give a directory, or s3://BUCKET/PREFIX"
            )
        return DirectoryTarget(Path(text))
    return _bucket(text)


def _bucket(text: str) -> MirrorTarget:
    from proofgate.mirror.s3 import BucketTarget, ObjectLock
    from proofgate.mirror.s3_client import Credentials, S3Client

    url = urlsplit(text)
    bucket, prefix = url.netloc, url.path.strip("/")
    options = dict(given := parse_qsl(url.query, keep_blank_values=True))
    name = f"s3://{bucket}/{prefix}".rstrip("/")
    if not _BUCKET.fullmatch(bucket) or not _PREFIX.fullmatch(prefix) or ".." in prefix.split("/"):
        raise TargetAddressError(
            f"{name}: expected s3://BUCKET/PREFIX: a bucket's name has 3 to 63 lower-case letters, digits, "
            "'.' and '-'; a prefix has letters, digits, '.', '_', '-' and '/'"
        )
    unknown = options.keys() - _OPTION_NAMES
    if unknown or len(given) != len(options) or url.fragment:
        raise TargetAddressError(
            f"{name}: after '?', give only {', '.join(sorted(_OPTION_NAMES))}, each at most once"
        )
    region = options.get("region") or os.environ.get("AWS_REGION") or "us-east-1"
    if not _REGION.fullmatch(region):
        raise TargetAddressError(f"{name}: region is not valid")
    lock = ObjectLock(_mode(name, options), _days(name, options))
    endpoint = _endpoint(name, options.get("endpoint") or f"https://s3.{region}.amazonaws.com", options)
    folder = options.get("credentials")
    credentials = Credentials(Path(folder) if folder else None, os.environ)
    authorities = Path(options["ca"]) if options.get("ca") else None
    if authorities is not None and not authorities.is_file():
        raise TargetAddressError(f"{name}: ca: {authorities} is not a file")
    return BucketTarget(name, S3Client(endpoint, region, bucket, credentials, authorities), prefix, lock)


def _mode(name: str, options: dict[str, str]) -> str:
    if options.get("lock") not in _MODES:
        raise TargetAddressError(f"{name}: give lock=compliance or lock=governance")
    return _MODES[options["lock"]]


def _days(name: str, options: dict[str, str]) -> int:
    days = options.get("days", "")
    if not days.isascii() or not days.isdigit() or not 1 <= int(days[:9]) <= _MAX_DAYS:
        raise TargetAddressError(f"{name}: give days=N, for how long each object is locked: 1 to {_MAX_DAYS}")
    return int(days)


def _endpoint(name: str, text: str, options: dict[str, str]) -> str:
    try:
        url = split_url(text, "https://s3.example.com")
    except ValueError as error:
        raise TargetAddressError(f"{name}: endpoint: {error}") from None
    if url.query or url.fragment or url.path.strip("/"):
        raise TargetAddressError(f"{name}: endpoint: remove everything after the host")
    if url.scheme != "https" and options.get("http") != "allow" and not is_loopback(url.hostname or ""):
        raise TargetAddressError(f"{name}: endpoint: use https, or http=allow in a network that you trust")
    return text.rstrip("/")
