"""The policies of a worker. They are loaded before the configuration that names them is applied."""

from __future__ import annotations

import functools
import logging
import time
from typing import Any

from proofgate import _core
from proofgate.config import Config
from proofgate.policy.loading import load_policy
from proofgate.policy.runner import PolicyRunner

log = logging.getLogger("proofgate")

# Seconds that a start or a reload waits for policies to load. After that, requests wait for policies that are
# still loading.
LOAD_SECONDS = 10.0
# Seconds that all policies together have to close when the process ends.
CLOSE_SECONDS = 1.0

#: A policy's name, and a digest that changes with every part of the policy.
PolicyKey = tuple[str, str]


class PolicyRunners:
    """The runners of all policies in the current configuration. One thread at a time may change it."""

    def __init__(self, worker: _core.Worker) -> None:
        self._worker = worker
        self._serving: dict[PolicyKey, PolicyRunner] = {}
        self._prepared: dict[PolicyKey, PolicyRunner] = {}
        self._retired: list[PolicyRunner] = []

    def prepare(self, config: Config, seconds: float = LOAD_SECONDS) -> None:
        """Loads the new policies of a configuration before it is applied.

        Waits at most `seconds`. A policy that cannot be loaded fails only the requests that need it.
        """
        self.discard()
        deadline = time.monotonic() + seconds
        for entry in config.settings.policies:
            key = (entry.name, entry.revision())
            if key not in self._serving:
                load = functools.partial(load_policy, entry, config.source.parent)
                self._prepared[key] = PolicyRunner(entry.name, entry.batch, load)
        for runner in self._prepared.values():
            if not runner.wait_for_first_load(max(deadline - time.monotonic(), 0)):
                log.warning("policy %s: still loading; its requests wait until it is loaded", runner.name)

    def apply_config(self, config: Config) -> None:
        """Serves the queues of the configuration that the worker uses now."""
        wanted = {(entry.name, entry.revision()) for entry in config.settings.policies}
        for key in self._serving.keys() - wanted:
            runner = self._serving.pop(key)
            runner.retire()
            self._retired.append(runner)
        self._retired = [runner for runner in self._retired if not runner.join(0)]
        for key, runner in self._prepared.items():
            runner.start_serving(self._worker.policy_queue(runner.name))
            self._serving[key] = runner
        self._prepared = {}

    def discard(self) -> None:
        """Ends the runners that were prepared for a configuration that was not applied."""
        for runner in self._prepared.values():
            runner.retire(0)
            self._retired.append(runner)
        self._prepared = {}

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Ends all runners, and waits at most `seconds`."""
        self.discard()
        runners = [*self._serving.values(), *self._retired]
        for runner in runners:
            runner.retire(0)
        deadline = time.monotonic() + seconds
        for runner in runners:
            if not runner.join(max(deadline - time.monotonic(), 0)):
                log.warning("policy %s: did not stop in time, and is abandoned", runner.name)

    def status(self) -> list[dict[str, Any]]:
        """The status of each policy for the admin port."""
        return [runner.status() for runner in list(self._serving.values())]
