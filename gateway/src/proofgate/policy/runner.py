"""The thread of one policy: takes batches out of its queue, has the policy evaluate them, returns verdicts.

Whatever the policy does, it does here: one that sleeps, spins or raises keeps its own thread busy, and the
data plane gives its requests up at their deadline.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from proofgate import _core
from proofgate.policy.interface import Policy, PolicyRequest, PolicyText
from proofgate.policy.loading import close_policy
from proofgate.policy.verdicts import CoreVerdict, core_verdicts, failed_verdict

log = logging.getLogger("proofgate")

LOWEST_PRIORITY = 19
# How long a take waits, and with that how late a thread sees that it is to end.
TAKE_TIMEOUT_SECONDS = 0.5
# Exchanges that began under an earlier configuration may ask its policies for so long.
RETIRE_SECONDS = 60.0
# A policy that could not be loaded is tried again.
RETRY_SECONDS = 10.0
# A policy that raises does so for many requests: the log has one line in this time.
ERROR_LOG_INTERVAL_SECONDS = 10.0


class PolicyRunner:
    """Runs one policy in a thread of its own. `load` makes it, there."""

    def __init__(self, name: str, batch: int, load: Callable[[], Policy]) -> None:
        self.name = name
        self._batch = batch
        self._load = load
        self._policy: Policy | None = None
        self._error: str | None = None
        self._tried = threading.Event()
        self._queue: _core.PolicyQueue | None = None
        self._begun = threading.Event()
        self._ends_at: float | None = None
        self._logged_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name=f"policy-{name}", daemon=True)
        self._thread.start()

    def wait_for_first_load(self, seconds: float) -> bool:
        """Waits until the policy was loaded, or could not be; False when that takes longer."""
        return self._tried.wait(seconds)

    def start_serving(self, queue: _core.PolicyQueue) -> None:
        """Serves a queue from now on."""
        self._queue = queue
        self._begun.set()

    def retire(self, seconds: float = RETIRE_SECONDS) -> None:
        """Ends after so long, or as soon as nobody can ask any more."""
        self._ends_at = time.monotonic() + seconds
        self._begun.set()

    def join(self, seconds: float) -> bool:
        """Waits until the thread has ended; False when it does not: a policy cannot be interrupted."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def status(self) -> dict[str, Any]:
        """What is to be seen of it; never what a policy said."""
        state = "starting"
        if not self._thread.is_alive():
            state = "ended"
        elif self._policy is not None:
            state = "running"
        elif self._error is not None:
            state = "not_loaded"
        return {"name": self.name, "state": state, "error": self._error}

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        try:
            self._try_to_load()
            self._begun.wait()
            if self._queue is not None:
                self._serve(self._queue)
        finally:
            if self._queue is not None:
                # Whoever still waits is not kept waiting.
                self._queue.close()
            if self._policy is not None:
                with self._log_failures("closing"):
                    close_policy(self._policy)

    def _try_to_load(self) -> None:
        self._error = None
        with self._log_failures("loading"):
            self._policy = self._load()
            log.info("policy %s: loaded", self.name)
        self._tried.set()

    def _serve(self, queue: _core.PolicyQueue) -> None:
        tried_at = time.monotonic()
        while self._ends_at is None or time.monotonic() < self._ends_at:
            if self._policy is None and time.monotonic() - tried_at >= RETRY_SECONDS:
                self._try_to_load()
                tried_at = time.monotonic()
            items = queue.take_policy_batch(self._batch, TAKE_TIMEOUT_SECONDS)
            if items is None:
                return
            if items:
                queue.return_verdicts(list(zip(items, self._evaluate_batch(items), strict=True)))
            # Texts that nobody needs any more must not wait for the next ones.
            del items

    def _evaluate_batch(self, items: Sequence[_core.PolicyItem]) -> list[CoreVerdict]:
        if self._policy is None:
            return [failed_verdict("not_loaded")] * len(items)
        requests = [_request(item) for item in items]
        verdicts = self._evaluate(self._policy, requests)
        if verdicts is not None:
            return verdicts
        if len(requests) == 1:
            return [failed_verdict("exception")]
        # One request must not be the failure of all that came with it.
        return [
            self._evaluate_single(self._policy, item, request)
            for item, request in zip(items, requests, strict=True)
        ]

    def _evaluate_single(self, policy: Policy, item: _core.PolicyItem, request: PolicyRequest) -> CoreVerdict:
        # A policy that raises after its deadline must not have to do so once more for each request.
        verdicts = self._evaluate(policy, [request]) if item.is_awaited() else None
        return failed_verdict("exception") if verdicts is None else verdicts[0]

    def _evaluate(self, policy: Policy, requests: list[PolicyRequest]) -> list[CoreVerdict] | None:
        with self._log_failures("evaluating"):
            return core_verdicts(policy.evaluate(requests), len(requests))
        return None

    @contextlib.contextmanager
    def _log_failures(self, doing: str) -> Any:
        """Swallows and logs what a policy raises, also what ends other threads: by its type and place alone.

        The message of an exception may quote a prompt.
        """
        try:
            yield
        except BaseException as error:
            self._error = type(error).__name__
            now = time.monotonic()
            if now - self._logged_at >= ERROR_LOG_INTERVAL_SECONDS:
                self._logged_at = now
                log.error(  # noqa: TRY400 - the traceback could quote the prompt
                    "policy %s: %s raised %s at %s", self.name, doing, self._error, _error_location(error)
                )


def _error_location(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown line"


def _request(item: _core.PolicyItem) -> PolicyRequest:
    texts = tuple(PolicyText(*text) for text in item.texts)
    return PolicyRequest(item.tenant, item.model, item.endpoint, texts)
