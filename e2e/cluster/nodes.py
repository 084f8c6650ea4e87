"""The two nodes: containerd, kubelet and kube-proxy of each, and functions that stop and restart a node."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from . import certs, kubectl, network, strays
from .cgroups import daemons_group, members
from .console import LabError, say, wait_until
from .layout import CLUSTER_DOMAIN, DNS_SERVICE, LAB, NODES, POD_RANGE, Node
from .processes import Daemon, alive, blame, end, end_group, recorded, require, run, signal_process, start
from .toolchain import CONTAINERD, bin_folder, binary

PAUSE_IMAGE = "localhost/proofgate/pause:lab"
_MEMORY_TO_SPARE = 8 << 30
_STORE_LIMIT = 6 << 30
#: The default soft limit of systemd for a containerd unit without this setting, which containers inherit. The hard
#: limit is unchanged, because it cannot be raised without CAP_SYS_RESOURCE.
_OPEN_FILES = "1024:"
_CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))


def daemon_names(node: Node) -> tuple[str, str, str]:
    """The names in the order in which the daemons start."""
    return f"containerd-{node.name}", f"kubelet-{node.name}", f"kube-proxy-{node.name}"


def healthy() -> bool:
    """Whether every daemon of every node runs and every node is Ready."""
    running = all(alive(name) for node in NODES for name in daemon_names(node))
    return running and kubectl.ready_nodes() >= {node.name for node in NODES}


def start_runtimes() -> None:
    """Start containerd on every node. It needs no apiserver, so images can be loaded in the meantime."""
    for node in NODES:
        _start_containerd(node)
    for node in NODES:
        _wait_for_containerd(node)


def start_kubelets() -> None:
    """Start the kubelets one after the other.

    Each kubelet empties the shared folder of device plugins, then binds its socket in this folder. It exits if the
    other kubelet empties the folder between these two steps.
    """
    for node in NODES:
        strays.DEVICE_PLUGIN_SOCKET.unlink(missing_ok=True)
        kubelet = _start_kubelet(node)
        _start_proxy(node)

        def listens(kubelet: Daemon = kubelet) -> bool:
            require(kubelet)
            return strays.DEVICE_PLUGIN_SOCKET.exists()

        wait_until(f"{kubelet.name} to listen for device plugins", listens, 300, partial(blame, kubelet))


def wait_until_ready(nodes: tuple[Node, ...] = NODES, timeout: float = 300) -> None:
    """Return when these nodes are Ready. If a kubelet has exited, the error contains its log."""
    names = {node.name for node in nodes}
    newest = {daemon.name: daemon for daemon in recorded()}
    kubelets = [newest[daemon_names(node)[1]] for node in nodes]

    def all_ready() -> bool:
        for kubelet in kubelets:
            require(kubelet)
        return kubectl.ready_nodes() >= names

    def logs() -> str:
        return "\n".join(blame(kubelet) for kubelet in kubelets)

    wait_until(f"{', '.join(sorted(names))} to be Ready", all_ready, timeout, logs, pause=0.3)


def stop(node: Node, *, crash: bool) -> None:
    """Stop a node's kubelet, so that its containers still serve (a partition); with `crash`, stop all its processes."""
    containerd, kubelet, proxy = daemon_names(node)
    if not crash:
        end(_running(kubelet))
        say(f"{node.name}: kubelet ended; its containers run on")
        return
    # The kubelet is stopped first, because it would restart the containers.
    end(_running(kubelet, proxy, containerd), grace=0)
    end_group(daemons_group(node.name))
    end_group(node.cgroup)
    say(f"{node.name}: kubelet, containerd and every container ended")


def restart(node: Node) -> None:
    """Restart a stopped node: start its missing daemons, and wait until it is Ready."""
    containerd, kubelet, proxy = daemon_names(node)
    if not alive(containerd):
        _start_containerd(node)
        _wait_for_containerd(node)
    if not alive(kubelet):
        _start_kubelet(node)
    if not alive(proxy):
        _start_proxy(node)
    wait_until_ready((node,))
    say(f"{node.name} is Ready")


def pause(node: Node) -> None:
    """Stop every process of a node and of its pods, like a virtual machine during a migration, until `resume`."""
    stopped: set[int] = set()
    # A process may start others before it is stopped; the next round finds these.
    while found := set(_members(node)) - stopped:
        for pid in found:
            signal_process(pid, signal.SIGSTOP)
        stopped |= found
    say(f"{node.name}: {len(stopped)} processes stand")


def resume(node: Node) -> None:
    """Continue the processes of a paused node, and wait until it is Ready."""
    for pid in _members(node):
        signal_process(pid, signal.SIGCONT)
    wait_until_ready((node,))
    say(f"{node.name} resumes")


def _members(node: Node) -> list[int]:
    return [*members(daemons_group(node.name)), *members(node.cgroup)]


def import_image(archive: Path) -> None:
    """Load an OCI archive into the containerd of every node."""
    with ThreadPoolExecutor(len(NODES)) as pool:
        list(pool.map(lambda node: ctr(node, "images", "import", str(archive), timeout=900), NODES))


def ctr(node: Node, *words: str, timeout: float = 300) -> str:
    address = [f"--address={node.containerd_socket}", "--namespace=k8s.io"]
    return run([str(binary("ctr")), *address, *words], timeout=timeout).stdout


def node_numbered(number: int) -> Node:
    for node in NODES:
        if node.number == number:
            return node
    raise LabError(f"there is no node {number}", f"nodes: {', '.join(str(node.number) for node in NODES)}")


def _running(*names: str) -> list[Daemon]:
    return [daemon for name in names if (daemon := alive(name))]


def _start_containerd(node: Node) -> Daemon:
    for folder in (node.folder / "containerd", node.sockets / "shims", node.folder / "cni"):
        folder.mkdir(parents=True, exist_ok=True)
    _keep_images_in_memory(node)
    (node.folder / "cni" / "10-lab.conflist").write_text(network.cni_configuration(node))
    configuration = node.folder / "containerd.toml"
    configuration.write_text(containerd_configuration(node, _cni_folder()))
    return start(
        daemon_names(node)[0],
        ["prlimit", f"--nofile={_OPEN_FILES}", binary("containerd"), "--config", configuration],
        group=daemons_group(node.name),
        namespace=node.namespace,
        environment={"PATH": f"{bin_folder(CONTAINERD)}:/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def _keep_images_in_memory(node: Node) -> None:
    """Put containerd's store on a tmpfs, if the machine has enough free memory.

    Unmounting a container's overlay writes all dirty pages of the disk below it. If the machine also compiles, this
    takes half a minute for each pod that ends; on a tmpfs it takes no time.
    """
    store = node.folder / "containerd"
    if store.is_mount() or available_memory() < _MEMORY_TO_SPARE:
        return
    run(["mount", "-t", "tmpfs", "-o", f"size={_STORE_LIMIT},mode=0711", LAB, store])


def available_memory() -> int:
    """The bytes that the kernel could allocate without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _wait_for_containerd(node: Node) -> None:
    daemon = alive(daemon_names(node)[0])
    if daemon is None:
        raise LabError(f"containerd of {node.name} ended at once", "see its log")
    running = daemon

    def answers() -> bool:
        require(running)
        probe = [str(binary("ctr")), f"--address={node.containerd_socket}", "--connect-timeout=30s", "version"]
        return run(probe, timeout=60, check=False).returncode == 0

    wait_until(f"containerd of {node.name}", answers, 300, lambda: blame(running))


def containerd_configuration(node: Node, cni: Path) -> str:
    """containerd's configuration. Every path is the node's own, because two containerds share one machine."""
    sandbox = "plugins.'io.containerd.cri.v1.runtime'"
    return f"""version = 4
root = '{node.folder}/containerd'
state = '{node.folder}/run'
temp = '{node.folder}/temp'
imports = []
disabled_plugins = ['io.containerd.internal.v1.opt', 'io.containerd.nri.v1.nri']

[plugins.'io.containerd.server.v1.grpc']
  address = '{node.containerd_socket}'
[plugins.'io.containerd.server.v1.ttrpc']
  address = '{node.containerd_socket}.ttrpc'
[plugins.'io.containerd.shim.v1.manager']
  socket_dir = '{node.sockets}/shims'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{PAUSE_IMAGE}'

[{sandbox}]
  # The machine may withhold CAP_SYS_RESOURCE; then a lower score cannot be set.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
[{sandbox}.cni]
  bin_dirs = ['{cni}']
  conf_dir = '{node.folder}/cni'
[{sandbox}.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[{sandbox}.containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = '{node.sockets}/runc'
"""


def _cni_folder() -> Path:
    for folder in _CNI_FOLDERS:
        if (folder / "bridge").exists() and (folder / "portmap").exists():
            return folder
    raise LabError("the CNI plugins bridge and portmap are missing", "install containernetworking-plugins")


def _start_kubelet(node: Node) -> Daemon:
    configuration = node.folder / "kubelet.json"
    configuration.write_text(kubelet_configuration(node))
    return start(
        daemon_names(node)[1],
        [
            binary("kubelet"),
            f"--config={configuration}",
            f"--kubeconfig={certs.kubeconfig(certs.KUBELETS[node.name])}",
            f"--root-dir={node.folder / 'kubelet'}",
            f"--cert-dir={node.folder / 'kubelet-pki'}",
            f"--hostname-override={node.name}",
            f"--node-ip={node.address}",
        ],
        group=daemons_group(node.name),
        namespace=node.namespace,
    )


def kubelet_configuration(node: Node) -> str:
    """The kubelet's configuration. It reserves nothing and evicts nothing by percentages, because the lab shares the
    machine's disk and memory.
    """
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certs.certificate("ca"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certs.certificate(f"kubelet-{node.name}")),
        "tlsPrivateKeyFile": str(certs.key(f"kubelet-{node.name}")),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.cgroup,
        # From 1.35 on, kubelets refuse cgroup v1 by default.
        "failCgroupV1": False,
        "failSwapOn": False,
        # Ignore settings that need CAP_SYS_RESOURCE.
        "featureGates": {"KubeletInUserNamespace": True},
        "oomScoreAdj": 0,
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": "",
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "podLogsDir": str(node.folder / "pod-logs"),
        "volumePluginDir": str(node.folder / "volume-plugins"),
        "nodeStatusUpdateFrequency": "2s",
        "nodeLeaseDurationSeconds": 8,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "100Mi", "imagefs.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "maxPods": 100,
        # Tests wait until a container is restarted, and the delay before the restart does not matter to them.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "5s"},
        "registryPullQPS": 0,
    }
    return json.dumps(document, indent=2)


def _start_proxy(node: Node) -> Daemon:
    return start(
        daemon_names(node)[2],
        [
            binary("kube-proxy"),
            f"--kubeconfig={certs.kubeconfig(certs.PROXY)}",
            f"--hostname-override={node.name}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={POD_RANGE}",
            "--oom-score-adj=0",
            # The conntrack tables belong to the namespace, but their limits apply to the machine.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
        ],
        group=daemons_group(node.name),
        namespace=node.namespace,
    )
