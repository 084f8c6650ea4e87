"""Go programs that tests run beside the worker, each built once and stored outside the checkout.

python -m e2e.go_binaries        builds all (4 minutes the first time)
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import time
from pathlib import Path

_HERE = Path(__file__).resolve().parent
VERIFIER_MODULE = _HERE / "verifier"
_STORE_MODULE = _HERE / "versitygw"
_STORE = "github.com/versity/versitygw/cmd/versitygw"
_LITEWITNESS = "filippo.io/torchwood/cmd/litewitness"
_TESSERA = "github.com/transparency-dev/tessera/cmd/examples/posix-oneshot"


def cache() -> Path:
    """The folder of built programs."""
    return Path(os.environ.get("PROOFGATE_CACHE") or Path.home() / ".cache" / "proofgate")


def object_store() -> Path:
    """The S3 server versitygw."""
    return _built(_STORE_MODULE, (_STORE,)) / "versitygw"


def verifier() -> Path:
    """The verifier that shares no code with the product."""
    return witnesses() / "verifier"


def witnesses() -> Path:
    """The folder of a stock witness (`litewitness`), a stock log (`posix-oneshot`) and the verifier."""
    return _built(VERIFIER_MODULE, (".", _LITEWITNESS, _TESSERA))


def _built(module: Path, packages: tuple[str, ...]) -> Path:
    """Builds packages of a module into a folder that is named by the module's files. Raises RuntimeError."""
    sources = hashlib.sha256("\0".join(packages).encode())
    for path in sorted(path for path in module.iterdir() if path.is_file()):
        sources.update(path.name.encode() + path.read_bytes())
    folder = cache() / "go-binaries" / f"{module.name}-{sources.hexdigest()[:16]}"
    ready = folder / ".ready"
    if ready.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    # If several processes need it at the same time, only one builds.
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            command = ["go", "build", "-o", f"{folder}/", *packages]
            done = subprocess.run(command, cwd=module, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)} in {module}:\n{done.stderr}")
            ready.touch()
    return folder


def main() -> None:
    """Builds the missing programs, and prints how long that took."""
    for name, build in (("verifier, witness and log", witnesses), ("object store", object_store)):
        started = time.monotonic()
        print(f"building {name}", flush=True)
        build()
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
