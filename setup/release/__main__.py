"""The command line: `python3 -m setup.release build --version 1.2.3`, which `make release VERSION=1.2.3` runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from e2e.cluster import toolchain
from e2e.cluster.console import LabError
from e2e.cluster.layout import cache_folder
from setup.release import images, publish
from setup.release.errors import ReleaseError
from setup.release.make import Plan, make
from setup.release.signing import KeySigner, Signer, WorkflowSigner
from setup.release.version import ROOT, source


def main(words: list[str] | None = None) -> int:
    """Returns 0, 1 for a failure, or 2 for unusable arguments; an error is explained on stderr."""
    arguments = _parser().parse_args(words)
    try:
        if arguments.command == "build":
            _build(arguments)
        else:
            publish.publish(arguments.out, arguments.registry, toolchain_binary("oras"))
            if arguments.github:
                publish.assets(arguments.out)
    except (ReleaseError, LabError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m setup.release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="make everything that is installed of a version, into one folder")
    build.add_argument("--version", required=True, help="the version of this checkout, such as 1.2.3")
    build.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="replaced (default: dist)")
    build.add_argument(
        "--platforms", default=images.own_platform(), help="such as linux/amd64,linux/arm64 (default: this machine's)"
    )
    build.add_argument(
        "--registry", default="ghcr.io/proofgate", help="where the images will be, which the chart names by digest"
    )
    build.add_argument("--builder", default="auto", help="docker (BuildKit), local (buildah), or auto (default)")
    build.add_argument("--wheels", type=Path, metavar="DIR", help="where wheels are built, or are with --built")
    build.add_argument("--built", action="store_true", help="take the wheels as they are")
    build.add_argument("--again", action="store_true", help="build images although the cache has them")
    build.add_argument(
        "--sign", default="", metavar="KEY", help="a P-256 key in PEM, or `keyless` for the identity of a workflow"
    )
    push = commands.add_parser("publish", help="push images, chart and signatures of a release to a registry")
    push.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR", help="what `build` made")
    push.add_argument("--registry", required=True, help="the registry that `build` was given")
    push.add_argument(
        "--github", action="store_true", help="attach the files to the release of GITHUB_REF_NAME as well"
    )
    return parser


def _build(arguments: argparse.Namespace) -> None:
    wheels: Path | None = arguments.wheels
    if wheels is None:
        if arguments.built:
            raise ReleaseError("--built takes wheels as they are: --wheels says where they are")
        wheels = cache_folder() / "wheels"
    platforms = sorted({one.strip() for one in arguments.platforms.split(",") if one.strip()})
    if not platforms or any(one not in ("linux/amd64", "linux/arm64") for one in platforms):
        raise ReleaseError(f"PLATFORMS={arguments.platforms}: there are linux/amd64 and linux/arm64")
    plan = Plan(
        source=source(arguments.version),
        out=arguments.out,
        registry=arguments.registry.rstrip("/"),
        platforms=platforms,
        signer=_signer(arguments.sign),
        helm=toolchain_binary("helm"),
    )
    make(plan, builder=arguments.builder, wheels=wheels.absolute(), built=arguments.built, again=arguments.again)


def _signer(asked: str) -> Signer | None:
    if not asked:
        return None
    return WorkflowSigner(toolchain_binary("cosign")) if asked == "keyless" else KeySigner(Path(asked))


def toolchain_binary(name: str) -> Path:
    """A program of the cluster's toolchain, built if the cache does not have it."""
    toolchain.ensure([tool for tool in toolchain.EVERY_TOOL if tool.name == name])
    return toolchain.binary(name)


if __name__ == "__main__":
    sys.exit(main())
