#!/usr/bin/env bash
# Resolves the lock files of this folder. Each is for a separate environment, because their pinned versions conflict.
# `agents.txt` is separate from `libraries.txt`, because each would hold back the other's versions.
set -euo pipefail
cd "$(dirname "$0")"
for lock in agents libraries aider; do
  CUSTOM_COMPILE_COMMAND=e2e/agents/requirements/compile.sh pip-compile --quiet --strip-extras --generate-hashes \
    --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file "$lock.txt" "$lock.in"
done
