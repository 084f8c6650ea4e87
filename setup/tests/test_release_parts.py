"""The parts of `make release` that need no build: its refusals, and the same bytes for the same content."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from setup.release import archives, chart, oci, publish, sbom, signing
from setup.release.__main__ import main
from setup.release.errors import ReleaseError
from setup.release.oci import Layout
from setup.release.version import ROOT, Source, changes, source, version_of

SOURCE = Source("1.2.3", "c" * 40, 1_700_000_000, False)


@pytest.mark.parametrize("version", ["", "v1.2.3", "1.2", "01.2.3", "1.2.3-", "1.2.3+build", "1.2.3-01", "latest"])
def test_what_is_no_semantic_version_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match="is not a semantic version"):
        source(version)


def test_another_version_than_the_checkouts_is_refused_and_the_right_one_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["build", "--version", "99.0.0-rc.1"]) == 1
    told = capsys.readouterr().err
    assert "VERSION=99.0.0-rc.1" in told and version_of() in told and "v99.0.0-rc.1" in told


def test_the_time_of_a_release_is_that_of_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    asked = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct %H"]
    epoch, commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    found = source(version_of())
    assert (found.epoch, found.commit) == (int(epoch), commit)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "17")
    assert source(version_of()).epoch == 17


def test_the_changelogs_section_is_that_of_the_version(tmp_path: Path) -> None:
    text = "# Changelog\n\n## Unreleased\n\n- next\n\n## [1.2.3] - 2026-01-02\n\n- one\n\n## 1.2.2\n\n- older\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    assert changes("1.2.3", tmp_path) == ("- one\n", True)
    assert changes("1.2.2", tmp_path) == ("- older\n", True)
    assert changes("1.3.0", tmp_path) == ("- next\n", False)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    with pytest.raises(ReleaseError, match=r"no section 1\.3\.0"):
        changes("1.3.0", tmp_path)


def test_an_archive_of_the_same_files_is_the_same_whatever_their_order() -> None:
    one = archives.tar({"b/c": b"2", "a": b"1"}, 17, folders=True)
    assert one == archives.tar({"a": b"1", "b/c": b"2"}, 17, folders=True)
    assert archives.unpacked(one) == {"a": b"1", "b/c": b"2"}
    assert archives.compressed(one) == archives.compressed(one)


def image(architecture: str, text: bytes) -> Layout:
    """An image of one layer."""
    made = Layout()
    layer = archives.tar({"var/lib/dpkg/status": text}, 0)
    config = {"architecture": architecture, "os": "linux", "config": {"Env": ["PYTHON_VERSION=3.11.9"]}}
    packed = made.add(archives.compressed(layer), oci.LAYER)
    made.tag(oci.artefact(made, made.add_json(config, oci.CONFIG), [packed], {}), "built")
    return made


def test_images_of_two_processors_become_one_that_names_both(tmp_path: Path) -> None:
    parts = {"linux/arm64": image("arm64", b"2"), "linux/amd64": image("amd64", b"1")}
    merged, entry = oci.together(parts, {"a": "b"}, "1.2.3")
    index = merged.json(entry["digest"])
    assert [one["platform"]["architecture"] for one in index["manifests"]] == ["amd64", "arm64"]
    (tmp_path / "x.tar").write_bytes(merged.archive(17))
    again = Layout.read(tmp_path / "x.tar")
    assert again.archive(17) == merged.archive(17)
    assert len(again.images()) == 2
    with pytest.raises(ReleaseError, match="0 images for linux/arm64"):
        oci.together({"linux/arm64": image("amd64", b"1")}, {}, "1.2.3")


def test_an_archive_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(archives.tar({"index.json": b'{"manifests": []}', f"blobs/sha256/{'0' * 64}": b"x"}, 0))
    with pytest.raises(ReleaseError, match="has another digest"):
        Layout.read(path)
    path.write_bytes(archives.tar({"a": b""}, 0))
    with pytest.raises(ReleaseError, match=r"no index\.json"):
        Layout.read(path)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return write(tmp_path / "release.key", ec.generate_private_key(ec.SECP256R1()))


def write(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> Path:
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return path


def test_a_signature_is_the_same_each_time_and_verifies(key: Path, tmp_path: Path) -> None:
    signer = signing.KeySigner(key)
    path = tmp_path / "file"
    path.write_bytes(b"content")
    bundle = signer.sign_file(path)
    assert bundle == signing.KeySigner(key).sign_file(path)
    signature = base64.b64decode(json.loads(bundle)["messageSignature"]["signature"])
    public = serialization.load_pem_public_key(signer.public_key())
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(signature, b"content", ec.ECDSA(hashes.SHA256()))


def test_a_key_that_cosign_would_not_verify_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no key")
    other = write(tmp_path / "other", ec.generate_private_key(ec.SECP384R1()))
    large = write(tmp_path / "large", rsa.generate_private_key(65537, 2048))
    for path in (tmp_path / "absent", tmp_path / "text", other, large):
        with pytest.raises(ReleaseError, match="unencrypted P-256 key"):
            signing.KeySigner(path)


def test_a_workflows_signature_is_what_cosign_writes(tmp_path: Path) -> None:
    program = tmp_path / "cosign"
    program.write_text('#!/bin/sh\nfor one; do case $one in --bundle=*) echo "$@" > "${one#*=}";; esac; done\n')
    program.chmod(0o755)
    signer = signing.WorkflowSigner(program)
    assert signer.sign_file(tmp_path / "x").decode().startswith("sign-blob --yes --bundle=")
    assert b"attest-blob --yes" in signer.sign_statement(b"{}")
    program.write_text("#!/bin/sh\necho no identity >&2\nexit 1\n")
    with pytest.raises(ReleaseError, match="no identity"):
        signer.sign_statement(b"{}")


def wheel(folder: Path) -> Path:
    """A wheel with a crate in it."""
    crate = {"bom-ref": "pkg:cargo/serde@1.0.0", "name": "serde", "purl": "pkg:cargo/serde@1.0.0", "type": "library"}
    own = {"bom-ref": "path+file:///rust-core/x", "name": "x", "type": "library", "components": [crate]}
    edges = [{"ref": own["bom-ref"], "dependsOn": [crate["bom-ref"]]}]
    inner = {"metadata": {"component": own}, "components": [crate], "dependencies": edges}
    path = folder / "some_package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_package-1.0.dist-info/METADATA", "Name: Some_Package\nVersion: 1.0\n\ntext\n")
        archive.writestr("some_package-1.0.dist-info/sboms/x.cyclonedx.json", json.dumps(inner))
    return path


def test_an_sbom_lists_packages_crates_and_those_of_the_base(tmp_path: Path) -> None:
    status = (
        b"Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2.36+x~1\n\nPackage: gone\n"
    )
    layout, entry = oci.together({"linux/amd64": image("amd64", status)}, {}, "1.2.3")
    wheels = [wheel(tmp_path)]
    text = sbom.document("proofgate-worker", SOURCE, entry, layout, wheels)
    assert text == sbom.document("proofgate-worker", SOURCE, entry, layout, wheels)
    document = json.loads(text)
    found = {one["bom-ref"] for one in document["components"]}
    assert found == {
        "path+file:///rust-core/x",
        "pkg:cargo/serde@1.0.0",
        "pkg:deb/debian/libc6@1%3A2.36%2Bx%7E1?arch=amd64",
        "pkg:generic/python@3.11.9",
        "pkg:pypi/some-package@1.0",
    }
    edges = {edge["ref"]: edge["dependsOn"] for edge in document["dependencies"]}
    assert edges["pkg:pypi/some-package@1.0"] == ["path+file:///rust-core/x"]
    assert edges["path+file:///rust-core/x"] == ["pkg:cargo/serde@1.0.0"]


def test_changes_are_said_as_artifact_hub_reads_them() -> None:
    added = "### Added\n- One thing. And more.\n- `Two`: of\n  them\n\n"
    notes = f"{added}### Changed\n- Names:\n\n  | a | b |\n\n### Other\n- no\n"
    assert chart.changes(notes) == [
        {"kind": "added", "description": "One thing."},
        {"kind": "added", "description": "Two"},
        {"kind": "changed", "description": "Names"},
    ]


def test_the_chart_says_of_itself_what_artifact_hub_shows() -> None:
    metadata = yaml.safe_load((ROOT / "charts" / "proofgate-operator" / "Chart.yaml").read_text())
    listed = yaml.safe_load(metadata["annotations"]["artifacthub.io/crds"])
    there = {yaml.safe_load(path.read_text())["metadata"]["name"] for path in (ROOT / "crds").glob("*.yaml")}
    assert {one["name"] for one in listed} == there
    for link in yaml.safe_load(metadata["annotations"]["artifacthub.io/links"]):
        path = link["url"].split("/main/")[1]
        assert (ROOT / path).exists(), path


def test_a_release_is_pushed_nowhere_by_accident(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="has no release"):
        publish.publish(tmp_path, "127.0.0.1:1", tmp_path / "oras")
    with pytest.raises(ReleaseError, match="REGISTRY is not set"):
        publish.publish(tmp_path, "", tmp_path / "oras")


def test_the_files_of_a_release_are_attached_to_its_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "dist"
    out.mkdir()
    (out / "CHANGELOG-1.2.3-rc.1.md").write_text("one")
    program = tmp_path / "gh"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("GITHUB_REF_NAME", "v1.2.3-rc.1")
    publish.assets(out)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:3] == ["release", "create", "v1.2.3-rc.1"] and "--prerelease" in asked and "--verify-tag" in asked
    monkeypatch.setenv("GITHUB_REF_NAME", "v9.9.9")
    with pytest.raises(ReleaseError, match="not the tag"):
        publish.assets(out)


def test_make_release_says_what_it_lacks() -> None:
    done = subprocess.run(
        ["make", "release"], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "VERSION": ""}
    )
    assert done.returncode == 2
    assert f"make release VERSION={version_of()}" in done.stderr
    assert shutil.which("make")
