"""The command line: `python3 -m e2e.cluster COMMAND`, from the root of the repository."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType

from . import api_servers, current, kind, network_policies, nodes, routes, state, toolchain
from .cgroups import CONTROL_PLANE_GROUP
from .console import LabError, say
from .layout import kubeconfig_path
from .processes import in_group, in_namespace


def main(words: list[str] | None = None) -> int:
    """Run one command. Returns 0, 1 for a failure (explained on stderr), 130 when interrupted."""
    arguments = _parser().parse_args(words)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _dispatch(arguments)
    except LabError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; `down` removes what is there, `up` starts over", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m e2e.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("up", help="start the lab, if it is not healthy")
    commands.add_parser("down", help="remove the lab, and check that nothing remains")
    commands.add_parser("status", help="show what runs; exit code 1 unless the lab is healthy")
    commands.add_parser("kubeconfig", help="print the kubeconfig's path")
    commands.add_parser("env", help='print export lines: eval "$(python3 -m e2e.cluster env)"')
    commands.add_parser("recycle-volumes", help="empty Released volumes and make them Available")
    commands.add_parser("check-kind", help="check kind's configuration, without a container engine")
    build_tools = commands.add_parser("tools", help="build the binaries that are missing in the cache")
    build_tools.add_argument("names", nargs="*", metavar="TOOL", help="default: all that the local cluster needs")
    load = commands.add_parser("load-image", help="load an image into every node")
    load.add_argument("name", help="haproxy, base, an image that build-image made, or an OCI archive (.tar)")
    build = commands.add_parser("build-image", help="build a Dockerfile and load the image into every node")
    build.add_argument("--name", required=True, help="localhost/proofgate/worker:dev")
    build.add_argument("--dockerfile", required=True, type=Path)
    build.add_argument("--context", required=True, type=Path)
    build.add_argument("--build-arg", action="append", default=[], metavar="KEY=VALUE")
    build.add_argument(
        "--build-context", action="append", default=[], metavar="STAGE=DIR", help="a folder that replaces a stage"
    )
    tag = commands.add_parser("tag-image", help="add a name to an image on the nodes")
    tag.add_argument("name")
    tag.add_argument("second")
    stop = commands.add_parser("node-stop", help="stop a node")
    stop.add_argument("number", type=int)
    stop.add_argument("--crash", action="store_true", help="also stop its containers, not only its kubelet")
    commands.add_parser("node-start", help="start a stopped node").add_argument("number", type=int)
    commands.add_parser("node-pause", help="stop every process of a node").add_argument("number", type=int)
    commands.add_parser("node-resume", help="resume a paused node").add_argument("number", type=int)
    enforce = commands.add_parser("enforce-policies", help="enforce the current NetworkPolicies")
    enforce.add_argument("--namespace", help="enforce only those of this namespace, and stop enforcing others")
    enforce.add_argument("--off", action="store_true", help="stop enforcing them")
    inside = commands.add_parser(
        "inside", help="run a command in a node's network, where pod and Service addresses are reachable"
    )
    inside.add_argument("--node", type=int, default=1)
    inside.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    return parser


def _dispatch(arguments: argparse.Namespace) -> int:
    command: str = arguments.command
    if command == "tools":
        return _build_tools(arguments.names)
    if command == "check-kind":
        kind.check_configuration()
        return 0
    name = routes.chosen()
    route = routes.ROUTES[name]
    if command in {"kubeconfig", "env"}:
        path = current.kubeconfig() if name == "current" else kubeconfig_path()
        print(path if command == "kubeconfig" else _exports(path))
        return 0
    if command == "status":
        print("\n".join([f"route {name}", *route.status()]))
        return 0 if route.healthy() else 1
    if command == "inside":
        _run_inside(name, arguments.node, arguments.words)
    if command == "enforce-policies" and name != "local":
        raise LabError("only the local cluster is without NetworkPolicies of its own", f"this is {name}")
    if command in {"node-pause", "node-resume"} and name != "local":
        raise LabError("only the local cluster's nodes can be paused", f"this is {name}")
    with state.exclusive():
        _change(route, arguments)
    return 0


def _change(route: routes.Route, arguments: argparse.Namespace) -> None:
    """The commands that change the lab, of which one runs at a time."""
    match arguments.command:
        case "up":
            route.up()
        case "down":
            route.down()
        case "recycle-volumes":
            say(f"{route.recycle_volumes()} volumes recycled")
        case "load-image":
            route.load_image(arguments.name)
        case "tag-image":
            route.tag_image(arguments.name, arguments.second)
        case "build-image":
            pairs = dict(_key_value(text) for text in arguments.build_arg)
            stages = {stage: Path(folder) for stage, folder in map(_key_value, arguments.build_context)}
            route.build_image(arguments.name, arguments.dockerfile, arguments.context, pairs, stages)
        case "node-stop":
            route.node_stop(arguments.number, crash=arguments.crash)
        case "node-start":
            route.node_start(arguments.number)
        case "node-pause":
            state.require_root()
            nodes.pause(nodes.node_numbered(arguments.number))
        case "node-resume":
            state.require_root()
            nodes.resume(nodes.node_numbered(arguments.number))
        case "enforce-policies":
            state.require_root()
            network_policies.lift() if arguments.off else network_policies.enforce(arguments.namespace)


def _build_tools(names: list[str]) -> int:
    known = {tool.name: tool for tool in toolchain.EVERY_TOOL}
    servers = {f"{api_servers.PREFIX}{minor}": minor for minor in api_servers.RELEASES}
    unknown = [name for name in names if name not in known and name not in servers]
    if unknown:
        raise LabError(f"no tool is named {', '.join(unknown)}", f"known: {', '.join([*known, *servers])}")
    wanted = [known[name] if name in known else api_servers.tool(servers[name]) for name in names]
    wanted = wanted or list(toolchain.LOCAL_TOOLS)
    toolchain.ensure(wanted)
    for tool in wanted:
        print(toolchain.bin_folder(tool))
    return 0


def _exports(kubeconfig: Path) -> str:
    folders = [str(toolchain.bin_folder(tool)) for tool in (toolchain.KUBERNETES, toolchain.HELM)]
    kept = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder not in folders]
    search = os.pathsep.join([*folders, *kept])
    return f"export KUBECONFIG={shlex.quote(str(kubeconfig))}\nexport PATH={shlex.quote(search)}"


def _run_inside(route: str, number: int, words: list[str]) -> None:
    if route != "local":
        raise LabError("only the local cluster has networks to enter", "use kubectl port-forward")
    state.require_root()
    command = words[1:] if words[:1] == ["--"] else words
    if not command:
        raise LabError("inside needs a command", "python3 -m e2e.cluster inside -- curl http://198.19.0.1")
    entered = in_namespace(nodes.node_numbered(number).namespace, command)
    # The process joins the lab's cgroup, so that `down` ends it if it still runs.
    joined = in_group(CONTROL_PLANE_GROUP, entered)
    os.execvp(joined[0], joined)


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise LabError(f"{text} has no =")
    return key, value


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
