# Proofgate: what there is to do here. `make` alone lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Everything that is built or fetched stays outside the checkout, so that a second run is quick.
export PROOFGATE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/proofgate
export CARGO_TARGET_DIR ?= $(PROOFGATE_CACHE)/target
LOCKS := $(addprefix requirements/,dev.txt gateway.txt operator.txt)
VENV := $(PROOFGATE_CACHE)/venv-$(shell cat $(LOCKS) | sha256sum | cut -c1-16)
PY := $(VENV)/bin/python
WHEELS := $(PROOFGATE_CACHE)/wheels
CARGO := cargo --locked
RUST_MANIFEST := rust-core/Cargo.toml
export PATH := $(VENV)/bin:$(PATH)
# Checkouts share the environment: each works with its own packages.
export PYTHONPATH := $(CURDIR)/gateway/src:$(CURDIR)/operator/src
# Where the linker put what; setup/hot-functions-are-together reads it.
MAP := $(CURDIR)/gateway/build/core.map
# What a release build is compiled with: the profile of a worker under load.
RELEASE := RUSTFLAGS="$$(./setup/release-flags)"

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- The main job ---------------------------------------------------------------------------------------------------

.PHONY: demo
demo: develop images ## A real cluster, a real deployment, a proved answer
	@$(PY) -m e2e.demo

.PHONY: run
run: develop ## A gateway without Kubernetes, on 127.0.0.1:8080; with OPENAI_API_KEY in front of OpenAI
	@$(PY) -m e2e.run

.PHONY: demo-swap
demo-swap: develop ## A model is swapped behind its provider's name, and the gateway notices (10 seconds, no cluster)
	@$(PY) -m e2e.swap

# --- Set-up ---------------------------------------------------------------------------------------------------------

.PHONY: setup
setup: $(VENV)/.ready ## Install what is missing: toolchains' components and the Python environment
	@./setup/of-this-checkout

# The folder is named by the digest of the lock files, so they need not be prerequisites.
$(VENV)/.ready:
	@./setup/toolchain
	@echo "== Python environment, and the worker's dependencies beside it (about 2 minutes on 2 cores)"
	@rm -rf "$(VENV)" && python3 -m venv "$(VENV)"
	@$(RELEASE) $(CARGO) build --manifest-path $(RUST_MANIFEST) --release --package proofgate-dataplane --quiet & \
	  "$(PY)" -m pip install --quiet --require-hashes -r requirements/dev.txt && wait $$!
	@touch $@

.PHONY: develop
develop: setup ## Build the worker (release) and install both packages into the environment, editable
	@./setup/browser-verifier
	@echo "== worker extension (release; about 2 minutes when cold)"
	@mkdir -p "$(dir $(MAP))" && map= && if [[ $$(uname -s) == Linux ]]; then map="-Clink-arg=-Wl,-Map=$(MAP)"; fi && \
	  $(RELEASE) && export RUSTFLAGS && cd gateway && \
	  VIRTUAL_ENV="$(VENV)" maturin develop --release --skip-install --quiet -- $${map:+"$$map"}
	@site=$$("$(PY)" -c 'import site; print(site.getsitepackages()[0])') && \
	  printf '%s\n' "$(CURDIR)/gateway/src" "$(CURDIR)/operator/src" > "$$site/proofgate-checkout.pth" && \
	  for command in proofgate:proofgate.cli proofgate-operator:proofgate_operator.main; do \
	    script="$(VENV)/bin/$${command%%:*}"; \
	    printf '#!%s\nimport sys\nfrom %s import main\nsys.exit(main())\n' "$(PY)" "$${command#*:}" > "$$script"; \
	    chmod +x "$$script"; \
	  done

# Tests wait more than they compute, so two run at once; those of one file stay together and share what it set up.
SPREAD := -n $(or $(TEST_PROCESSES),2) --dist loadfile

# --- The everyday loop ----------------------------------------------------------------------------------------------

.PHONY: check
check: setup check-rust check-python check-repo ## Format, lint, types, unit tests: a few minutes

.PHONY: fmt
fmt: setup ## Format everything
	@cargo fmt --all --manifest-path $(RUST_MANIFEST)
	@ruff format gateway operator e2e bench setup examples && ruff check --fix-only --quiet gateway operator e2e bench setup examples

# A check says the same of the same code whenever it runs; `make properties` looks for what nobody has seen.
.PHONY: check-rust
check-rust: export PROPTEST_RNG_SEED ?= 14
check-rust:
	@echo "== Rust: format, lint, tests"
	@cargo fmt --all --check --manifest-path $(RUST_MANIFEST)
	@$(CARGO) clippy --manifest-path $(RUST_MANIFEST) --workspace --all-targets --all-features --quiet -- -D warnings
	@$(CARGO) test --manifest-path $(RUST_MANIFEST) --workspace --exclude proofgate-pybind --all-features --quiet
	@cargo fmt --check --manifest-path bench/stream_load/Cargo.toml
	@$(CARGO) clippy --manifest-path bench/stream_load/Cargo.toml --all-targets --quiet -- -D warnings
	@$(CARGO) test --manifest-path bench/stream_load/Cargo.toml --quiet
	@./setup/hot-path-has-no-python

.PHONY: check-python
check-python: develop
	@echo "== Python: format, lint, types, tests"
	@ruff format --check --quiet gateway operator e2e bench setup examples && ruff check --quiet gateway operator e2e bench setup examples
	@cd gateway && mypy && pytest $(SPREAD)
	@cd operator && mypy && lint-imports --no-cache && pytest -q $(SPREAD)
	@mypy --strict e2e bench setup examples
	@pytest -q e2e/cluster/tests
	@pytest -q e2e/garden/tests bench/tests bench/scoring/tests examples/policies

.PHONY: check-repo
check-repo: develop
	@echo "== repository: licences, releases, generated files"
	@./setup/licences
	@./setup/hot-functions-are-together "$(MAP)"
	@pytest -q setup/tests
	@"$(PY)" docs/generate_api_reference.py --check
	@"$(PY)" docs/check_test_names.py
	@"$(PY)" charts/generate_readme.py --check
	@"$(PY)" e2e/framing/make_cases.py --check
	@"$(PY)" -m bench.scoring.page --check
	@"$(PY)" -m bench.report --check
	@"$(PY)" -m bench.operator.page --check
	@"$(PY)" -m bench.ledger_page --check
	@cd e2e/verifier && go vet ./... && go test ./...
	@$(RELEASE) && export RUSTFLAGS && \
	  $(CARGO) run --release --quiet --manifest-path $(RUST_MANIFEST) --package proofgate-ledger --example proofs | \
	  (cd e2e/verifier && go run . proofs)

# --- The long suites ------------------------------------------------------------------------------------------------

.PHONY: test
test: check test-worker test-clients ## Everything: checks, unit tests, and the end-to-end tests on a real cluster
	@$(MAKE) --no-print-directory --jobs=2 test-e2e test-beside

# What has room beside the cluster, whose tests mostly wait.
.PHONY: test-beside
test-beside: garden test-haproxy-lts test-operator

.PHONY: test-worker
test-worker: develop ## The worker end to end on loopback, without a cluster
	@echo "== worker: end to end on loopback"
	@pytest -q $(SPREAD) e2e/worker -m "not node"

# The packages stay outside the checkout, in a folder that is named by the digest of their lock file.
NODE_CLIENTS = $(PROOFGATE_CACHE)/node-clients-$(shell sha256sum e2e/worker/clients/package-lock.json | cut -c1-16)

.PHONY: test-clients
test-clients: develop $(NODE_CLIENTS)/.ready ## Every official client, of Python and Node, against a provider of every type (1 minute)
	@echo "== clients: each against a provider of every type"
	@PROOFGATE_NODE_CLIENTS="$(NODE_CLIENTS)" pytest -q e2e/worker/test_clients.py

$(NODE_CLIENTS)/.ready:
	@rm -rf "$(@D)" && mkdir -p "$(@D)" && cp e2e/worker/clients/package.json e2e/worker/clients/package-lock.json "$(@D)"
	@cd "$(@D)" && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

.PHONY: test-kills
test-kills: develop ## A worker killed under load KILLS (200) times: no record of a completed answer is lost (8 minutes)
	@PROOFGATE_KILLS=$(or $(KILLS),200) pytest -q e2e/worker/test_endings.py -k killed_under_load

.PHONY: test-haproxy-lts
test-haproxy-lts: develop ## The tests of HAProxy again, with the current long-term release of it
	@echo "== HAProxy: the current long-term release"
	@cd operator && PROOFGATE_HAPROXY="$$(../setup/haproxy-lts)" pytest -q $(SPREAD) -m haproxy

.PHONY: test-operator
test-operator: develop ## The operator's process and the chart on a real control plane, without nodes
	@echo "== operator: on etcd and kube-apiserver alone"
	@tools=$$(python3 -m e2e.cluster tools kubernetes etcd helm promtool | paste -sd:) && \
	  cd operator && PROOFGATE_TOOLS_PATH="$$tools" pytest -q $(SPREAD) -m controlplane

# The operator's own tests of what an API server lets in; etcd, kubectl and helm are those of the cluster.
.PHONY: check-crd
check-crd: MINORS ?= 1.30 1.31 1.32 1.33 1.34 1.35 1.36
check-crd: develop ## The CRD and the examples on an API server of each of MINORS (1.30 to 1.36; 4 minutes each to build)
	@for minor in $(MINORS); do \
	  echo "== CRD: Kubernetes $$minor"; \
	  tools=$$(python3 -m e2e.cluster tools kube-apiserver-$$minor kubernetes etcd helm | paste -sd:); \
	  (cd operator && PROOFGATE_TOOLS_PATH="$$tools" pytest -q -m controlplane tests/controlplane/test_admission.py); \
	done

# Behind the others, on a cluster without their fleet: these want more room than it leaves.
ALONE := e2e/tests/test_one_namespace.py e2e/tests/test_tokens.py

.PHONY: test-e2e
test-e2e: export PROOFGATE_E2E_MAY_CLEAR = yes
test-e2e: develop images ## The end-to-end tests on a real cluster; leaves nothing running
	@echo "== cluster: end to end"
	@trap 'python3 -m e2e.cluster down' EXIT; python3 -m e2e.cluster up && \
	  pytest -q -x e2e/tests $(addprefix --ignore=,$(ALONE)) && python3 -m e2e.cluster recycle-volumes && pytest -q -x $(ALONE)

.PHONY: bench
bench: develop ## The data plane beside other gateways (25 minutes; QUICK=1: 5); writes bench/results/data-plane.json
	@$(PY) -m bench.data_plane $(if $(QUICK),--quick)

.PHONY: profile
profile: setup ## Learn from a worker under load what release builds are optimised for (8 minutes)
	@./setup/profile

.PHONY: bench-operator
bench-operator: develop images ## The operator: what it costs, and what a load notices; writes bench/results/operator.json
	@trap '$(PY) -m e2e.cluster down' EXIT; $(PY) -m e2e.cluster up && \
	  PROOFGATE_TOOLS_PATH="$$($(PY) -m e2e.cluster tools kubernetes etcd helm | paste -sd:)" $(PY) -m bench.operator

.PHONY: bench-ledger
bench-ledger: develop ## The ledger alone: restarts, proofs and checks of up to 10^8 records (an hour, 60 GB); writes bench/results/ledger.json
	@$(RELEASE) && export RUSTFLAGS && $(PY) -m bench.ledger

.PHONY: bench-neighbour
bench-neighbour: develop ## What a tenant notices of another one's prompts of 10 MiB (6 minutes); writes bench/results/neighbour.json
	@$(PY) -m bench.neighbour

.PHONY: bench-policies
bench-policies: develop ## What policies in Python cost a request, and one that asks for none (3 minutes); writes bench/results/python-policies.json
	@$(PY) -m bench.python_policies && $(PY) -m bench.policy_deadline

.PHONY: bench-evidence
bench-evidence: develop ## What an auditor verifies in a second; what a worker notices of auditor, analysis, stored payloads: [BEFORE=revision] (4 minutes); writes bench/results/evidence.json
	@$(PY) -m bench.evidence $(if $(BEFORE),--before "$(BEFORE)")

.PHONY: bench-index
bench-index: develop ## An index of 10^8 exchanges: making it, and asking it (an hour, 20 GB); writes bench/results/index.json
	@$(PY) -m bench.index

.PHONY: bench-anthropic
bench-anthropic: develop ## OpenAI's client before Anthropic's upstream, beside gateways that translate (8 minutes); writes bench/results/anthropic-upstream.json
	@$(PY) -m bench.anthropic_upstream

.PHONY: bench-scoring
bench-scoring: develop ## The policy engine alone: speed, agreement with a plain reference, precision and recall
	@$(PY) -m bench.scoring

.PHONY: bench-keys
bench-keys: develop ## 10,000 tenants with 100,000 keys, and one more (3 minutes); writes bench/results/keys.json
	@$(PY) -m bench.keys

.PHONY: fuzz
fuzz: ## Fuzz FUZZ_TARGETS (default: all) for FUZZ_SECONDS (60) each, or until FUZZ_RUNS executions add up
	@./setup/fuzz

.PHONY: properties
properties: setup ## Property tests with PROPERTY_CASES (2000) random cases each
	@PROPTEST_CASES=$(or $(PROPERTY_CASES),2000) $(CARGO) test --manifest-path $(RUST_MANIFEST) --workspace --exclude proofgate-pybind --all-features --quiet
	@cd operator && pytest -q --hypothesis-seed=$$RANDOM

.PHONY: garden
garden: setup ## What the front door accepts, every other parser reads the same (2 minutes)
	@$(PY) -m e2e.garden

# --- The cluster ----------------------------------------------------------------------------------------------------

# Elsewhere than on Linux the Dockerfiles compile for themselves.
.PHONY: wheels
wheels: setup ## Build the wheels that the cluster's images hold
	@[[ $$(uname -s) != Linux ]] || ./setup/wheels "$(WHEELS)"

.PHONY: images
images: wheels lab-up ## Build the product's images and load them into the cluster
	@./setup/images "$(WHEELS)"

# Images for several platforms cannot be kept by the engine's own store, so they are pushed as they are built.
.PHONY: release-images
release-images: export TAG ?= $(shell ./setup/check-version)
release-images: ## Build both images for amd64 and arm64 and push them: REGISTRY=… [TAG=…] [PLATFORMS=…]
	@test -n "$(REGISTRY)" || { echo "REGISTRY is not set: make release-images REGISTRY=ghcr.io/you" >&2; exit 2; }
	@docker buildx inspect proofgate >/dev/null 2>&1 || \
	  docker buildx create --name proofgate --driver docker-container >/dev/null
	@docker buildx bake --builder proofgate --push $(if $(METADATA),--metadata-file "$(METADATA)")

.PHONY: lab-up
lab-up: setup ## Start the cluster (CLUSTER=auto|local|kind|current)
	@python3 -m e2e.cluster up

.PHONY: lab-down
lab-down: ## Stop the cluster; leaves nothing running and nothing mounted
	@python3 -m e2e.cluster down

.PHONY: lab-status
lab-status: ## What runs where
	@python3 -m e2e.cluster status

.PHONY: locks
locks: setup ## Resolve the Python lock files anew
	@PATH="$(VENV)/bin:$$PATH" CUSTOM_COMPILE_COMMAND=requirements/compile.sh requirements/compile.sh
