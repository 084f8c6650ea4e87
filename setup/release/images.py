"""The wheels and images of a release, built by the same steps as for tests and the cluster.

Where a Docker engine answers, BuildKit compiles the wheels inside the Dockerfiles and builds the images for every
platform. Elsewhere `setup/wheels` compiles them on this machine, and buildah builds the images for its own processor.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from e2e.cluster import builder, catalogue, cgroups
from e2e.cluster.console import LabError
from setup.release.errors import ReleaseError
from setup.release.oci import Layout
from setup.release.version import ROOT, Source

#: Dockerfiles of the images, by their names in `setup/wheels` and docker-bake.hcl.
DOCKERFILES = {"worker": ROOT / "gateway" / "Dockerfile", "operator": ROOT / "operator" / "Dockerfile"}
REPOSITORY = "https://github.com/proofgate/proofgate"
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Built:
    """The results of a route."""

    #: Folders with our wheels and their dependencies, by image and platform.
    wheels: Mapping[tuple[str, str], Path]
    #: Layouts with one image each, by image and platform.
    images: Mapping[tuple[str, str], Layout]
    #: The first layer of each image's base, by the base's name.
    bases: Mapping[str, str]


class Route(Protocol):
    """A way to wheels and images."""

    def build(self, source: Source, platforms: list[str]) -> Built:
        """Builds for each platform. Raises ReleaseError."""


def own_platform() -> str:
    """The platform of this machine, in the form that images use."""
    return f"linux/{_PROCESSORS.get(platform.machine(), platform.machine())}"


def labels(source: Source) -> dict[str, str]:
    """The labels of an image: https://specs.opencontainers.org/image-spec/annotations/."""
    return {
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": source.commit,
        "org.opencontainers.image.source": REPOSITORY,
        "org.opencontainers.image.version": source.version,
    }


def find(route: str, wheels: Path, scratch: Path, *, built: bool, again: bool) -> Route:
    """The requested route; `auto` uses Docker if an engine answers. Raises ReleaseError."""
    if route not in ("auto", "docker", "local"):
        raise ReleaseError(f"BUILDER={route} is not auto, docker or local")
    if route == "docker" or (route == "auto" and not built and _docker_answers()):
        return DockerRoute(scratch)
    return LocalRoute(wheels, built=built, again=again)


@dataclass(frozen=True)
class LocalRoute:
    """Compiles on this machine, and puts the wheels on the base image of the local cluster."""

    folder: Path
    #: Whether the wheels in the folder are used without building them.
    built: bool = False
    #: Whether images are built even if the cache has them.
    again: bool = False

    def build(self, source: Source, platforms: list[str]) -> Built:
        # A lab that stops during the build ends only its own processes.
        cgroups.build_outside()
        foreign = [one for one in platforms if one != own_platform()]
        for one in platforms:
            self._compile(one)
        if foreign:
            raise ReleaseError(
                f"wheels for {', '.join(foreign)} are in {self.folder}; images for them need a Docker engine with "
                f"buildx: BUILDER=docker, or PLATFORMS={own_platform()}"
            )
        wheels = {(image, one): self._wheels(one) / image / "wheels" for image in DOCKERFILES for one in platforms}
        for folder in wheels.values():
            if not folder.is_dir():
                raise ReleaseError(f"there are no wheels in {folder}: leave WHEELS out to build them")
        images = {key: self._image(key[0], key[1], folder, source) for key, folder in wheels.items()}
        bases = {f"{catalogue.BASE}-{one}": _first_layer(images["worker", one]) for one in platforms}
        return Built(wheels, images, bases)

    def _wheels(self, one: str) -> Path:
        return self.folder if one == own_platform() else self.folder / one.replace("/", "_")

    def _compile(self, one: str) -> None:
        if self.built:
            return
        foreign = {} if one == own_platform() else {"TARGETARCH": one.partition("/")[2]}
        command = ["./setup/wheels", str(self._wheels(one))]
        if subprocess.run(command, cwd=ROOT, env={**os.environ, **foreign}).returncode:
            raise ReleaseError(f"the wheels for {one} cannot be built: see above")

    def _image(self, image: str, one: str, wheels: Path, source: Source) -> Layout:
        options = [f"--timestamp={source.epoch}", f"--platform={one}", "--identity-label=false"]
        options += [f"--label={name}={value}" for name, value in labels(source).items()]
        try:
            recipe = catalogue.product_recipe(
                f"localhost/proofgate/{image}:release-{one.partition('/')[2]}",
                DOCKERFILES[image], ROOT, {}, {"wheels": wheels.parent}, tuple(options),
            )  # fmt: skip
            if self.again:
                builder.archive_path(recipe.name, recipe.digest()).unlink(missing_ok=True)
            return Layout.read(catalogue.ensure_archive(recipe))
        except LabError as error:
            raise ReleaseError(f"the image of the {image} cannot be built: {error}") from None


@dataclass(frozen=True)
class DockerRoute:
    """Has BuildKit compile and build inside the Dockerfiles, as docker-bake.hcl describes."""

    scratch: Path

    def build(self, source: Source, platforms: list[str]) -> Built:
        self._bake(source, platforms, "wheels", "type=local,dest={folder}")
        self._bake(source, platforms, "default", "type=oci,dest={folder}.tar,rewrite-timestamp=true")
        wheels: dict[tuple[str, str], Path] = {}
        images: dict[tuple[str, str], Layout] = {}
        for image in DOCKERFILES:
            whole = Layout.read(self.scratch / f"{image}.tar")
            for one in platforms:
                # For a single platform, BuildKit makes no separate folder.
                folder = self.scratch / f"{image}-wheels"
                single = folder / one.replace("/", "_")
                wheels[image, one] = (single if single.is_dir() else folder) / "wheels"
                images[image, one] = whole
        bases = {f"{image}-base": _first_layer(images[image, platforms[0]]) for image in DOCKERFILES}
        return Built(wheels, images, bases)

    def _bake(self, source: Source, platforms: list[str], group: str, output: str) -> None:
        if subprocess.run(["docker", "buildx", "inspect", "proofgate"], capture_output=True).returncode:
            subprocess.run(
                ["docker", "buildx", "create", "--name", "proofgate", "--driver", "docker-container"],
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        targets = [f"{image}-wheels" if group == "wheels" else image for image in DOCKERFILES]
        sets = [f"--set={name}.output={output.format(folder=self.scratch / name)}" for name in targets]
        # SBOM and provenance are made here, the same way for every route.
        sets += [] if group == "wheels" else ["--set=*.attest=type=provenance,disabled=true"]
        for name, value in labels(source).items() if group != "wheels" else ():
            sets.append(f"--set=*.labels.{name}={value}")
        environment = {
            **os.environ,
            "PLATFORMS": ",".join(platforms),
            "TAG": source.version,
            "SOURCE_DATE_EPOCH": str(source.epoch),
        }
        command = ["docker", "buildx", "bake", "--builder", "proofgate", *sets, *targets]
        if subprocess.run(command, cwd=ROOT, env=environment).returncode:
            raise ReleaseError("docker buildx bake failed: see above")


def own_wheels(built: Built) -> list[Path]:
    """Our wheels, without duplicates, in copies whose bytes depend only on their content."""
    found: dict[str, Path] = {}
    for folder in built.wheels.values():
        for wheel in sorted(folder.glob("proofgate*.whl")):
            found.setdefault(wheel.name, wheel)
    return [found[name] for name in sorted(found)]


def normal(wheels: Iterable[Path], into: Path) -> list[Path]:
    """Copies wheels, and gives the copies the bytes that `setup/reproducible-wheel` gives."""
    into.mkdir(parents=True, exist_ok=True)
    copies = [Path(shutil.copy(wheel, into)) for wheel in wheels]
    done = subprocess.run([ROOT / "setup" / "reproducible-wheel", *copies], capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(done.stderr.strip())
    return copies


def _docker_answers() -> bool:
    try:
        asked = (["docker", "buildx", "version"], ["docker", "info"])
        return all(not subprocess.run(one, capture_output=True, timeout=60).returncode for one in asked)
    except (OSError, subprocess.TimeoutExpired):
        return False


def _first_layer(layout: Layout) -> str:
    digest: str = layout.json(layout.images()[0]["digest"])["layers"][0]["digest"]
    return digest
