# Proofgate: what there is to do here. `make` alone lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Everything that is built or fetched stays outside the checkout, so that a second run is quick.
export PROOFGATE_CACHE := $(shell ./setup/cache-folder)
$(if $(PROOFGATE_CACHE),,$(error there is no folder for what is built))
export CARGO_TARGET_DIR ?= $(PROOFGATE_CACHE)/target
VENV := $(shell PROOFGATE_CACHE="$(PROOFGATE_CACHE)" ./setup/environment --path dev)
PY := $(VENV)/bin/python
export PROOFGATE_PYTHON := $(PY)
WHEELS := $(PROOFGATE_CACHE)/wheels
CARGO := cargo --locked
RUST_MANIFEST := rust-core/Cargo.toml
# setup/bin has a cargo that shares the target folder between checkouts, by content.
export PATH := $(CURDIR)/setup/bin:$(VENV)/bin:$(PATH)
# Checkouts share the environment: each works with its own packages.
export PYTHONPATH := $(CURDIR)/gateway/src:$(CURDIR)/operator/src:$(CURDIR)/schema/src
# What Python and mypy have compiled holds for a fresh clone as well.
export PYTHONPYCACHEPREFIX ?= $(PROOFGATE_CACHE)/pycache
unexport PYTHONDONTWRITEBYTECODE
MYPY_CACHE := $(PROOFGATE_CACHE)/mypy
# What a release build is compiled with: the profile of a worker under load.
RELEASE := RUSTFLAGS="$$(./setup/release-flags)"
# Of the code that belongs to no package.
PYTHON_FOLDERS := schema gateway operator charts e2e bench setup examples suites
# Steps of the suites run side by side: there everything is built beforehand, once.
SETUP := $(if $(PROOFGATE_SUITES),,setup)
DEVELOP := $(if $(PROOFGATE_SUITES),,develop)
# Builds what a suite needs, runs it, repeats once what failed, and says where the time went: suites/README.md.
RUN := @python3 -m suites

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z][a-z0-9-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The packages stay outside the checkout, in a folder that is named by the digest of their lock file.
NODE_CLIENTS := $(PROOFGATE_CACHE)/node-clients-$(shell sha256sum e2e/worker/clients/package-lock.json | cut -c1-16)
export PROOFGATE_NODE_CLIENTS := $(NODE_CLIENTS)
AGENTS := $(PROOFGATE_CACHE)/agents-$(shell sha256sum e2e/agents/package-lock.json | cut -c1-16)
export PROOFGATE_AGENTS := $(AGENTS)
AGENTS_SDK := $(PROOFGATE_CACHE)/agents-sdk-$(shell sha256sum e2e/agents/sdk/package-lock.json | cut -c1-16)
export PROOFGATE_AGENTS_SDK := $(AGENTS_SDK)
# Each lock file of Python is an environment of its own.
AGENTS_PYTHON = $(PROOFGATE_CACHE)/agents-$(1)-$(shell sha256sum e2e/agents/requirements/$(1).txt | cut -c1-16)
export PROOFGATE_AGENTS_AGENTS := $(call AGENTS_PYTHON,agents)
export PROOFGATE_AGENTS_LIBRARIES := $(call AGENTS_PYTHON,libraries)
export PROOFGATE_AGENTS_AIDER := $(call AGENTS_PYTHON,aider)
AGENTS_READY := $(addsuffix /.ready,$(AGENTS) $(AGENTS_SDK) \
  $(PROOFGATE_AGENTS_AGENTS) $(PROOFGATE_AGENTS_LIBRARIES) $(PROOFGATE_AGENTS_AIDER))
AGENTS_RESULTS := .state/agents.json

##@ Try it

.PHONY: demo
demo: export PURPOSE := cluster
demo: develop images ## A real cluster, a real deployment, a proved answer
	@"$(PY)" -m e2e.demo

.PHONY: run
run: ## Everything on this machine until Ctrl-C: gateway, auditor, explorer, a simulated provider and traffic
	@./setup/develop laptop
	@echo "== simulated answers; for a provider's: export OPENAI_API_KEY, then $$(./setup/environment --path gateway)/bin/proofgate quickstart --start"
	@"$$(./setup/environment --path gateway)/bin/proofgate" quickstart --start --demo --traffic --directory $(or $(PROOFGATE_RUN),.state/run)

.PHONY: demo-cut
demo-cut: ## Cut the newest records off a hash chain and off our ledger, and see which check finds it (no cluster)
	@./setup/develop gateway
	@"$$(./setup/environment --path gateway)/bin/python" examples/attacks/cut_the_tail.py

.PHONY: demo-swap
demo-swap: develop ## A model is swapped behind its provider's name, and the gateway notices (10 seconds, no cluster)
	@"$(PY)" -m e2e.swap

##@ Every day

.PHONY: test-quick
test-quick: ## Format, lint, types, unit tests of what changed [since BASE], one worker end to end (up to 5 minutes)
	$(RUN) quick $(if $(BASE),--base "$(BASE)")

.PHONY: check
check: ## Format, lint, types, all unit tests, generated files
	$(RUN) check

.PHONY: test
test: ## Everything: checks, unit tests, and the end-to-end tests on a real cluster (25 minutes, 55 the first time)
	$(RUN) all $(if $(STRESSED),--stressed)

.PHONY: generate
generate: develop ## Write every generated file: CRDs, references, tables of the docs, golden manifests
	@"$(PY)" setup/generate
	@cd operator && PROOFGATE_UPDATE_GOLDEN=1 pytest -q -n0 tests/test_manifests.py

.PHONY: fmt
fmt: setup ## Format everything
	@cargo fmt --all --manifest-path $(RUST_MANIFEST)
	@ruff format $(PYTHON_FOLDERS) && ruff check --fix-only --quiet $(PYTHON_FOLDERS)

.PHONY: docs
docs: ## Build the documentation as a site in .state/site; a broken link is an error
	@./setup/environment docs
	@NO_MKDOCS_2_WARNING=1 "$$(./setup/environment --path docs)/bin/mkdocs" --quiet build --clean
	@echo "the site is in .state/site; python3 -m http.server --directory .state/site shows it"

.PHONY: check-words
check-words: ## Words in changed lines that have a plain standard term: [BASE=revision, ALL=yes]
	@python3 setup/check-words $(if $(ALL),--all) $(if $(BASE),--base "$(BASE)")

.PHONY: setup
setup: ## Install what is missing: toolchains' components and the Python environment
	@./setup/toolchain $(PURPOSE) && ./setup/environment dev

.PHONY: develop
develop: ## Build the worker (release) and put both packages into the environment, editable
	@./setup/develop $(PURPOSE)

##@ Suites

.PHONY: test-worker
test-worker: ## The worker end to end on loopback, without a cluster
	$(RUN) run worker

.PHONY: test-clients
test-clients: ## Every official client, of Python and Node, against a provider of every type
	$(RUN) run clients

.PHONY: test-haproxy-lts
test-haproxy-lts: ## The tests of HAProxy again, with the current long-term release of it
	$(RUN) run haproxy-lts

.PHONY: test-operator
test-operator: ## The operator's process and the chart on a real control plane, without nodes
	$(RUN) run control-plane

.PHONY: test-agents
test-agents: develop $(AGENTS_READY) ## Coding agents and libraries, unmodified, before providers that refuse (15 minutes; installs 2.5 GB once)
	@rm -f $(AGENTS_RESULTS)
	@PROOFGATE_AGENTS_RESULTS="$(CURDIR)/$(AGENTS_RESULTS)" pytest -q -n2 e2e/agents
	@"$(PY)" -m e2e.agents.pages --check $(AGENTS_RESULTS)

.PHONY: agents-docs
agents-docs: setup ## Write what the last `make test-agents` showed into docs/clients
	@"$(PY)" -m e2e.agents.pages $(AGENTS_RESULTS)

.PHONY: test-e2e
test-e2e: ## The end-to-end tests on a real cluster; leaves nothing running
	$(RUN) run cluster

.PHONY: test-unkind
test-unkind: images ## What nobody may notice, on clusters that are unkind: [PROFILES="names permissions api"] (8 minutes each)
	@trap '"$(PY)" -m e2e.cluster down' EXIT; for profile in $(or $(PROFILES),names permissions api); do \
	  echo "== profile $$profile"; \
	  PROOFGATE_E2E_PROFILE=$$profile PROOFGATE_E2E_MAY_CLEAR=yes "$(PY)" -m pytest -q -n0 \
	    e2e/tests/test_nobody_notices.py e2e/tests/test_nobody_notices_the_platform.py || exit 1; \
	done

.PHONY: garden
garden: $(SETUP) ## What the front door accepts, every other parser reads the same
	@"$(PY)" -m e2e.garden

.PHONY: hunt-flakes
hunt-flakes: ## Look for tests that chance decides: N (20) rounds in random orders on a busy machine [SUITES, SHARE, SEED]
	$(RUN) hunt --rounds $(or $(N),20) $(if $(SHARE),--share $(SHARE)) $(if $(SEED),--seed $(SEED)) $(SUITES)

.PHONY: mutations
mutations: setup ## Break the product in ten places, and see that a test notices each
	@./setup/mutations run

.PHONY: test-kills
test-kills: develop ## A worker killed under load KILLS (200) times, and as often beside faults: no record of a completed answer is lost (20 minutes)
	@PROOFGATE_KILLS=$(or $(KILLS),200) pytest -q e2e/worker/test_endings.py e2e/worker/test_kills_beside_faults.py -k kill

# The operator's own tests of what an API server lets in; etcd, kubectl and helm are those of the cluster.
.PHONY: check-crd
check-crd: MINORS ?= 1.30 1.31 1.32 1.33 1.34 1.35 1.36
check-crd: develop ## The CRD and the examples on an API server of each of MINORS (1.30 to 1.36; 4 minutes each to build)
	@for minor in $(MINORS); do \
	  echo "== CRD: Kubernetes $$minor"; \
	  tools=$$(python3 -m e2e.cluster tools kube-apiserver-$$minor kubernetes etcd helm | paste -sd:); \
	  (cd operator && PROOFGATE_TOOLS_PATH="$$tools" pytest -q -m controlplane tests/controlplane/test_admission.py); \
	done

.PHONY: fuzz
fuzz: ## Fuzz FUZZ_TARGETS (default: all) for FUZZ_SECONDS (60) each, or until FUZZ_RUNS executions add up
	@./setup/fuzz

.PHONY: properties
properties: setup ## Property tests with PROPERTY_CASES (2000) random cases each
	@PROPTEST_CASES=$(or $(PROPERTY_CASES),2000) $(CARGO) test --manifest-path $(RUST_MANIFEST) --workspace --exclude proofgate-pybind --all-features --quiet
	@cd operator && PROOFGATE_PROPERTY_FACTOR=3 pytest -q --hypothesis-seed=$$RANDOM

##@ Parts of a check

.PHONY: check-format
check-format: $(SETUP) ## Whether all code is formatted, and what ruff finds
	@cargo fmt --all --check --manifest-path $(RUST_MANIFEST)
	@cargo fmt --check --manifest-path bench/stream_load/Cargo.toml
	@ruff format --check --quiet $(PYTHON_FOLDERS) && ruff check --quiet $(PYTHON_FOLDERS)

.PHONY: check-clippy
check-clippy: $(SETUP) ## What clippy finds
	@$(CARGO) clippy --manifest-path $(RUST_MANIFEST) --workspace --all-targets --all-features --quiet -- -D warnings
	@$(CARGO) clippy --manifest-path bench/stream_load/Cargo.toml --all-targets --quiet -- -D warnings

.PHONY: check-types
check-types: $(DEVELOP) ## What mypy finds, and imports that point the wrong way
	@cd schema && MYPY_CACHE_DIR="$(MYPY_CACHE)/schema" mypy
	@cd gateway && MYPY_CACHE_DIR="$(MYPY_CACHE)/gateway" mypy
	@cd operator && MYPY_CACHE_DIR="$(MYPY_CACHE)/operator" mypy && lint-imports --no-cache
	@MYPY_CACHE_DIR="$(MYPY_CACHE)/root" mypy --strict charts e2e bench setup examples suites

.PHONY: check-repo
check-repo: $(DEVELOP) ## Licences, layout of the release, generated files, the independent verifier
	@./setup/check-repository "$(CARGO_TARGET_DIR)/release/core.map"

##@ Benchmarks

.PHONY: bench
bench: develop benchmark-tools ## The data plane beside other gateways (40 minutes, 55 the first time; QUICK=1: 6); writes bench/results/data-plane.json; [BEFORE=revision]: today's worker beside an earlier one's
	@"$(PY)" -m bench.data_plane $(if $(QUICK),--quick) $(if $(BEFORE),--before "$(BEFORE)" --only proofgate)

.PHONY: profile
profile: setup benchmark-tools ## Learn from a worker under load what release builds are optimised for (8 minutes)
	@./setup/profile

.PHONY: bench-operator
bench-operator: develop images ## The operator: what it costs, and what a load notices; writes bench/results/operator.json
	@trap '$(PY) -m e2e.cluster down' EXIT; "$(PY)" -m e2e.cluster up && \
	  PROOFGATE_TOOLS_PATH="$$("$(PY)" -m e2e.cluster tools kubernetes etcd helm | paste -sd:)" "$(PY)" -m bench.operator

.PHONY: bench-ledger
bench-ledger: develop ## The ledger alone: restarts, proofs and checks of up to 10^8 records (an hour, 60 GB; MOST=7: 10^7, 6 GB); writes bench/results/ledger.json
	@$(RELEASE) && export RUSTFLAGS && "$(PY)" -m bench.ledger $(if $(MOST),--most $(MOST))

.PHONY: bench-neighbour
bench-neighbour: develop benchmark-tools ## What a tenant notices of another one's prompts of 10 MiB (6 minutes); writes bench/results/neighbour.json
	@"$(PY)" -m bench.neighbour

.PHONY: bench-policies
bench-policies: develop benchmark-tools ## What policies in Python cost a request, and one that asks for none (3 minutes); writes bench/results/python-policies.json
	@"$(PY)" -m bench.python_policies && "$(PY)" -m bench.policy_deadline

.PHONY: bench-evidence
bench-evidence: develop benchmark-tools ## What an auditor verifies in a second; what a worker notices of auditor, analysis, stored payloads: [BEFORE=revision] (4 minutes); writes bench/results/evidence.json
	@"$(PY)" -m bench.evidence $(if $(BEFORE),--before "$(BEFORE)")

.PHONY: bench-index
bench-index: develop ## An index of 10^8 exchanges: making it, and asking it (an hour, 20 GB); writes bench/results/index.json
	@"$(PY)" -m bench.index

.PHONY: bench-anthropic
bench-anthropic: develop benchmark-tools ## OpenAI's client before Anthropic's upstream, beside gateways that translate (8 minutes); writes bench/results/anthropic-upstream.json
	@"$(PY)" -m bench.anthropic_upstream

.PHONY: bench-scoring
bench-scoring: develop ## The policy engine alone: speed, agreement with a plain reference, precision and recall
	@"$(PY)" -m bench.scoring

.PHONY: bench-keys
bench-keys: develop benchmark-tools ## 10,000 tenants with 100,000 keys, and one more (3 minutes); writes bench/results/keys.json
	@"$(PY)" -m bench.keys

.PHONY: benchmark-tools
benchmark-tools:
	@./setup/toolchain benchmarks

##@ The cluster

.PHONY: lab-up
lab-up: $(SETUP) ## Start the cluster (CLUSTER=auto|local|kind|current)
	@python3 -m e2e.cluster up

.PHONY: lab-down
lab-down: ## Stop the cluster; leaves nothing running and nothing mounted
	@python3 -m e2e.cluster down

.PHONY: lab-status
lab-status: ## What runs where
	@python3 -m e2e.cluster status

# Elsewhere than on Linux the Dockerfiles compile for themselves.
.PHONY: wheels
wheels: $(SETUP) ## Build the wheels that the cluster's images hold
	@[[ $$(uname -s) != Linux ]] || ./setup/wheels "$(WHEELS)"

.PHONY: images
images: wheels lab-up ## Build the product's images and load them into the cluster
	@./setup/images "$(WHEELS)"

.PHONY: cluster-binaries
cluster-binaries: $(SETUP) ## Build the cluster's binaries from source (10 minutes, once)
	@python3 -m e2e.cluster tools kubernetes etcd containerd coredns pause helm >/dev/null

.PHONY: promtool
promtool: $(SETUP) ## Build what reads the chart's alerts (4 minutes, once)
	@python3 -m e2e.cluster tools promtool >/dev/null

.PHONY: go-binaries
go-binaries: $(SETUP) ## Build what the worker's tests run beside it: a verifier, a witness, an object store (5 minutes, once)
	@"$(PY)" -m e2e.go_binaries

.PHONY: node-clients
node-clients: $(SETUP) $(NODE_CLIENTS)/.ready ## Install the official clients of Node

.PHONY: agents-sdk
agents-sdk: $(SETUP) $(AGENTS_SDK)/.ready ## Install the clients of `make test-agents` that `make test` runs as well

$(NODE_CLIENTS)/.ready: FROM = e2e/worker/clients
$(AGENTS)/.ready: FROM = e2e/agents
$(AGENTS_SDK)/.ready: FROM = e2e/agents/sdk
# Two agents put their program in its place by a script; no other package's script runs.
$(AGENTS)/.ready: SCRIPTS = @anthropic-ai/claude-code opencode-ai
$(NODE_CLIENTS)/.ready $(AGENTS)/.ready $(AGENTS_SDK)/.ready:
	@rm -rf "$(@D)" && mkdir -p "$(@D)" && cp $(FROM)/package.json $(FROM)/package-lock.json "$(@D)"
	@cd "$(@D)" && npm ci --ignore-scripts --no-audit --no-fund --silent
	@$(if $(SCRIPTS),cd "$(@D)" && npm rebuild --silent $(SCRIPTS))
	@touch $@

$(PROOFGATE_AGENTS_AGENTS)/.ready: LOCK = agents
$(PROOFGATE_AGENTS_LIBRARIES)/.ready: LOCK = libraries
$(PROOFGATE_AGENTS_AIDER)/.ready: LOCK = aider
$(PROOFGATE_AGENTS_AGENTS)/.ready $(PROOFGATE_AGENTS_LIBRARIES)/.ready $(PROOFGATE_AGENTS_AIDER)/.ready:
	@rm -rf "$(@D)" && python3 -m venv "$(@D)"
	@"$(@D)/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r e2e/agents/requirements/$(LOCK).txt
	@touch $@

##@ Releases

# Where a Docker engine answers, nothing but Python and Go is needed: the Dockerfiles have the compiler.
.PHONY: release
release: ## Everything that is installed of VERSION, into dist: [PLATFORMS=… REGISTRY=… SIGN=key.pem|keyless BUILDER=docker|local PUBLISH=yes]
	@test -n "$(VERSION)" || { echo "VERSION is not set: make release VERSION=$$(./setup/check-version)" >&2; exit 2; }
	@./setup/environment dev
	@"$(PY)" -m setup.release build --version "$(VERSION)" $(if $(PLATFORMS),--platforms "$(PLATFORMS)") \
	  $(if $(REGISTRY),--registry "$(REGISTRY)") $(if $(SIGN),--sign "$(SIGN)") $(if $(BUILDER),--builder "$(BUILDER)")
	@$(if $(PUBLISH),"$(PY)" -m setup.release publish --registry "$(REGISTRY)" $(if $(GITHUB_ACTIONS),--github))

.PHONY: registry
registry: $(SETUP) ## Build a registry, and what copies a release into it (2 minutes, once)
	@python3 -m e2e.cluster tools registry oras >/dev/null

.PHONY: release-tools
release-tools: registry ## Build cosign as well, which verifies a release there (5 minutes, once)
	@python3 -m e2e.cluster tools cosign helm >/dev/null

.PHONY: test-release
test-release: ## A release as a stranger gets it: installed, pulled from a registry, verified
	$(RUN) run release

# Images for several platforms cannot be kept by the engine's own store, so they are pushed as they are built.
.PHONY: release-images
release-images: export TAG ?= $(shell ./setup/check-version)
release-images: ## Build both images for amd64 and arm64 and push them: REGISTRY=… [TAG=…] [PLATFORMS=…]
	@test -n "$(REGISTRY)" || { echo "REGISTRY is not set: make release-images REGISTRY=ghcr.io/you" >&2; exit 2; }
	@docker buildx inspect proofgate >/dev/null 2>&1 || \
	  docker buildx create --name proofgate --driver docker-container >/dev/null
	@docker buildx bake --builder proofgate --push $(if $(METADATA),--metadata-file "$(METADATA)")

.PHONY: locks
locks: setup ## Resolve the Python lock files anew
	@PATH="$(VENV)/bin:$$PATH" CUSTOM_COMPILE_COMMAND=requirements/compile.sh requirements/compile.sh
