"""Stage profiling: permission to turn it on, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from conftest import ConfigDirectory, attached, started
from faulty_worker import Worker

from proofgate import profiling
from proofgate.config import load


@pytest.fixture
def worker(config_directory: ConfigDirectory) -> Iterator[Worker]:
    with started(load(config_directory.file)) as worker, attached(worker):
        yield worker


@pytest.mark.usefixtures("worker")
def test_the_switch_says_what_it_was() -> None:
    assert profiling.set_enabled(True) is False
    assert profiling.is_enabled()
    assert profiling.set_enabled(False) is True
    assert not profiling.is_enabled()


@pytest.mark.usefixtures("worker")
def test_blocks_nest_and_end_with_an_exception() -> None:
    def fail_inside() -> None:
        with profiling.profile_stages():
            raise KeyError

    with profiling.profile_stages():
        with pytest.raises(KeyError):
            fail_inside()
        assert profiling.is_enabled()
    assert not profiling.is_enabled()


@pytest.mark.usefixtures("worker")
def test_blocks_that_overlap_do_not_switch_each_other_off() -> None:
    first, second = profiling.profile_stages(), profiling.profile_stages()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert profiling.is_enabled()
    second.__exit__(None, None, None)
    assert not profiling.is_enabled()


@pytest.mark.usefixtures("worker")
def test_a_block_leaves_the_switch_alone() -> None:
    with profiling.profile_stages():
        profiling.set_enabled(True)
    assert profiling.is_enabled()
    with profiling.profile_stages():
        profiling.set_enabled(False)
        assert profiling.is_enabled()
        assert not profiling.is_switched_on()
    assert not profiling.is_enabled()


def test_without_a_worker_there_is_nothing_to_profile() -> None:
    assert not profiling.is_enabled()
    with pytest.raises(profiling.NoWorkerError):
        profiling.set_enabled(True)
    with pytest.raises(profiling.NoWorkerError), profiling.profile_stages():
        pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((text, True) for text in ("1", "true", "yes", "on", " ON\n", "True", "yEs")),
        *((text, False) for text in ("", "0", "false", "no", "off", "2", "enabled", "t r u e")),
    ],
)
def test_the_environment_asks_for_it_in_a_few_words(value: str, expected: bool) -> None:
    assert profiling.is_requested({"PROOFGATE_PROFILE_STAGES": value}) is expected


def test_an_environment_that_says_nothing_asks_for_nothing() -> None:
    assert profiling.is_requested({}) is False


def test_a_call_in_a_thread_measures_how_long_its_caller_waits(worker: Worker) -> None:
    assert asyncio.run(profiling.run_in_thread(sum, [1, 2])) == 3
    assert worker.intervals == []
    with profiling.profile_stages():
        with pytest.raises(ZeroDivisionError):
            asyncio.run(profiling.run_in_thread(divmod, 1, 0))
        assert worker.intervals == ["python_resume"]
