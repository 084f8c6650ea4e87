#!/usr/bin/env bash
# Resolves the lock files of this folder from the packages' own dependencies. Run it after changing those.
set -euo pipefail
cd "$(dirname "$0")"
compile() {
  pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-emit-index-url \
    --no-emit-trusted-host --no-emit-find-links --output-file "$1" "${@:2}"
}
# What a package depends on besides our own schema/, which comes from this repository and no registry.
others() {
  python - "../$1/pyproject.toml" <<'PY'
import sys, tomllib
from pathlib import Path
project = tomllib.loads(Path(sys.argv[1]).read_text())["project"]
print(*(one for one in project["dependencies"] if not one.startswith("proofgate-schema")), sep="\n")
PY
}
for package in gateway operator; do
  others "$package" > "$package.in"
  compile "$package.txt" "$package.in"
  rm "$package.in"
done
compile dev.txt dev.in
compile docs.txt docs.in
# What makes the wheels, where an image is built.
compile build.txt --build-deps-for wheel --only-build-deps ../gateway/pyproject.toml ../operator/pyproject.toml ../schema/pyproject.toml
