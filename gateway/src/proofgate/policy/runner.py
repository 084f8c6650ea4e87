"""The thread of one policy: takes batches from its queue, evaluates them with the policy, and returns
verdicts.

The policy's code runs only in this thread. A policy that sleeps, loops or raises blocks only this thread, and
the data plane abandons its requests at their deadline.
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
# Seconds to wait for a batch, which is also the maximum delay before a thread notices that it must end.
TAKE_TIMEOUT_SECONDS = 0.5
# Seconds for which exchanges of an earlier configuration may still use its policies.
RETIRE_SECONDS = 60.0
# Seconds before a policy that could not be loaded is tried again.
RETRY_SECONDS = 10.0
# Seconds between two log lines about exceptions, because a failing policy raises for many requests.
ERROR_LOG_INTERVAL_SECONDS = 10.0


class PolicyRunner:
    """Runs one policy in a separate thread, in which `load` creates it."""

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
        """Waits until the policy was loaded or failed to load. Returns False after a timeout."""
        return self._tried.wait(seconds)

    def start_serving(self, queue: _core.PolicyQueue) -> None:
        """Starts to serve a queue."""
        self._queue = queue
        self._begun.set()

    def retire(self, seconds: float = RETIRE_SECONDS) -> None:
        """Ends the runner after a time, or earlier if no request can arrive any more."""
        self._ends_at = time.monotonic() + seconds
        self._begun.set()

    def join(self, seconds: float) -> bool:
        """Waits until the thread has ended. Returns False after a timeout, because a policy cannot be
        interrupted."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def status(self) -> dict[str, Any]:
        """The runner's status, without any text of the policy."""
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
                # Requests that still wait are released.
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
            # Free the texts now, and not only when the next batch arrives.
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
        # One request must not cause the failure of the whole batch.
        return [
            self._evaluate_single(self._policy, item, request)
            for item, request in zip(items, requests, strict=True)
        ]

    def _evaluate_single(self, policy: Policy, item: _core.PolicyItem, request: PolicyRequest) -> CoreVerdict:
        # If a policy raises after the deadline, its requests are not tried again.
        verdicts = self._evaluate(policy, [request]) if item.is_awaited() else None
        return failed_verdict("exception") if verdicts is None else verdicts[0]

    def _evaluate(self, policy: Policy, requests: list[PolicyRequest]) -> list[CoreVerdict] | None:
        with self._log_failures("evaluating"):
            return core_verdicts(policy.evaluate(requests), len(requests))
        return None

    @contextlib.contextmanager
    def _log_failures(self, doing: str) -> Any:
        """Suppresses and logs all exceptions of a policy, including SystemExit and similar, only with type
        and location.

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
