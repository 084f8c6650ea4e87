"""The content of a release: the files, the reproducibility of a second run, and the signed statements."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from e2e.release import released
from e2e.release.released import Release
from setup.release.archives import unpacked
from setup.release.oci import Layout
from setup.release.version import ROOT

SIGNED = ("signature", "provenance")


def sums(made: Release) -> dict[str, str]:
    lines = (made.folder / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def statement(path: Path) -> dict[str, Any]:
    """The statement in a bundle."""
    found: dict[str, Any] = json.loads(base64.b64decode(json.loads(path.read_text())["dsseEnvelope"]["payload"]))
    return found


def verify(bundle: Path, key: Path, content: bytes | None = None) -> None:
    """Checks a bundle by its format's documentation, without our code. Raises InvalidSignature."""
    public = load_pem_public_key(key.read_bytes())
    assert isinstance(public, EllipticCurvePublicKey)
    document = json.loads(bundle.read_text())
    assert document["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    if content is not None:
        signature, signed = document["messageSignature"]["signature"], content
    else:
        envelope = document["dsseEnvelope"]
        payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"]
        signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
        (one,) = envelope["signatures"]
        signature = one["sig"]
    public.verify(base64.b64decode(signature), signed, ECDSA(hashes.SHA256()))


def test_two_runs_make_the_same_bytes(made: Release, key: Path, tmp_path: Path) -> None:
    second = released.release(tmp_path / "second", made.registry, key, "--again")
    assert sums(second) == sums(made)
    names = {path.name for path in made.folder.iterdir()}
    assert names == {path.name for path in second.folder.iterdir()}
    # With one key, even the signatures are reproducible.
    differ = {name for name in names if (second.folder / name).read_bytes() != (made.folder / name).read_bytes()}
    assert differ == set()


def test_no_wheel_names_a_folder_of_whoever_built_it(made: Release) -> None:
    wheels = list(made.folder.glob("*.whl"))
    assert wheels
    home = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            for name in opened.namelist():
                content = opened.read(name)
                assert home.encode() not in content, f"{wheel.name}: {name}"
                assert str(ROOT).encode() not in content, f"{wheel.name}: {name}"


def test_every_file_has_a_checksum_and_a_signature(made: Release) -> None:
    listed = sums(made)
    plain = {path.name for path in made.folder.iterdir() if not path.name.endswith(".sigstore.json")}
    assert set(listed) == plain - {"SHA256SUMS", "release.pub"}
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=made.folder, capture_output=True)
    assert checked.returncode == 0, checked.stdout
    provenance = f"proofgate-{made.version}.intoto.json"
    for name in plain - {"release.pub", provenance}:
        verify(made.folder / f"{name}.sigstore.json", made.key, (made.folder / name).read_bytes())
    verify(made.folder / f"{provenance}.sigstore.json", made.key)


def test_another_file_and_another_key_are_not_verified(made: Release, tmp_path: Path) -> None:
    bundle = made.folder / "SHA256SUMS.sigstore.json"
    with pytest.raises(InvalidSignature):
        verify(bundle, made.key, (made.folder / "SHA256SUMS").read_bytes() + b"\n")
    other = released.new_key(tmp_path / "other.key")
    public = subprocess.run(["openssl", "pkey", "-in", other, "-pubout"], capture_output=True, check=True).stdout
    (tmp_path / "other.pub").write_bytes(public)
    with pytest.raises(InvalidSignature):
        verify(bundle, tmp_path / "other.pub", (made.folder / "SHA256SUMS").read_bytes())


def test_the_provenance_names_every_file_the_commit_and_what_was_pinned(made: Release) -> None:
    found = json.loads((made.folder / f"proofgate-{made.version}.intoto.json").read_text())
    listed = sums(made)
    del listed[f"proofgate-{made.version}.intoto.json"]
    assert {one["name"]: one["digest"]["sha256"] for one in found["subject"]} == listed
    assert found["predicateType"] == "https://slsa.dev/provenance/v1"
    definition = found["predicate"]["buildDefinition"]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout
    assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": commit.strip()}
    locks = {one["uri"].rpartition("#")[2] for one in definition["resolvedDependencies"]}
    assert {"rust-core/Cargo.lock", "requirements/gateway.txt", "requirements/operator.txt"} <= locks
    assert definition["externalParameters"]["version"] == made.version


def test_what_is_pushed_is_signed_by_the_digest_that_others_pull(made: Release) -> None:
    for name, reference in made.references().items():
        for kind in SIGNED:
            bundle = made.folder / f"{name}.{kind}.sigstore.json"
            verify(bundle, made.key)
            (subject,) = statement(bundle)["subject"]
            assert f"sha256:{subject['digest']['sha256']}" == reference["digest"]
            assert subject["name"] == f"{made.registry}/{reference['repository']}"


@pytest.mark.parametrize("image", ["worker", "operator"])
def test_an_image_says_what_it_is_and_its_sbom_what_is_in_it(made: Release, image: str) -> None:
    name = f"proofgate-{image}-{made.version}"
    layout = Layout.read(made.folder / f"{name}.oci.tar")
    (platform,) = layout.images()
    config = layout.json(layout.json(platform["digest"])["config"]["digest"])["config"]
    assert config["Labels"]["org.opencontainers.image.version"] == made.version
    assert config["User"] == "65532:65532"
    document = json.loads((made.folder / f"{name}.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    kinds = {purl.split("/")[0] for one in document["components"] if (purl := one.get("purl"))}
    assert {"pkg:pypi", "pkg:deb"} <= kinds
    # Wheels of other projects also contain crates.
    assert ("proofgate-ledger" in {one["name"] for one in document["components"]}) is (image == "worker")
    locked = (ROOT / "requirements" / f"{'gateway' if image == 'worker' else image}.txt").read_text()
    pinned = {f"pkg:pypi/{a.lower().replace('_', '-')}@{b}" for a, b in re.findall(r"^([\w.-]+)==(\S+)", locked, re.M)}
    assert pinned <= {one.get("purl") for one in document["components"]}
    known = {one["bom-ref"] for one in document["components"]} | {document["metadata"]["component"]["bom-ref"]}
    edges = {ref for edge in document["dependencies"] for ref in (edge["ref"], *edge["dependsOn"])}
    assert edges <= known
    assert statement(made.folder / f"{name}.sbom.sigstore.json")["predicate"] == document


def test_the_chart_names_its_images_by_digest_and_says_what_changed(made: Release) -> None:
    files = unpacked(made.file(f"proofgate-operator-{made.version}.tgz").read_bytes())
    values = yaml.safe_load(files["proofgate-operator/values.yaml"])
    assert values["operator"]["image"] == made.pinned("proofgate-operator")
    assert values["workerImage"] == made.pinned("proofgate-worker")
    chart = yaml.safe_load(files["proofgate-operator/Chart.yaml"])
    assert chart["version"] == chart["appVersion"] == made.version
    annotations = chart["annotations"]
    images = {one["image"] for one in yaml.safe_load(annotations["artifacthub.io/images"])}
    assert images == {made.pinned("proofgate-operator"), made.pinned("proofgate-worker")}
    assert {one["kind"] for one in yaml.safe_load(annotations["artifacthub.io/changes"])} >= {"added", "changed"}
    crds = {one["name"] for one in yaml.safe_load(annotations["artifacthub.io/crds"])}
    assert crds == {"governancegateways.proofgate.dev", "gatewaytenants.proofgate.dev"}


def test_the_bundle_of_operatorhub_is_the_chart_in_other_words(made: Release) -> None:
    files = unpacked(made.file(f"bundle-{made.version}.tar.gz").read_bytes())
    top = made.version
    labels = yaml.safe_load(files[f"{top}/metadata/annotations.yaml"])["annotations"]
    assert labels["operators.operatorframework.io.bundle.package.v1"] == "proofgate-operator"
    version = yaml.safe_load(files[f"{top}/manifests/proofgate-operator.clusterserviceversion.yaml"])
    spec = version["spec"]
    assert version["metadata"]["name"] == f"proofgate-operator.v{made.version}" and spec["version"] == made.version
    (deployment,) = spec["install"]["spec"]["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == made.pinned("proofgate-operator")
    watched = {one["name"]: one for one in container["env"]}["WATCH_NAMESPACES"]
    assert "olm.targetNamespaces" in json.dumps(watched)
    owned = {one["name"] for one in spec["customresourcedefinitions"]["owned"]}
    there = {
        document["metadata"]["name"]
        for path, text in files.items()
        if path.startswith(f"{top}/manifests/")
        and (document := yaml.safe_load(text))["kind"] == "CustomResourceDefinition"
    }
    assert owned == there == {"governancegateways.proofgate.dev", "gatewaytenants.proofgate.dev"}
    (roles,) = spec["install"]["spec"]["permissions"]
    granted = {
        (group, resource) for rule in roles["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
    }
    assert {("apps", "statefulsets"), ("proofgate.dev", "governancegateways"), ("", "pods")} <= granted
    (cluster,) = spec["install"]["spec"]["clusterPermissions"]
    assert cluster["rules"] == [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]
    assert {one["kind"] for one in json.loads(version["metadata"]["annotations"]["alm-examples"])} == {
        "GovernanceGateway", "GatewayTenant"
    }  # fmt: skip


def test_the_sum_of_an_archive_is_that_of_what_is_in_it(made: Release) -> None:
    for name, reference in made.references().items():
        layout = Layout.read(made.folder / f"{name}.oci.tar")
        assert reference["digest"] in {entry["digest"] for entry in layout.entries}
        assert all(hashlib.sha256(blob).hexdigest() == digest[7:] for digest, blob in layout.blobs.items())
