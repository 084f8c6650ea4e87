"""Values that must be equal in the Dockerfiles and the files beside them."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from e2e.cluster.builder import copied_sources

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILES = {"worker": ROOT / "gateway" / "Dockerfile", "operator": ROOT / "operator" / "Dockerfile"}
WORKER = DOCKERFILES["worker"].read_text()
PATTERNS = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
ALLOWED = [pattern.removeprefix("!") for pattern in PATTERNS if pattern.startswith("!")]


def test_images_are_compiled_by_the_compiler_that_the_profile_is_of() -> None:
    """A different compiler silently builds without the profile, so the worker is slower."""
    (profile,) = (ROOT / "rust-core" / "profile").glob("rustc-*.profdata")
    compiler = re.findall(r"docker\.io/library/rust:(\S+)-slim-bookworm", WORKER)
    assert compiler == [profile.name.split("-")[1]]
    least = tomllib.loads((ROOT / "rust-core" / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert tuple(map(int, compiler[0].split("."))) >= tuple(map(int, least.split(".")))


@pytest.mark.parametrize("path", DOCKERFILES.values(), ids=DOCKERFILES)
def test_an_image_holds_the_environment_alone_and_runs_as_nobody(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    runtime = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert runtime[:3] == ["FROM ${BASE}", "COPY --from=install /opt/proofgate /opt/proofgate", "USER 65532:65532"]
    assert {line.split()[0] for line in runtime[3:]} == {"EXPOSE", "ENTRYPOINT"}


@pytest.mark.parametrize("path", DOCKERFILES.values(), ids=DOCKERFILES)
def test_what_is_brought_replaces_all_that_would_be_compiled(path: Path) -> None:
    assert copied_sources(path.read_text(), {"wheels"}) == {"wheels": ["/wheels/"]}
    assert copied_sources(path.read_text())[""]


@pytest.mark.parametrize("path", DOCKERFILES.values(), ids=DOCKERFILES)
def test_whatever_is_copied_is_let_into_the_build(path: Path) -> None:
    for source in copied_sources(path.read_text())[""]:
        inside = source.rstrip("/")
        assert (ROOT / inside).exists(), source
        assert any(fnmatch(inside, pattern) or pattern.startswith(f"{inside}/") for pattern in ALLOWED), source


def test_every_script_that_builds_a_wheel_is_let_into_the_build() -> None:
    started, called = ["wheels"], set[str]()
    while started:
        name = started.pop()
        called.add(name)
        text = (ROOT / "setup" / name).read_text()
        started += set(re.findall(r"(?:\./|\.\./)setup/([\w-]+)", text)) - called
    assert {"extension", "browser-verifier", "progress", "release-flags"} <= called
    assert {f"setup/{name}" for name in called} <= set(ALLOWED)


def test_nothing_is_let_into_the_build_that_is_not_named() -> None:
    assert PATTERNS[0] == "*"
    assert all(list(ROOT.glob(pattern)) for pattern in ALLOWED)


@pytest.mark.parametrize(("image", "lock"), [("worker", "gateway"), ("operator", "operator")])
def test_dependencies_come_by_hash(image: str, lock: str) -> None:
    text = DOCKERFILES[image].read_text()
    assert f"COPY requirements/{lock}.txt" in text and f"./setup/wheels /out {image}" in text
    assert "--require-hashes --requirement requirements/build.txt" in text
    assert "--require-hashes" in (ROOT / "setup" / "wheels").read_text()


def test_what_builds_the_wheels_is_locked_to_what_the_packages_ask_for() -> None:
    locked = (ROOT / "requirements" / "build.txt").read_text()
    for package in ("gateway", "operator", "schema"):
        asked = tomllib.loads((ROOT / package / "pyproject.toml").read_text())["build-system"]["requires"]
        assert all(f"\n{requirement} \\\n" in locked for requirement in asked), package


def test_every_image_and_its_wheels_are_baked_from_their_dockerfile() -> None:
    text = (ROOT / "docker-bake.hcl").read_text()
    assert re.findall(r'dockerfile = "(.*)"', text) == [str(path.relative_to(ROOT)) for path in DOCKERFILES.values()]
    assert '"linux/amd64,linux/arm64"' in text
