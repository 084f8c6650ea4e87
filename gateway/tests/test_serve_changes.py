"""Changes while a worker's process runs: configuration, issuers' keys, profiling."""

from __future__ import annotations

import hashlib
import signal

import pytest
from conftest import HTTP, PATIENCE_SECONDS, ConfigDirectory, eventually, refusing_port
from loopback import answer, answering
from signing import key_set
from worker_process import AUTHORIZED, Worker, running

from proofgate.config import load

ISSUER = "https://login.example.com/"


def with_issuer(directory: ConfigDirectory, url: str) -> None:
    directory.append(f"jwt: {{issuers: [{{issuer: '{ISSUER}', audiences: [a], jwksURL: '{url}'}}]}}\n")


def logged(worker: Worker) -> str:
    """Stops the process, and returns its standard error."""
    worker.signal()
    _, error = worker.process.communicate(timeout=PATIENCE_SECONDS)
    assert worker.process.returncode == 0
    return str(error)


def test_a_worker_starts_with_the_file_that_was_accepted_last_and_says_why_it_refuses_the_newest(
    config_directory: ConfigDirectory,
) -> None:
    accepted = config_directory.path / "accepted.yaml"
    accepted.write_bytes(config_directory.file.read_bytes())
    config_directory.append("unknown: field\n")
    environment = {"PROOFGATE_ACCEPTED_CONFIG": str(accepted), "PROOFGATE_TEST_POLL_SECONDS": "0.1"}
    with running(config_directory, env=environment) as worker:
        assert worker.readiness() == (200, "ok")
        assert eventually(lambda: worker.status()["last_reload_error"] is not None)
        status = worker.status()
        assert status["last_reload_error"]["problems"][0]["code"] == "config_unknown_field"
        assert status["last_reload_error"]["problems"][0]["file"] == str(config_directory.file)
        assert status["config_file_digest"] == hashlib.sha256(accepted.read_bytes()).hexdigest()
        # A valid configuration is loaded again.
        config_directory.file.write_bytes(accepted.read_bytes() + b"# mended\n")
        assert eventually(lambda: worker.status()["last_reload_error"] is None)


@pytest.mark.parametrize("before", [None, "unknown: field\n"])
def test_a_worker_without_a_good_file_does_not_start_and_names_the_newest(
    config_directory: ConfigDirectory, before: str | None
) -> None:
    accepted = config_directory.path / "accepted.yaml"
    if before is not None:
        accepted.write_text(before)
    config_directory.append("other: field\n")
    with running(config_directory, "--accepted", str(accepted)) as worker:
        assert worker.exit_code() == 2
        assert worker.process.stderr is not None
        told = worker.process.stderr.read()
        assert f"{config_directory.file}:" in told
        assert str(accepted) not in told


def test_sighup_applies_a_changed_configuration(config_directory: ConfigDirectory) -> None:
    with running(config_directory, "--shard", "4") as worker:
        before = worker.status()
        assert before["config_digest"] == load(config_directory.file).digest()
        config_directory.append("cors: {allowedOrigins: ['*']}\n")
        worker.signal(signal.SIGHUP)
        digest = load(config_directory.file).digest()
        assert eventually(lambda: worker.status()["config_digest"] == digest)
        assert worker.readiness() == (200, "ok")
        assert f"configuration applied: digest {digest}" in logged(worker)


def test_a_changed_file_is_applied_without_being_asked(config_directory: ConfigDirectory) -> None:
    with running(config_directory, env={"PROOFGATE_TEST_POLL_SECONDS": "0.02"}) as worker:
        config_directory.write("globex-keys", "# every key is revoked\n")
        digest = load(config_directory.file).digest()
        assert eventually(lambda: worker.status()["config_digest"] == digest)


def test_a_bad_configuration_is_logged_with_its_lines_and_the_worker_serves_on(
    config_directory: ConfigDirectory,
) -> None:
    with running(config_directory) as worker:
        digest = worker.status()["config_digest"]
        config_directory.replace("name: fast", "nam: fast")
        worker.signal(signal.SIGHUP)
        assert eventually(lambda: worker.status()["last_reload_error"] is not None)
        assert worker.status()["last_reload_error"]["problems"][0]["line"] is not None
        assert worker.status()["config_digest"] == digest
        assert worker.readiness() == (200, "ok")
        text = f"{config_directory.file}:20: models[1].nam: there is no such field: did you mean name?"
        assert text in logged(worker)


def test_a_reload_over_http_answers_when_it_is_done(config_directory: ConfigDirectory) -> None:
    with running(config_directory) as worker:

        def reload() -> tuple[int, str]:
            response = HTTP.post(f"{worker.admin}/reload", headers=AUTHORIZED)
            return response.status_code, response.json()["result"]

        assert reload() == (200, "unchanged")
        config_directory.append("cors: {allowedOrigins: ['*']}\n")
        assert reload() == (200, "applied")
        assert worker.status()["config_digest"] == load(config_directory.file).digest()
        config_directory.replace("listen: 127.0.0.1:0", "listen: 127.0.0.2:0")
        assert reload() == (409, "refused")


def test_a_rotated_admin_token_opens_and_the_old_one_does_not(config_directory: ConfigDirectory) -> None:
    with running(config_directory) as worker:
        config_directory.write("admin-token", "fedcba9876543210-new")
        assert HTTP.post(f"{worker.admin}/reload", headers=AUTHORIZED).json()["result"] == "applied"
        assert HTTP.post(f"{worker.admin}/reload", headers=AUTHORIZED).status_code == 403
        new = {"Authorization": "Bearer fedcba9876543210-new"}
        assert HTTP.post(f"{worker.admin}/reload", headers=new).status_code == 200


def test_a_drain_takes_as_long_as_the_configuration_in_force_allows(
    config_directory: ConfigDirectory,
) -> None:
    with running(config_directory, env={"PROOFGATE_TEST_SETTLE_SECONDS": "0.1"}) as worker:
        config_directory.replace("drainSeconds: 20", "drainSeconds: 0.1")
        assert HTTP.post(f"{worker.admin}/reload", headers=AUTHORIZED).json()["result"] == "applied"
        (worker.ledger / "in-flight").touch()
        worker.signal()
        assert worker.exit_code() == 1


def test_a_worker_that_says_ready_knows_the_keys_of_its_issuers(config_directory: ConfigDirectory) -> None:
    with answering(answer(key_set("a").encode())) as url:
        with_issuer(config_directory, url)
        with running(config_directory) as worker:
            (status,) = worker.status()["key_sets"]
            assert (status["issuer"], status["keys"], status["error"]) == (ISSUER, 1, None)


def test_a_worker_starts_without_the_keys_of_an_issuer_and_says_so(config_directory: ConfigDirectory) -> None:
    with refusing_port() as port:
        with_issuer(config_directory, f"http://127.0.0.1:{port}/jwks")
        with running(config_directory) as worker:
            assert worker.readiness() == (200, "ok")
            (status,) = worker.status()["key_sets"]
            assert (status["keys"], status["error"]) == (None, "unreachable")
            told = logged(worker)
    assert "cannot be fetched: not reachable: Connection refused; its tokens are refused" in told


def test_a_key_set_in_a_file_is_known_at_the_start_and_after_a_change(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.write("jwks.json", key_set("a"))
    config_directory.append(
        f"jwt: {{issuers: [{{issuer: '{ISSUER}', audiences: [a], jwksFile: jwks.json}}]}}\n"
    )
    with running(config_directory) as worker:
        assert worker.status()["key_sets"][0]["keys"] == 1
        config_directory.write("jwks.json", key_set("a", "b"))
        assert HTTP.post(f"{worker.admin}/reload", headers=AUTHORIZED).json()["result"] == "applied"
        assert worker.status()["key_sets"][0]["keys"] == 2


@pytest.mark.parametrize(
    ("value", "configured", "expected"), [(" Yes ", False, True), ("off", True, True), ("off", False, False)]
)
def test_profiling_is_on_from_the_start_when_anybody_asks_for_it(
    config_directory: ConfigDirectory, value: str, configured: bool, expected: bool
) -> None:
    if configured:
        config_directory.append("profiling: {stages: true}\n")
    with running(config_directory, env={"PROOFGATE_PROFILE_STAGES": value}) as worker:
        assert HTTP.get(f"{worker.admin}/profiling").json() == {"stages": expected}
        assert f"stage profiling is {'on' if expected else 'off'} (PROOFGATE_PROFILE_STAGES: " in logged(
            worker
        )


def test_what_the_environment_asked_for_survives_a_reload(config_directory: ConfigDirectory) -> None:
    with running(config_directory, env={"PROOFGATE_PROFILE_STAGES": "1"}) as worker:
        config_directory.append("cors: {allowedOrigins: ['*']}\n")
        assert HTTP.post(f"{worker.admin}/reload", headers=AUTHORIZED).json()["result"] == "applied"
        assert HTTP.get(f"{worker.admin}/profiling").json() == {"stages": True}
