"""The admin port over real HTTP: responses for probes, scrapers and operators, and refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from conftest import HTTP, PATIENCE_SECONDS, ConfigDirectory, Controls, attached, client_of, serving, started
from failures import failure
from faulty_worker import Worker

from proofgate import _core
from proofgate.admin import MAX_BODY_BYTES, MAX_CONCURRENT_PROOFS, create_app
from proofgate.config import InvalidConfigError, Problem, load
from proofgate.reload import ReloadOutcome

TOKEN = "0123456789abcdef-admin"
USED = [{"tenant": "acme"}, {"tenant": "globex"}]


AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


class Admin:
    """A running admin port, its worker, and the requests to the worker's process."""

    def __init__(self, url: str, worker: Worker, ledger: Path, controls: Controls) -> None:
        self.client = client_of(url)
        self.worker = worker
        self.ledger = ledger
        self.controls = controls


@pytest.fixture
def admin(config_directory: ConfigDirectory) -> Iterator[Admin]:
    yield from _admin(config_directory, TOKEN)


@pytest.fixture
def admin_without_token(config_directory: ConfigDirectory) -> Iterator[Admin]:
    yield from _admin(config_directory, None)


def _admin(directory: ConfigDirectory, token: str | None) -> Iterator[Admin]:
    with started(load(directory.file), shard=2) as worker, attached(worker) as typed:
        controls = Controls(worker, token)
        with serving(create_app(typed, controls)) as url:
            admin = Admin(url, worker, directory.ledger, controls)
            with admin.client:
                yield admin


def code(response: httpx.Response) -> str:
    return str(response.json()["error"]["code"])


def test_a_ready_worker_says_so(admin: Admin) -> None:
    response = admin.client.get("/readyz")
    assert (response.status_code, response.text) == (200, "ok\n")


def test_an_unready_worker_says_why_and_stays_alive(admin: Admin) -> None:
    (admin.ledger / "unready").write_text("draining")
    response = admin.client.get("/readyz")
    assert (response.status_code, response.text) == (503, "draining\n")
    assert admin.client.get("/healthz").status_code == 200


def test_a_ledger_that_stopped_asks_for_a_new_incarnation(admin: Admin) -> None:
    (admin.ledger / "unready").write_text("ledger_stopped")
    response = admin.client.get("/healthz")
    assert (response.status_code, response.text) == (503, "ledger_stopped\n")


def test_metrics_are_prometheus_text(admin: Admin) -> None:
    response = admin.client.get("/metrics")
    assert response.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert "# TYPE proofgate_requests counter\n" in response.text
    assert response.text.endswith("# EOF\n")


def test_the_status_is_that_of_the_worker_and_of_its_configuration(admin: Admin) -> None:
    status = admin.client.get("/status")
    assert status.headers["content-type"] == "application/json"
    checkpoint = {"checkpoint": admin.worker.checkpoint()}
    assert status.json() == json.loads(admin.worker.status()) | admin.controls.status() | checkpoint


def test_the_status_is_told_before_there_is_a_checkpoint(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_yet() -> str:
        raise failure(_core.LedgerError, "no checkpoint yet", "ledger")

    monkeypatch.setattr(admin.worker, "checkpoint", none_yet)
    assert admin.client.get("/status").json()["checkpoint"] is None


def test_the_checkpoint_is_passed_on_verbatim(admin: Admin) -> None:
    checkpoint = admin.client.get("/checkpoint")
    assert checkpoint.headers["content-type"] == "text/plain; charset=utf-8"
    assert checkpoint.content == admin.worker.checkpoint().encode()


def test_a_proof_carries_the_record_verbatim(admin: Admin) -> None:
    refused = HTTP.post(f"http://{admin.worker.address}/v1/chat/completions", content=b"{}")
    request_id = refused.headers["x-request-id"]
    response = admin.client.get(f"/proof/{request_id}", headers=AUTHORIZED)
    assert response.status_code == 200
    (proven,) = json.loads(admin.worker.prove(request_id, PATIENCE_SECONDS))["records"]
    assert response.json()["records"][0]["record"] == proven["record"]
    assert request_id in proven["record"]


@pytest.mark.parametrize(
    ("request_id", "status", "expected"),
    [
        ("nobody", 404, "unknown_request"),
        ("not-covered", 503, "ledger"),
        ("%2e%2e%2fetc", 404, "not_found"),
        ("-x", 400, "invalid_request"),
        ("a%00b", 400, "invalid_request"),
        ("x" * 129, 400, "invalid_request"),
    ],
)
def test_a_proof_that_cannot_be_given_says_why(
    admin: Admin, request_id: str, status: int, expected: str
) -> None:
    response = admin.client.get(f"/proof/{request_id}", headers=AUTHORIZED)
    assert (response.status_code, code(response)) == (status, expected)


@pytest.mark.parametrize("timeout", ["0", "31", "nan", "inf", "soon"])
def test_a_proof_waits_for_a_bounded_time_only(admin: Admin, timeout: str) -> None:
    response = admin.client.get("/proof/exchange-1", params={"timeout": timeout}, headers=AUTHORIZED)
    assert (response.status_code, code(response)) == (400, "invalid_request")


def test_only_so_many_proofs_are_made_at_a_time(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Semaphore(0), threading.Event()

    def prove(_: str, __: float) -> bytes:
        begun.release()
        assert end.wait(PATIENCE_SECONDS)
        return b"{}"

    def ask() -> int:
        return admin.client.get("/proof/exchange-1", headers=AUTHORIZED).status_code

    monkeypatch.setattr(admin.worker, "prove", prove)
    with ThreadPoolExecutor(MAX_CONCURRENT_PROOFS + 1) as pool:
        asked = [pool.submit(ask) for _ in range(MAX_CONCURRENT_PROOFS)]
        assert all(begun.acquire(timeout=PATIENCE_SECONDS) for _ in asked)
        waiting = pool.submit(ask)
        response = admin.client.get("/proof/exchange-1", headers=AUTHORIZED, params={"timeout": "0.01"})
        assert (response.status_code, code(response)) == (503, "busy")
        assert admin.client.get("/readyz").status_code == 200
        end.set()
        assert [answer.result() for answer in [*asked, waiting]] == [200] * (MAX_CONCURRENT_PROOFS + 1)


def test_without_the_token_nothing_is_proved(admin: Admin, admin_without_token: Admin) -> None:
    for headers, status, expected in (
        ({}, 401, "missing_token"),
        ({"Authorization": f"Bearer {TOKEN}x"}, 403, "wrong_token"),
    ):
        response = admin.client.get("/proof/exchange-1", headers=headers)
        assert (response.status_code, code(response)) == (status, expected)
    response = admin_without_token.client.get("/proof/exchange-1", headers=AUTHORIZED)
    assert (response.status_code, code(response)) == (403, "proof_disabled")


def test_whoever_has_the_token_is_told_how_much_of_its_limits_each_tenant_has_used(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin.worker, "limit_use", lambda most: json.dumps({"tenants": USED[:most]}))
    response = admin.client.get("/tenants/limits", headers=AUTHORIZED)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == {"tenants": USED}
    response = admin.client.get("/tenants/limits", headers=AUTHORIZED, params={"most": "1"})
    assert response.json() == {"tenants": USED[:1]}


@pytest.mark.parametrize("most", ["0", "-1", "1001", "all", "1.5"])
def test_only_so_many_tenants_are_told_of(admin: Admin, most: str) -> None:
    response = admin.client.get("/tenants/limits", params={"most": most}, headers=AUTHORIZED)
    assert (response.status_code, code(response)) == (400, "invalid_request")


def test_without_the_token_no_limits_are_told(admin: Admin, admin_without_token: Admin) -> None:
    for headers, status, expected in (
        ({}, 401, "missing_token"),
        ({"Authorization": f"Bearer {TOKEN}x"}, 403, "wrong_token"),
    ):
        response = admin.client.get("/tenants/limits", headers=headers)
        assert (response.status_code, code(response)) == (status, expected)
    response = admin_without_token.client.get("/tenants/limits", headers=AUTHORIZED)
    assert (response.status_code, code(response)) == (403, "limits_disabled")


def test_limits_are_told_to_one_after_the_other(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Event(), threading.Event()

    def limit_use(_: int) -> bytes:
        begun.set()
        assert end.wait(PATIENCE_SECONDS)
        return b"{}"

    monkeypatch.setattr(admin.worker, "limit_use", limit_use)
    monkeypatch.setattr("proofgate.admin.LIMITS_WAIT_SECONDS", 0.01)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(admin.client.get, "/tenants/limits", headers=AUTHORIZED)
        assert begun.wait(PATIENCE_SECONDS)
        response = admin.client.get("/tenants/limits", headers=AUTHORIZED)
        assert (response.status_code, code(response)) == (503, "busy")
        end.set()
        assert asked.result().status_code == 200


def test_the_token_drains_the_worker(admin: Admin) -> None:
    response = admin.client.post("/drain", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (response.status_code, response.json()) == (202, {"draining": True})
    assert admin.controls.drains == 1
    assert admin.client.get("/readyz").text == "draining\n"


@pytest.mark.parametrize(
    ("headers", "status", "expected"),
    [
        ([], 401, "missing_token"),
        ([("Authorization", "Bearer")], 401, "missing_token"),
        ([("Authorization", f"Basic {TOKEN}")], 401, "missing_token"),
        ([("Authorization", TOKEN)], 401, "missing_token"),
        ([("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer x")], 401, "missing_token"),
        ([("Authorization", f"Bearer {TOKEN}x")], 403, "wrong_token"),
        ([("Authorization", "Bearer t\u00f6ken")], 403, "wrong_token"),
    ],
)
def test_without_the_token_nothing_drains(
    admin: Admin, headers: list[tuple[str, str]], status: int, expected: str
) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    response = admin.client.post("/drain", headers=encoded)
    assert (response.status_code, code(response)) == (status, expected)
    assert ("www-authenticate" in response.headers) is (status == 401)
    assert admin.controls.drains == 0


@pytest.mark.parametrize("given", ["None", "null", TOKEN])
def test_a_worker_without_a_token_drains_for_nobody(admin_without_token: Admin, given: str) -> None:
    headers = {"Authorization": f"Bearer {given}"}
    response = admin_without_token.client.post("/drain", headers=headers)
    assert (response.status_code, code(response)) == (403, "drain_disabled")
    assert admin_without_token.controls.drains == 0


AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


def test_a_worker_is_retired_with_the_token_and_told_to_stay(admin: Admin) -> None:
    for _ in range(2):
        response = admin.client.put("/retirement", headers=AUTHORIZED)
        assert (response.status_code, response.json()) == (200, {"retiring": True})
        assert (admin.client.get("/readyz").status_code, admin.client.get("/readyz").text) == (
            503,
            "retiring\n",
        )
        assert admin.client.get("/healthz").status_code == 200
    for _ in range(2):
        response = admin.client.delete("/retirement", headers=AUTHORIZED)
        assert (response.status_code, response.json()) == (200, {"retiring": False})
        assert admin.client.get("/readyz").status_code == 200


def test_a_worker_that_drains_cannot_be_told_to_stay(admin: Admin) -> None:
    admin.client.post("/drain", headers=AUTHORIZED)
    assert admin.client.put("/retirement", headers=AUTHORIZED).json() == {"retiring": True}
    response = admin.client.delete("/retirement", headers=AUTHORIZED)
    assert (response.status_code, code(response)) == (409, "draining")


@pytest.mark.parametrize("result", ["applied", "unchanged"])
def test_a_reload_says_what_became_of_it(admin: Admin, result: str) -> None:
    admin.controls.outcome = ReloadOutcome("applied" if result == "applied" else "unchanged", "cd" * 32)
    response = admin.client.post("/reload", headers=AUTHORIZED)
    assert (response.status_code, response.json()) == (200, {"result": result, "config_digest": "cd" * 32})


def test_a_refused_reload_names_every_problem_with_its_line(admin: Admin) -> None:
    problem = Problem("config_same_port", ("admin", "listen"), "choose another", 7)
    error = InvalidConfigError(Path("gateway.yaml"), [problem])
    admin.controls.outcome = ReloadOutcome("refused", "cd" * 32, error)
    response = admin.client.post("/reload", headers=AUTHORIZED)
    assert (response.status_code, code(response)) == (409, "config_invalid")
    assert response.json()["result"] == "refused"
    assert response.json()["problems"] == [
        {
            "code": "config_same_port",
            "file": "gateway.yaml",
            "line": 7,
            "field": "admin.listen",
            "message": "choose another",
        }
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/reload"), ("PUT", "/profiling"), ("PUT", "/retirement"), ("DELETE", "/retirement")],
)
def test_without_the_token_nothing_changes(admin: Admin, method: str, path: str) -> None:
    for headers, status, expected in (
        ({}, 401, "missing_token"),
        ({"Authorization": f"Bearer {TOKEN}x"}, 403, "wrong_token"),
    ):
        response = admin.client.request(method, path, headers=headers, json={"stages": True})
        assert (response.status_code, code(response)) == (status, expected)
    assert admin.controls.reloads == 0
    assert admin.controls.retirements == []
    assert admin.worker.profiling() is False


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/reload", "reload_disabled"),
        ("PUT", "/profiling", "profiling_disabled"),
        ("PUT", "/retirement", "retirement_disabled"),
        ("DELETE", "/retirement", "retirement_disabled"),
    ],
)
def test_a_worker_without_a_token_changes_for_nobody(
    admin_without_token: Admin, method: str, path: str, expected: str
) -> None:
    response = admin_without_token.client.request(method, path, headers=AUTHORIZED, json={"stages": True})
    assert (response.status_code, code(response)) == (403, expected)
    assert admin_without_token.controls.reloads == 0


def test_profiling_is_switched_with_the_token_and_seen_without(admin: Admin) -> None:
    assert admin.client.get("/profiling").json() == {"stages": False}
    for stages in (True, True, False):
        response = admin.client.put("/profiling", headers=AUTHORIZED, json={"stages": stages})
        assert (response.status_code, response.json()) == (200, {"stages": stages})
        assert admin.client.get("/profiling").json() == {"stages": stages}


@pytest.mark.parametrize(
    "body",
    ["", "true", "[]", "{}", '{"stages": 1}', '{"stages": "on"}', '{"stages": true, "x": 1}', "[" * 9999],
)
def test_profiling_takes_one_switch_only(admin: Admin, body: str) -> None:
    response = admin.client.put("/profiling", headers=AUTHORIZED, content=body)
    assert (response.status_code, code(response)) == (400, "invalid_request")
    assert admin.worker.profiling() is False


def test_the_one_body_that_is_read_is_bounded(admin: Admin) -> None:
    response = admin.client.put("/profiling", headers=AUTHORIZED, content=b" " * (MAX_BODY_BYTES + 1))
    assert (response.status_code, code(response)) == (413, "too_large")


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/", "/v1/chat/completions"])
def test_nothing_else_is_served(admin: Admin, path: str) -> None:
    response = admin.client.get(path)
    assert (response.status_code, code(response)) == (404, "not_found")


def test_a_drain_needs_post(admin: Admin) -> None:
    response = admin.client.get("/drain", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (response.status_code, code(response)) == (405, "method_not_allowed")
    assert admin.controls.drains == 0


def test_an_error_repeats_nothing_that_the_client_sent(admin: Admin) -> None:
    sent = "sk-very-secret"
    for response in (
        admin.client.get(f"/proof/{sent}%20", params={"timeout": sent}),
        admin.client.get(f"/{sent}"),
        admin.client.post(
            "/drain", content=json.dumps({"key": sent}), headers={"Authorization": f"Bearer {sent}"}
        ),
    ):
        assert response.status_code >= 400
        assert sent not in response.text
        assert sent not in str(response.headers)


def test_the_server_does_not_introduce_itself(admin: Admin) -> None:
    assert "server" not in admin.client.get("/healthz").headers
