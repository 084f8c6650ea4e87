#!/usr/bin/env bash
# Resolves the lock files of this folder from the packages' own dependencies. Run it after changing those.
set -euo pipefail
cd "$(dirname "$0")"
compile() {
  pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-emit-index-url \
    --no-emit-trusted-host --no-emit-find-links --output-file "$1" "${@:2}"
}
compile gateway.txt ../gateway/pyproject.toml
compile operator.txt ../operator/pyproject.toml
compile dev.txt dev.in
compile docs.txt docs.in
# What makes the two wheels, where an image is built.
compile build.txt --build-deps-for wheel --only-build-deps ../gateway/pyproject.toml ../operator/pyproject.toml
