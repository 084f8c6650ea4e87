"""The images of the lab and of the product: their names, how they are built, and how they are loaded into the nodes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from . import builder, nodes, toolchain
from .builder import Recipe
from .cgroups import builds_group
from .console import LabError, say
from .layout import NODES, PACKAGE, lab_folder
from .processes import run

BASE = "localhost/proofgate/base:bookworm"
HAPROXY = "localhost/proofgate/haproxy:bookworm"
COREDNS = "localhost/proofgate/coredns:lab"
PAUSE = nodes.PAUSE_IMAGE
DOCKERFILES = PACKAGE / "images"

# Manuals and translations are a third of a minimal Debian, and pods do not need them.
_UNREAD = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
BASE_COMMAND = (
    "mmdebstrap",
    "--variant=minbase",
    "--include=python3-minimal,python3-venv,ca-certificates",
    *(f"--dpkgopt=path-exclude={pattern}" for pattern in _UNREAD),
    "bookworm",
)

Loader = Callable[[Path], None]


def base_digest() -> str:
    text = " ".join(BASE_COMMAND).encode() + (DOCKERFILES / "base" / "Dockerfile").read_bytes()
    return hashlib.sha256(text).hexdigest()[:16]


def ensure_base() -> None:
    """Import the base image into buildah's store, from an archive that is built once per recipe."""
    digest = base_digest()
    marker = builder.folder() / "base.digest"
    if marker.exists() and marker.read_text() == digest and builder.in_store(BASE):
        return
    context = builder.folder() / f"base-{digest}"
    if not (context / "base.tar").exists():
        say("making the base image's root file system (about 30 s)")
        for older in builder.folder().glob("base-*"):
            shutil.rmtree(older)
        context.mkdir()
        partial = context / "partial.tar"
        run([*BASE_COMMAND, partial], timeout=900, group=builds_group())
        partial.rename(context / "base.tar")
    say("building the base image")
    builder.forget(BASE)
    builder.build_with_buildah(Recipe(BASE, DOCKERFILES / "base" / "Dockerfile", context), keep=True)
    marker.write_text(digest)


def lab_recipe(name: str) -> Recipe:
    """The recipe of one of the lab's own images, by its short name."""
    dockerfile = DOCKERFILES / name / "Dockerfile"
    if name == "haproxy":
        return Recipe(HAPROXY, dockerfile, dockerfile.parent, {"BASE": BASE}, base_digest())
    if name == "coredns":
        return Recipe(COREDNS, dockerfile, toolchain.bin_folder(toolchain.COREDNS))
    if name == "pause":
        return Recipe(PAUSE, dockerfile, toolchain.bin_folder(toolchain.PAUSE))
    raise LabError(f"the lab has no image named {name}", "known: base, coredns, haproxy, pause")


def ensure_archive(recipe: Recipe) -> Path:
    """The archive of an image, which is built if its inputs have changed."""
    archive = builder.archive_path(recipe.name, recipe.digest())
    if archive.exists():
        return archive
    with builder.exclusive():
        if BASE in recipe.arguments.values():
            ensure_base()
        say(f"building {recipe.name}")
        builder.build_with_buildah(recipe)
    return archive


def product_recipe(
    name: str,
    dockerfile: Path,
    context: Path,
    arguments: Mapping[str, str],
    stages: Mapping[str, Path],
    options: tuple[str, ...] = (),
) -> Recipe:
    """The recipe of a product image; the lab's base image is the default for the build argument BASE."""
    for path in (dockerfile, context, *stages.values()):
        if not path.exists():
            raise LabError(f"{path} does not exist")
    chosen = dict(arguments)
    if "ARG BASE" in dockerfile.read_text():
        chosen.setdefault("BASE", BASE)
    salt = base_digest() if BASE in chosen.values() else ""
    brought = {stage: folder.absolute() for stage, folder in stages.items()}
    return Recipe(full_reference(name), dockerfile.absolute(), context.absolute(), chosen, salt, brought, options)


def find_archive(name: str) -> tuple[str, Path]:
    """An image's reference and archive, by a lab image's short name, a built image's name, or an archive file."""
    if name == "base":
        with builder.exclusive():
            ensure_base()
            archive = builder.archive_path(BASE, base_digest())
            if not archive.exists():
                builder.export(BASE, archive)
        return BASE, archive
    if name.endswith(".tar"):
        if not Path(name).is_file():
            raise LabError(f"{name} does not exist")
        return str(Path(name).absolute()), Path(name).absolute()
    if (DOCKERFILES / name).is_dir():
        recipe = lab_recipe(name)
        return recipe.name, ensure_archive(recipe)
    built = builder.newest_archive(full_reference(name))
    if built is None:
        raise LabError(f"no image {name} has been built", "known: base, coredns, haproxy, pause; or use build-image")
    return full_reference(name), built


def load(name: str, archive: Path, loader: Loader, present: Callable[[str], bool]) -> bool:
    """Load an archive into every node unless the nodes already have it. Returns whether it was loaded."""
    stat = archive.stat()
    identity = f"{archive.name} {stat.st_size} {stat.st_mtime_ns}"
    loaded = _loaded()
    if loaded.get(name) == identity and present(name):
        say(f"{name} is in every node")
        return False
    say(f"loading {name} into every node")
    loader(archive)
    _record().write_text(json.dumps({**_loaded(), name: identity}, indent=2))
    return True


def in_local_nodes(name: str) -> bool:
    """Whether every containerd of the local cluster has the image. True for an archive file."""
    if name.endswith(".tar"):
        return True
    return all(nodes.ctr(node, "images", "list", "--quiet", f"name=={name}").strip() == name for node in NODES)


def full_reference(name: str) -> str:
    """The form that containerd stores: a name without a tag has the tag `latest`."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _loaded() -> dict[str, str]:
    try:
        return dict(json.loads(_record().read_text()))
    except (OSError, ValueError):
        return {}


def _record() -> Path:
    return lab_folder() / "images.json"
