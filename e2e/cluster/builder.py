"""Turn a Dockerfile into an image archive: with buildah where there is no Docker engine, with Docker where there is.

buildah works in a store of its own inside the cache, with the vfs driver: no mounts outlive a build, and the user's
own images are not touched. A layer is a full copy there, so only the base image stays.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .cgroups import BUILDS_GROUP
from .console import LabError, say
from .layout import cache_folder
from .processes import run

BUILD_TIMEOUT = 1200.0


@dataclass(frozen=True)
class Recipe:
    """One image: its full reference, the Dockerfile, the folder it copies from, and its build arguments.

    `salt` stands for inputs that are not files of the context, such as the digest of the base image.
    """

    name: str
    dockerfile: Path
    context: Path
    arguments: Mapping[str, str] = field(default_factory=dict)
    salt: str = ""

    def digest(self) -> str:
        """Of all that decides the image's content: equal digests make a build, and a load, unnecessary."""
        digest = hashlib.sha256(repr((self.name, sorted(self.arguments.items()), self.salt)).encode())
        text = self.dockerfile.read_bytes()
        digest.update(text)
        for path in context_files(self.context, copied_sources(text.decode())):
            executable = os.access(path, os.X_OK)
            digest.update(f"\0{path.relative_to(self.context)}\0{executable}\0".encode())
            with path.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        return digest.hexdigest()[:16]


def folder() -> Path:
    return cache_folder() / "images"


def archive_path(name: str, digest: str) -> Path:
    return folder() / f"{_plain(name)}-{digest}.tar"


def newest_archive(name: str) -> Path | None:
    """The archive of an image that was built before, whatever its inputs were."""
    found = sorted(folder().glob(f"{_plain(name)}-{'?' * 16}.tar"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def copied_sources(dockerfile: str) -> list[str]:
    """The context paths that a Dockerfile's COPY and ADD lines name; those of other stages do not count."""
    sources = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        words = line.strip().split(maxsplit=1)
        if len(words) < 2 or words[0].upper() not in {"COPY", "ADD"}:
            continue
        arguments = words[1]
        flags = [word for word in shlex.split(arguments) if word.startswith("--")]
        if any(flag.startswith("--from") for flag in flags):
            continue
        if "[" in arguments:
            listed = arguments[arguments.index("[") :].strip("[] ")
            sources += [part.strip(' "') for part in listed.split(",")][:-1]
        else:
            sources += [word for word in shlex.split(arguments) if not word.startswith("--")][:-1]
    return sources


def context_files(context: Path, sources: list[str]) -> list[Path]:
    """The files behind these sources, sorted. A source that matches nothing is an error here, not minutes later."""
    found: set[Path] = set()
    for source in sources:
        relative = source.strip("/") or "."
        matches = [context] if relative == "." else list(context.glob(relative))
        if not matches:
            raise LabError(f"nothing in {context} matches {source}", "build what the Dockerfile copies first")
        for match in matches:
            found.update(path for path in match.rglob("*") if path.is_file()) if match.is_dir() else found.add(match)
    return sorted(found)


@contextmanager
def exclusive() -> Iterator[None]:
    """One build at a time: the store and the archives are shared."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_with_buildah(recipe: Recipe, *, keep: bool = False) -> None:
    """Build an image into the store. `keep` it there for others to build on; else `export` it and forget it."""
    arguments = [f"--build-arg={key}={value}" for key, value in recipe.arguments.items()]
    # Debris of an interrupted build.
    _buildah("rm", "--all", check=False)
    _buildah(
        "bud", "--isolation=chroot", "--pull-never", *arguments,
        f"--tag={recipe.name}", f"--file={recipe.dockerfile}", str(recipe.context),
        timeout=BUILD_TIMEOUT,
    )  # fmt: skip
    if not keep:
        export(recipe.name, archive_path(recipe.name, recipe.digest()))
        forget(recipe.name)


def export(name: str, archive: Path) -> None:
    """Write an image of the store as an OCI archive."""
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    _buildah("push", name, f"oci-archive:{partial}:{name}", timeout=300)
    _settle(name, partial, archive)


def forget(name: str) -> None:
    _buildah("rmi", "--force", name, check=False)
    _buildah("rmi", "--prune", check=False)


def in_store(name: str) -> bool:
    return bool(_buildah("images", "--quiet", name, check=False).strip())


def build_with_docker(recipe: Recipe) -> None:
    archive = archive_path(recipe.name, recipe.digest())
    arguments = [f"--build-arg={key}={value}" for key, value in recipe.arguments.items()]
    run(
        ["docker", "build", *arguments, "--tag", recipe.name, "--file", recipe.dockerfile, recipe.context],
        timeout=BUILD_TIMEOUT,
    )
    partial = archive.with_suffix(".partial")
    run(["docker", "save", "--output", partial, recipe.name], timeout=300)
    _settle(recipe.name, partial, archive)


def _settle(name: str, partial: Path, archive: Path) -> None:
    for older in folder().glob(f"{_plain(name)}-{'?' * 16}.tar"):
        older.unlink()
    partial.rename(archive)
    say(f"{name}: {archive.stat().st_size // 1_000_000} MB")


def _buildah(*words: str, timeout: float = 120, check: bool = True) -> str:
    policy = folder() / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    store = [f"--root={folder() / 'store'}", f"--runroot={folder() / 'run'}", "--storage-driver=vfs"]
    settings = folder() / "containers.conf"
    # Otherwise it leaves a lock in /etc/cni.
    settings.write_text(f'[network]\nnetwork_config_dir = "{folder() / "networks"}"\n')
    environment = {"TMPDIR": str(folder()), "STORAGE_DRIVER": "vfs", "CONTAINERS_CONF": str(settings)}
    verb, rest = words[0], words[1:]
    policy_flag = [f"--signature-policy={policy}"] if verb in {"bud", "push"} else []
    command = ["buildah", *store, verb, *policy_flag, *rest]
    return run(command, timeout=timeout, environment=environment, group=BUILDS_GROUP, check=check).stdout


def _plain(name: str) -> str:
    return name.replace("/", "_").replace(":", "_")
