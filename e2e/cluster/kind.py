"""The route through kind, if a Docker engine answers. Nodes, volumes and commands equal those of the local cluster."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from . import builder, catalogue, kubectl, state, toolchain, volumes
from .builder import Recipe
from .console import LabError, say
from .layout import LAB, PACKAGE, kubeconfig_path, lab_folder, log_folder, volume_folder
from .processes import run

_WORKERS = {1: f"{LAB}-worker", 2: f"{LAB}-worker2"}


def engine_answers() -> bool:
    """Whether a Docker engine answers; the client alone is not enough."""
    if shutil.which("docker") is None:
        return False
    return run(["docker", "info"], timeout=20, check=False).returncode == 0


def up() -> None:
    """Create the cluster unless a cluster answers; one that does not answer is deleted first."""
    _ensure_tools()
    if LAB in _kind("get", "clusters").split() and kubectl.ready():
        recycle_volumes()
        say(f"the lab is up: {kubeconfig_path()}")
        return
    down()
    state.create("kind")
    volume_folder().mkdir(parents=True)
    written = lab_folder() / "kind.yaml"
    written.write_text(configuration(volume_folder()))
    say("creating the kind cluster (about 2 min with the node image at hand)")
    _kind("create", "cluster", f"--config={written}", f"--kubeconfig={kubeconfig_path()}", "--wait=180s", timeout=900)
    kubeconfig_path().chmod(0o600)
    volumes.offer(volumes.KIND_FOLDER)
    say(f"the lab is up: {kubeconfig_path()}")


def down() -> None:
    """Delete the cluster and its folder. Raises LabError if kind still lists the cluster."""
    toolchain.ensure((toolchain.KIND,))
    if LAB in _kind("get", "clusters").split():
        _empty_volumes(volumes.names())
        _kind("delete", "cluster", f"--name={LAB}", f"--kubeconfig={kubeconfig_path()}", timeout=180)
    if LAB in _kind("get", "clusters").split():
        raise LabError("the kind cluster is still there", f"kind delete cluster --name {LAB}")
    shutil.rmtree(lab_folder(), ignore_errors=True)


def status() -> list[str]:
    if not kubectl.ready():
        return ["kind: the apiserver does not answer"]
    nodes = kubectl.kubectl("get", "nodes", "--no-headers").splitlines()
    return [*nodes, f"kubeconfig {kubeconfig_path()}", f"logs: kind export logs {log_folder()} --name {LAB}"]


def healthy() -> bool:
    return kubectl.ready() and len(kubectl.ready_nodes()) == 1 + len(_WORKERS)


def load_image(name: str) -> None:
    """Load a lab image, a built image, or an archive file; Docker builds missing images."""
    if name.endswith(".tar"):
        reference, archive = str(Path(name).absolute()), Path(name).absolute()
    elif (catalogue.DOCKERFILES / name).is_dir():
        if name != "haproxy":
            raise LabError(
                f"kind needs no {name} image", "it brings its own, and product images build on the official one"
            )
        dockerfile = catalogue.DOCKERFILES / name / "Dockerfile"
        recipe = Recipe(catalogue.HAPROXY, dockerfile, dockerfile.parent)
        reference, archive = recipe.name, _built(recipe)
    else:
        reference = catalogue.full_reference(name)
        found = builder.newest_archive(reference)
        if found is None:
            raise LabError(f"no image {name} has been built", "use build-image")
        archive = found
    _load(reference, archive)


def tag_image(name: str, second: str) -> None:
    """Give an image a second name on both workers."""
    for worker in _WORKERS.values():
        run(["docker", "exec", worker, "ctr", "--namespace=k8s.io", "images", "tag", "--force", name, second])


def build_image(
    name: str, dockerfile: Path, context: Path, arguments: Mapping[str, str], stages: Mapping[str, Path]
) -> None:
    brought = {stage: folder.absolute() for stage, folder in stages.items()}
    reference = catalogue.full_reference(name)
    recipe = Recipe(reference, dockerfile.absolute(), context.absolute(), arguments, stages=brought)
    _load(recipe.name, _built(recipe))


def node_stop(number: int, *, crash: bool) -> None:
    """Stop a worker: its kubelet only, or its whole container."""
    worker = _worker(number)
    command = ["docker", "kill", worker] if crash else ["docker", "exec", worker, "systemctl", "stop", "kubelet"]
    run(command)
    say(f"{worker}: {'killed' if crash else 'kubelet ended'}")


def node_start(number: int) -> None:
    worker = _worker(number)
    run(["docker", "start", worker])
    run(["docker", "exec", worker, "systemctl", "start", "kubelet"])
    kubectl.kubectl("wait", "--for=condition=Ready", f"node/{worker}", "--timeout=120s", timeout=150)
    say(f"{worker} is Ready")


def recycle_volumes() -> int:
    return volumes.recycle(_empty_volumes)


def configuration(volume_path: Path) -> str:
    return (PACKAGE / "manifests" / "kind.yaml").read_text().replace("@VOLUMES@", str(volume_path))


def check_configuration() -> None:
    """Check the configuration with the kind binary, without an engine. It reports unknown fields and wrong types.

    kind reads the file before it looks for an engine; this call points it to a socket that does not exist.
    """
    toolchain.ensure((toolchain.KIND,))
    written = builder.folder().parent / "kind-check.yaml"
    written.write_text(configuration(Path("/volumes")))
    command = [str(toolchain.binary("kind")), "create", "cluster", f"--config={written}", "--kubeconfig=/dev/null"]
    nowhere = {"DOCKER_HOST": "unix:///nonexistent/docker.sock", "KIND_EXPERIMENTAL_PROVIDER": "docker"}
    answer = run(command, environment=nowhere, check=False)
    written.unlink()
    if "failed to get docker info" not in answer.stderr:
        raise LabError("kind refuses its configuration", answer.stderr)
    say("kind reads its configuration; the rest needs an engine")


def _ensure_tools() -> None:
    wanted = [toolchain.KIND, toolchain.HELM]
    if shutil.which("kubectl") is None:
        wanted.append(toolchain.KUBERNETES)
    toolchain.ensure(wanted)


def _built(recipe: Recipe) -> Path:
    archive = builder.archive_path(recipe.name, recipe.digest())
    if not archive.exists():
        with builder.exclusive():
            say(f"building {recipe.name}")
            builder.build_with_docker(recipe)
    return archive


def _load(reference: str, archive: Path) -> None:
    def loader(path: Path) -> None:
        _kind("load", "image-archive", str(path), f"--name={LAB}", timeout=300)

    # The record of loaded images is in the cluster's folder, which is deleted with the cluster.
    catalogue.load(reference, archive, loader, lambda _: True)


def _empty_volumes(names: list[str]) -> None:
    # Only root in the node may delete files that pods of root or another user have written.
    for name in names:
        folder = volumes.KIND_FOLDER / name
        run(["docker", "exec", _WORKERS[1], "find", folder, "-mindepth", "1", "-delete"], check=False)


def _worker(number: int) -> str:
    if number not in _WORKERS:
        raise LabError(f"there is no node {number}", f"nodes: {', '.join(map(str, _WORKERS))}")
    return _WORKERS[number]


def _kind(*words: str, timeout: float = 60) -> str:
    return run([toolchain.binary("kind"), *words], timeout=timeout).stdout
