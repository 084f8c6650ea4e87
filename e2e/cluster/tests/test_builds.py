"""Changes that make a binary or an image stale, and changes that do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from e2e.cluster import api_servers, builder, cgroups, toolchain
from e2e.cluster.builder import Recipe
from e2e.cluster.console import LabError


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "context"
    (folder / "wheels").mkdir(parents=True)
    (folder / "wheels" / "product.whl").write_text("one")
    (folder / "Dockerfile").write_text("ARG BASE=official\nFROM ${BASE}\nCOPY wheels/ /wheels/\nRUN true\n")
    return folder


def recipe(context: Path, salt: str = "") -> Recipe:
    return Recipe("localhost/x:dev", context / "Dockerfile", context, {"BASE": "lab"}, salt)


def test_a_changed_wheel_changes_the_digest(context: Path) -> None:
    before = recipe(context).digest()
    (context / "wheels" / "product.whl").write_text("two")
    assert recipe(context).digest() != before


def test_a_file_that_the_dockerfile_does_not_copy_changes_nothing(context: Path) -> None:
    before = recipe(context).digest()
    (context / "notes.txt").write_text("anything")
    assert recipe(context).digest() == before


def test_another_base_changes_the_digest(context: Path) -> None:
    assert recipe(context, salt="a").digest() != recipe(context, salt="b").digest()


def test_a_source_that_is_not_there_is_named(context: Path) -> None:
    (context / "Dockerfile").write_text("FROM scratch\nCOPY missing/ /x/\n")
    with pytest.raises(LabError, match="missing/"):
        recipe(context).digest()


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("COPY a b /target/", ["a", "b"]),
        ("copy --chown=1:1 a /target", ["a"]),
        ('ADD ["with space", "/target"]', ["with space"]),
        ("COPY --from=builder /made /target", []),
        ("COPY a \\\n  b /target/", ["a", "b"]),
        ("RUN cp a b", []),
    ],
)
def test_copied_sources(line: str, sources: list[str]) -> None:
    assert builder.copied_sources(f"FROM scratch\n{line}\n").get("", []) == sources


STAGES = """
FROM --platform=${BUILDPLATFORM} rust AS build
COPY sources/ /sources/
FROM scratch AS wheels
COPY --from=build /out/ /wheels/
FROM base AS unused
COPY notes /notes
FROM base
COPY --from=wheels /wheels/ /wheels/
COPY settings /settings
"""


def test_only_stages_that_the_image_needs_count() -> None:
    assert builder.copied_sources(STAGES) == {"": ["settings", "sources/"]}


def test_a_folder_in_place_of_a_stage_counts_instead_of_what_that_stage_copies() -> None:
    assert builder.copied_sources(STAGES, {"wheels"}) == {"": ["settings"], "wheels": ["/wheels/"]}


def test_what_a_stage_would_have_compiled_is_no_input_of_an_image_that_is_brought_wheels(context: Path) -> None:
    (context / "Dockerfile").write_text("FROM a AS wheels\nCOPY rust/ /\nFROM b\nCOPY --from=wheels /wheels/ /w/\n")
    given = Recipe("localhost/x:dev", context / "Dockerfile", context, stages={"wheels": context})
    before = given.digest()
    assert given.flags() == [f"--build-context=wheels={context}"]
    (context / "wheels" / "product.whl").write_text("two")
    assert given.digest() != before


def test_a_pinned_version_decides_where_a_binary_is_cached(tmp_path: Path) -> None:
    tool = replace(toolchain.ETCD, module=tmp_path)
    (tmp_path / "go.mod").write_text("module x\nrequire y v1.0.0\n")
    before = toolchain.digest_of(tool, "go1.26.0")
    assert toolchain.digest_of(tool, "go1.26.1") != before
    (tmp_path / "go.mod").write_text("module x\nrequire y v1.0.1\n")
    assert toolchain.digest_of(tool, "go1.26.0") != before


def test_a_release_of_kubernetes_is_built_from_its_own_requirements_and_published_staging_modules() -> None:
    release = """module k8s.io/kubernetes

go 1.24.0

require (
	github.com/blang/semver/v4 v4.0.0
	k8s.io/api v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
)
"""
    made = api_servers.module_file(release, "v1.33.5")
    assert "go 1.24.0" in made and "github.com/blang/semver/v4 v4.0.0" in made
    assert "require k8s.io/kubernetes v1.33.5" in made
    assert "k8s.io/api => k8s.io/api v0.33.5" in made and "./staging" not in made


@pytest.mark.parametrize("tool", toolchain.EVERY_TOOL, ids=lambda tool: tool.name)
def test_every_binary_is_pinned_by_its_module(tool: toolchain.Tool) -> None:
    module = (toolchain.MODULES / tool.name / "go.mod").read_text()
    assert all(package == "." or package in module for _, package in tool.binaries)


@pytest.mark.parametrize(
    ("tool", "module", "version"),
    [
        (toolchain.KUBERNETES, "k8s.io/kubernetes", toolchain.KUBERNETES_VERSION),
        (toolchain.HELM, "helm.sh/helm/v4", toolchain.HELM_VERSION),
    ],
)
def test_the_version_that_a_binary_reports_is_the_one_that_is_pinned(
    tool: toolchain.Tool, module: str, version: str
) -> None:
    assert f"{module} {version}" in (toolchain.MODULES / tool.name / "go.mod").read_text()
    assert version in toolchain.linker_flags(tool)


def test_a_release_is_built_outside_of_a_lab_that_goes_down_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "joining_file", lambda group: __file__)
    monkeypatch.setattr(cgroups, "_leave_lab", Event())
    assert cgroups.builds_group() == cgroups.BUILDS_GROUP
    cgroups.build_outside()
    assert cgroups.builds_group() is None
