"""Tenants' shred keys where they lie: in a folder, or in a Secret that passes through.

A file has a key in each line, base64 of 32 bytes, the newest first.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import secrets
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from proofgate import _core

#: Maximum number of keys (lines) in a file.
MAX_KEYS = 64


class ShredKeysError(Exception):
    """Keys cannot be read, added or removed; the message says why and contains no key."""


def with_new_key(text: str) -> str:
    """A tenant's file, empty when it is new, with another key as its first line. Raises ShredKeysError."""
    if text and len(_ids(text)) >= MAX_KEYS:
        raise ShredKeysError(
            f"the tenant already has {MAX_KEYS} keys, which is the maximum: shred old keys first"
        )
    return base64.b64encode(secrets.token_bytes(32)).decode() + "\n" + text


def without_keys(text: str, keys: Collection[str]) -> str:
    """A tenant's file without the keys of these ids. Raises ShredKeysError."""
    lines = zip(text.splitlines(), _ids(text), strict=True)
    return "".join(f"{line}\n" for line, key in lines if key not in keys)


def _ids(text: str) -> list[str]:
    try:
        return _core.shred_key_ids(text)
    except ValueError as error:
        raise ShredKeysError(str(error)) from None


def _file_name(tenant: str) -> str:
    """The name of a tenant's file, and of its entry in a Secret. Raises ShredKeysError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9.-]*)?", tenant):
        raise ShredKeysError(f"{tenant!r} is not a valid tenant name")
    return _core.shred_key_file(tenant)


class ShredKeyFolder:
    """A folder of keys, one file for each tenant."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def ids(self) -> dict[str, list[str]]:
        """The ids of all keys, by tenant, the newest first. Raises LedgerError."""
        return _core.shred_keys(str(self._directory))

    def rotate(self, tenant: str) -> str:
        """Puts a new key before a tenant's others; returns its id. Raises ShredKeysError and OSError."""
        with self._lock() as directory:
            text = with_new_key(self._read(tenant))
            self._replace(directory, tenant, text)
        return _ids(text)[0]

    def drop(self, tenant: str, keys: Collection[str]) -> None:
        """Removes keys of a tenant by their ids. Where none would be left, a new one takes their place, so
        that a worker takes on that they are gone. Raises ShredKeysError and OSError.
        """
        with self._lock() as directory:
            before = self._read(tenant)
            left = without_keys(before, keys) if before else ""
            if left != before:
                self._replace(directory, tenant, left or with_new_key(""))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[int]:
        """Opens the folder, and keeps others out: of two new keys, none is lost that was used already."""
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield directory
            # Also of what a run before renamed, and was cut short.
            os.fsync(directory)
        finally:
            os.close(directory)

    def _path(self, tenant: str) -> Path:
        return self._directory / _file_name(tenant)

    def _read(self, tenant: str) -> str:
        try:
            return self._path(tenant).read_text(encoding="ascii")
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise ShredKeysError(f"{self._path(tenant)} contains no shred keys") from None

    def _replace(self, directory: int, tenant: str, text: str) -> None:
        """Replaces a file as a whole; it stays its owner's. What it held is overwritten where it lay."""
        path = self._path(tenant)
        temporary = path.with_name(f".{path.name}.tmp")
        with contextlib.ExitStack() as opened:
            old = None
            with contextlib.suppress(FileNotFoundError):
                old = opened.enter_context(path.open("r+b"))
            temporary.unlink(missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            opened.callback(temporary.unlink, missing_ok=True)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                if old is not None:
                    _copy_owner(file.fileno(), os.fstat(old.fileno()), path)
                    os.fchmod(file.fileno(), os.fstat(old.fileno()).st_mode & 0o777)
                else:
                    # Of a folder that is another's, whoever may not give it away may be the worker's user.
                    with contextlib.suppress(PermissionError):
                        _copy_owner(file.fileno(), os.fstat(directory), path)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            # Durable first: a loss of power may bring the old file back, and then with its keys.
            os.fsync(directory)
            if old is not None:
                old.write(bytes(os.fstat(old.fileno()).st_size))
                old.flush()
                os.fsync(old.fileno())


def _copy_owner(descriptor: int, like: os.stat_result, path: Path) -> None:
    """Gives a file to an owner and a group, so that a worker that read what it replaces reads it, too. Raises
    PermissionError.
    """
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) == (like.st_uid, like.st_gid):
        return
    try:
        os.fchown(descriptor, like.st_uid, like.st_gid)
    except PermissionError as error:
        why = f"it belongs to {like.st_uid}:{like.st_gid}, and you may not create files with that owner"
        raise PermissionError(error.errno, why, str(path)) from None


class ShredKeySecret:
    """A Secret of keys as `kubectl get secret -o json` prints it. Raises ShredKeysError for anything else."""

    def __init__(self, text: str) -> None:
        try:
            self._manifest: dict[str, Any] = json.loads(text)
            known = self._manifest["kind"] == "Secret"
            data = self._manifest.setdefault("data", {})
            known = known and all(isinstance(value, str) for value in data.values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            known = False
        if not known:
            raise ShredKeysError("the input is not a Secret in the format of `kubectl get secret -o json`")
        self._data: dict[str, str] = data

    def text(self) -> str:
        """The manifest, with what was done."""
        return json.dumps(self._manifest)

    def rotate(self, tenant: str) -> str:
        """As `Folder.rotate`."""
        text = with_new_key(self._read(tenant))
        self._write(tenant, text)
        return _ids(text)[0]

    def drop(self, tenant: str, keys: Collection[str]) -> None:
        """As `Folder.drop`."""
        before = self._read(tenant)
        if before:
            self._write(tenant, without_keys(before, keys) or with_new_key(""))

    def _read(self, tenant: str) -> str:
        try:
            return base64.b64decode(self._data.get(_file_name(tenant), ""), validate=True).decode("ascii")
        except ValueError:
            raise ShredKeysError(f"the entry of {tenant} contains no shred keys") from None

    def _write(self, tenant: str, text: str) -> None:
        self._data[_file_name(tenant)] = base64.b64encode(text.encode()).decode()
