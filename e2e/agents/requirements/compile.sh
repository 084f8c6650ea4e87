#!/usr/bin/env bash
# Resolves the lock files of this folder, each of an environment of its own: what they pin does not agree. `agents.txt`
# is beside `libraries.txt` because both hold back the other's versions.
set -euo pipefail
cd "$(dirname "$0")"
for lock in agents libraries aider; do
  CUSTOM_COMPILE_COMMAND=e2e/agents/requirements/compile.sh pip-compile --quiet --strip-extras --generate-hashes \
    --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file "$lock.txt" "$lock.in"
done
