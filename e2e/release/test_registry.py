"""A release in a real registry: pulled by digest and verified by cosign, with a chart that Helm finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.release import released
from e2e.release.released import Release, run
from setup.release.__main__ import toolchain_binary
from setup.release.archives import sha256, unpacked

PUSHED = ("proofgate-worker", "proofgate-operator", "proofgate-operator-chart", "proofgate-operator-bundle")


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """An environment in which programs find no login and no cache of this user."""
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TUF_ROOT": str(tmp_path / "tuf")}


def cosign(environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs cosign without a transparency log, because the key is a test's."""
    return run([toolchain_binary("cosign"), *words], env=environment)


@pytest.mark.parametrize("name", PUSHED)
def test_it_is_pulled_by_digest_and_verified_by_signature(published: Release, name: str, alone: dict[str, str]) -> None:
    image = published.pinned(name)
    key = ("--key", published.key, "--insecure-ignore-tlog=true", "--allow-insecure-registry")
    verified = cosign(alone, "verify", *key, image)
    assert verified.returncode == 0, verified.stderr
    attested = cosign(alone, "verify-attestation", *key, "--type", "slsaprovenance1", image)
    assert attested.returncode == 0, attested.stderr
    if name in ("proofgate-worker", "proofgate-operator"):
        listed = cosign(alone, "verify-attestation", *key, "--type", "cyclonedx", image)
        assert listed.returncode == 0, listed.stderr


def test_another_key_verifies_nothing(published: Release, alone: dict[str, str], tmp_path: Path) -> None:
    other = released.new_key(tmp_path / "other.key")
    public = subprocess.run(["openssl", "pkey", "-in", other, "-pubout"], capture_output=True, check=True).stdout
    (tmp_path / "other.pub").write_bytes(public)
    key = ("--key", tmp_path / "other.pub", "--insecure-ignore-tlog=true", "--allow-insecure-registry")
    assert cosign(alone, "verify", *key, published.pinned("proofgate-worker")).returncode != 0


def test_a_file_is_verified_by_its_bundle(published: Release, alone: dict[str, str]) -> None:
    sums = published.folder / "SHA256SUMS"
    key = ("--key", published.key, "--insecure-ignore-tlog=true", "--bundle", f"{sums}.sigstore.json")
    verified = cosign(alone, "verify-blob", *key, sums)
    assert verified.returncode == 0, verified.stderr
    assert cosign(alone, "verify-blob", *key, published.key).returncode != 0


def oras(*words: str) -> str:
    done = run([toolchain_binary("oras"), *words])
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PUSHED)
def test_the_registry_has_it_by_its_tag_with_all_that_belongs_to_it(published: Release, name: str) -> None:
    reference = published.references()[f"{name}-{published.version}"]
    repository = f"{published.registry}/{reference['repository']}"
    tag = oras("resolve", "--plain-http", f"{repository}:{published.version}").strip()
    assert tag == reference["digest"]
    found: dict[str, Any] = json.loads(
        oras("discover", "--plain-http", "--format", "json", f"{repository}@{reference['digest']}")
    )
    kinds = {one["annotations"]["dev.sigstore.bundle.predicateType"] for one in found["referrers"]}
    wanted = {"https://sigstore.dev/cosign/sign/v1", "https://slsa.dev/provenance/v1"}
    assert kinds - {"https://cyclonedx.org/bom"} == wanted


def test_helm_finds_the_chart_and_needs_no_value(published: Release, alone: dict[str, str]) -> None:
    chart = f"oci://{published.registry}/charts/proofgate-operator"
    place = ("--version", published.version, "--plain-http")
    rendered = run([toolchain_binary("helm"), "template", "proofgate", chart, *place], env=alone)
    assert rendered.returncode == 0, rendered.stderr
    (deployment,) = (one for one in yaml.safe_load_all(rendered.stdout) if one and one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == published.pinned("proofgate-operator")
    pulled = run([toolchain_binary("helm"), "pull", chart, *place, "--destination", alone["HOME"]], env=alone)
    assert pulled.returncode == 0, pulled.stderr
    (archive,) = Path(alone["HOME"]).glob("*.tgz")
    assert unpacked(archive.read_bytes()) == unpacked(published.file(f"{published.version}.tgz").read_bytes())


def copied(made: Release, folder: Path) -> Path:
    """A copy of a release for changes."""
    folder.mkdir()
    for path in made.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def push(folder: Path, registry: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "setup.release", "publish", "--registry", registry, "--out", str(folder)])


def test_a_version_is_published_once(published: Release, tmp_path: Path) -> None:
    assert push(published.folder, published.registry).returncode == 0
    other = copied(published, tmp_path / "other")
    references, sums = other / "references.json", other / "SHA256SUMS"
    before = references.read_bytes()
    found = published.references()
    found[f"proofgate-worker-{published.version}"]["digest"] = f"sha256:{'0' * 64}"
    references.write_text(json.dumps(found))
    sums.write_text(sums.read_text().replace(sha256(before), sha256(references.read_bytes())))
    refused = push(other, published.registry)
    assert refused.returncode == 1
    assert f"proofgate-worker:{published.version} is " in refused.stderr
    assert "a version is published once" in refused.stderr


def test_a_file_that_was_changed_is_not_published(made: Release, tmp_path: Path) -> None:
    other = copied(made, tmp_path / "other")
    changed = other / f"proofgate-operator-{made.version}.tgz"
    changed.write_bytes(changed.read_bytes() + b"x")
    refused = push(other, made.registry)
    assert refused.returncode == 1 and changed.name in refused.stderr and "checksum" in refused.stderr
