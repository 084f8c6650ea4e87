"""Build an image archive from a Dockerfile: with Docker if there is a Docker engine, otherwise with buildah.

buildah uses a separate store in the cache with the vfs driver. No mounts remain after a build, and the user's own
images are not touched. Each layer is a full copy in this store, so only the base image is kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .cgroups import builds_group
from .console import LabError, say
from .layout import cache_folder
from .processes import run

BUILD_TIMEOUT = 1200.0


@dataclass(frozen=True)
class Recipe:
    """One image: its full reference, the Dockerfile, the folder it copies from, and its build arguments.

    `stages` are folders that replace stages, by the stages' names. `salt` represents inputs that are not files,
    such as the digest of the base image.
    """

    name: str
    dockerfile: Path
    context: Path
    arguments: Mapping[str, str] = field(default_factory=dict)
    salt: str = ""
    stages: Mapping[str, Path] = field(default_factory=dict)
    #: More options of buildah, such as a platform.
    options: tuple[str, ...] = ()

    def digest(self) -> str:
        """A digest of everything that decides the image's content. An unchanged image is neither built nor loaded."""
        inputs = (self.name, sorted(self.arguments.items()), self.salt, *self.options)
        digest = hashlib.sha256(repr(inputs).encode())
        text = self.dockerfile.read_bytes()
        digest.update(text)
        for name, sources in sorted(copied_sources(text.decode(), self.stages).items()):
            folder = self.stages.get(name, self.context)
            for path in context_files(folder, sources):
                executable = os.access(path, os.X_OK)
                digest.update(f"\0{name}\0{path.relative_to(folder)}\0{executable}\0".encode())
                with path.open("rb") as content:
                    digest.update(hashlib.file_digest(content, "sha256").digest())
        return digest.hexdigest()[:16]

    def flags(self) -> list[str]:
        """The build options that buildah and Docker have in common."""
        arguments = [f"--build-arg={key}={value}" for key, value in self.arguments.items()]
        return [*arguments, *(f"--build-context={name}={folder}" for name, folder in self.stages.items())]


def folder() -> Path:
    return cache_folder() / "images"


def archive_path(name: str, digest: str) -> Path:
    return folder() / f"{_plain(name)}-{digest}.tar"


def newest_archive(name: str) -> Path | None:
    """The archive of the newest earlier build of an image, with any inputs."""
    found = sorted(folder().glob(f"{_plain(name)}-{'?' * 16}.tar"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


@dataclass
class _Stage:
    """One FROM of a Dockerfile, and the paths that it copies, by stage or image; by "" from the context."""

    name: str
    base: str
    sources: dict[str, list[str]] = field(default_factory=dict)


def copied_sources(dockerfile: str, brought: Container[str] = ()) -> dict[str, list[str]]:
    """The paths that COPY and ADD lines copy from the context (by "") and from folders that replace stages.

    Only the stages that the last stage needs count, because only these are built.
    """
    stages = _stages(dockerfile)
    found: dict[str, list[str]] = {}
    wanted, seen = [stages[-1].name], set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen or name in brought:
            continue
        seen.add(name)
        for stage in (stage for stage in stages if stage.name == name):
            wanted += [stage.base, *stage.sources]
            for origin, sources in stage.sources.items():
                if not origin or origin in brought:
                    found.setdefault(origin, []).extend(sources)
    return found


def _stages(dockerfile: str) -> list[_Stage]:
    stages: list[_Stage] = []
    for line in dockerfile.replace("\\\n", " ").splitlines():
        words = line.strip().split(maxsplit=1)
        verb = words[0].upper() if len(words) == 2 else ""
        if verb == "FROM":
            image, *rest = (word for word in words[1].split() if not word.startswith("--"))
            stages.append(_Stage(rest[-1] if rest else str(len(stages)), image))
        elif verb in {"COPY", "ADD"}:
            flags = [word for word in shlex.split(words[1]) if word.startswith("--")]
            origin = next((flag.removeprefix("--from=") for flag in flags if flag.startswith("--from=")), "")
            stages[-1].sources.setdefault(origin, []).extend(_sources(words[1]))
    return stages


def _sources(arguments: str) -> list[str]:
    """The sources among the arguments of COPY or ADD: all except flags and the target."""
    if "[" in arguments:
        listed = arguments[arguments.index("[") :].strip("[] ")
        return [part.strip(' "') for part in listed.split(",")][:-1]
    return [word for word in shlex.split(arguments) if not word.startswith("--")][:-1]


def context_files(context: Path, sources: list[str]) -> list[Path]:
    """The files that match these sources, sorted. A source without a match is an error before the build starts."""
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
    """Allow one build at a time, because the store and the archives are shared."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_with_buildah(recipe: Recipe, *, keep: bool = False) -> None:
    """Build an image into the store. `keep` it for other builds; otherwise `export` it and remove it from the store."""
    # Remove the containers of an interrupted build.
    _buildah("rm", "--all", check=False)
    _buildah(
        "bud", "--isolation=chroot", "--pull-never", *recipe.options, *recipe.flags(),
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
    run(
        ["docker", "build", *recipe.flags(), "--tag", recipe.name, "--file", recipe.dockerfile, recipe.context],
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
    # Otherwise buildah creates a lock in /etc/cni.
    settings.write_text(f'[network]\nnetwork_config_dir = "{folder() / "networks"}"\n')
    environment = {"TMPDIR": str(folder()), "STORAGE_DRIVER": "vfs", "CONTAINERS_CONF": str(settings)}
    verb, rest = words[0], words[1:]
    policy_flag = [f"--signature-policy={policy}"] if verb in {"bud", "push"} else []
    command = ["buildah", *store, verb, *policy_flag, *rest]
    return run(command, timeout=timeout, environment=environment, group=builds_group(), check=check).stdout


def _plain(name: str) -> str:
    return name.replace("/", "_").replace(":", "_")
