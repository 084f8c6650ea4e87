"""The systems that are compared, in the order in which tables show them."""

from __future__ import annotations

from functools import partial

from proofgate import _core

from bench import haproxy, proofgate_worker
from bench.load import tools, upstream
from bench.processes import GATEWAY_CORE
from bench.rivals import airblackbox, envoy, litellm, portkey, tensorzero, vllm_router
from bench.system import Candidate

NULL = "null-server"
PRODUCT = "proofgate"
SPINNING = "proofgate-spinning"
NO_RULES = "proofgate-no-rules"
#: The worker of an earlier revision.
BEFORE = "proofgate-before"
PLAIN_PROXY = "haproxy"
#: The attacks that a worker with all features on must refuse.
PROOFGATE_REFUSES = frozenset({"malformed", "bad_key", "blocked_prompt"})


def _product_version() -> str:
    return _core.__version__


CANDIDATES = (
    Candidate(
        NULL,
        "the upstream, asked directly: the limit of the load generator",
        tools.stream_load_version,
        lambda folder, _upstream: upstream.run(tools.stream_load(), folder, GATEWAY_CORE, paced=False),
        refuses=frozenset(),
    ),
    Candidate(PLAIN_PROXY, "HAProxy, a plain proxy", haproxy.version, haproxy.plain_proxy),
    Candidate(
        PRODUCT,
        "one worker, everything on",
        _product_version,
        proofgate_worker.start,
        refuses=PROOFGATE_REFUSES,
    ),
    Candidate("envoy", "Envoy, a plain proxy: the router filter only", envoy.prepare, envoy.start),
    Candidate("vllm-router", "one worker behind it, no keys", vllm_router.prepare, vllm_router.start),
    Candidate("tensorzero", "observability off, no keys", tensorzero.prepare, tensorzero.start),
    Candidate("airblackbox", "its audit chain on", airblackbox.prepare, airblackbox.start),
    Candidate("portkey", "forwarding only", portkey.prepare, portkey.start, slow=True),
    Candidate(
        "litellm",
        "one worker, a master key, no database",
        litellm.prepare,
        litellm.start,
        slow=True,
        refuses=frozenset({"malformed", "bad_key"}),
    ),
    Candidate(
        SPINNING,
        "proofgate with a Python thread that computes without rest, at the lowest priority",
        _product_version,
        partial(proofgate_worker.start, spin=True),
    ),
    Candidate(
        NO_RULES,
        "proofgate without rules: what is left is reading, limits and the ledger",
        _product_version,
        partial(proofgate_worker.start, change=proofgate_worker.without_rules),
    ),
)
