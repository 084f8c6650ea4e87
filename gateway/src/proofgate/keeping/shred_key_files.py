"""Files of tenants' shred keys, in a folder, or in a Secret that is read and printed.

Each line of a file is one key, base64 of 32 bytes, newest first.
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
    """Keys cannot be read, added or removed. The message says why and contains no key."""


def with_new_key(text: str) -> str:
    """Returns the text of a tenant's file (empty for a new tenant) with a new key as its first line. Raises
    ShredKeysError."""
    if text and len(_ids(text)) >= MAX_KEYS:
        raise ShredKeysError(
            f"the tenant already has {MAX_KEYS} keys, which is the maximum: shred old keys first"
        )
    return base64.b64encode(secrets.token_bytes(32)).decode() + "\n" + text


def without_keys(text: str, keys: Collection[str]) -> str:
    """Returns the text of a tenant's file without the keys with these ids. Raises ShredKeysError."""
    lines = zip(text.splitlines(), _ids(text), strict=True)
    return "".join(f"{line}\n" for line, key in lines if key not in keys)


def _ids(text: str) -> list[str]:
    try:
        return _core.shred_key_ids(text)
    except ValueError as error:
        raise ShredKeysError(str(error)) from None


def _file_name(tenant: str) -> str:
    """The name of a tenant's file, which is also its key in a Secret. Raises ShredKeysError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9.-]*)?", tenant):
        raise ShredKeysError(f"{tenant!r} is not a valid tenant name")
    return _core.shred_key_file(tenant)


class ShredKeyFolder:
    """A folder of keys, one file for each tenant."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def ids(self) -> dict[str, list[str]]:
        """Returns the ids of all keys, by tenant, newest first. Raises LedgerError."""
        return _core.shred_keys(str(self._directory))

    def rotate(self, tenant: str) -> str:
        """Adds a new key before a tenant's other keys. Returns its id. Raises ShredKeysError and OSError."""
        with self._lock() as directory:
            text = with_new_key(self._read(tenant))
            self._replace(directory, tenant, text)
        return _ids(text)[0]

    def drop(self, tenant: str, keys: Collection[str]) -> None:
        """Removes keys of a tenant by their ids. If no key would remain, adds a new one, so that a worker
        accepts the removal. Raises ShredKeysError and OSError.
        """
        with self._lock() as directory:
            before = self._read(tenant)
            left = without_keys(before, keys) if before else ""
            if left != before:
                self._replace(directory, tenant, left or with_new_key(""))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[int]:
        """Opens and locks the folder, so that concurrent additions do not lose a key that is already in
        use."""
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield directory
            # This also syncs the renames of a previous run that was interrupted.
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
        """Replaces a file atomically and keeps its owner. The old content is overwritten in place."""
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
                    # A user who does not own the folder and may not change owners may be the worker's user.
                    with contextlib.suppress(PermissionError):
                        _copy_owner(file.fileno(), os.fstat(directory), path)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            # The new file must be durable first: after a power failure, the old file may reappear, and must
            # then have its keys.
            os.fsync(directory)
            if old is not None:
                old.write(bytes(os.fstat(old.fileno()).st_size))
                old.flush()
                os.fsync(old.fileno())


def _copy_owner(descriptor: int, like: os.stat_result, path: Path) -> None:
    """Sets the owner and the group of a file, so that a worker that could read the old file can read this
    one. Raises PermissionError.
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
    """A Secret with keys, as `kubectl get secret -o json` prints it. Raises ShredKeysError for anything
    else."""

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
        """Returns the manifest with all changes."""
        return json.dumps(self._manifest)

    def rotate(self, tenant: str) -> str:
        """Adds a key like `ShredKeyFolder.rotate`."""
        text = with_new_key(self._read(tenant))
        self._write(tenant, text)
        return _ids(text)[0]

    def drop(self, tenant: str, keys: Collection[str]) -> None:
        """Removes keys like `ShredKeyFolder.drop`."""
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
