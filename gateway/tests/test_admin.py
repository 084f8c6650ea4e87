"""The admin port over real HTTP: what probes, scrapers and operators get, and what nobody gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import core_double
import httpx
import pytest
from conftest import ConfigDirectory, serving

from proofgate.admin import create_app
from proofgate.config import load

if TYPE_CHECKING:
    from proofgate._core import Worker

TOKEN = "0123456789abcdef-admin"


class Admin:
    """A running admin port, its worker, and how often a drain was asked for."""

    def __init__(self, url: str, worker: core_double.Worker, ledger: Path, drains: list[None]) -> None:
        self.client = httpx.Client(base_url=url)
        self.worker = worker
        self.ledger = ledger
        self.drains = drains


@pytest.fixture
def admin(config_directory: ConfigDirectory) -> Iterator[Admin]:
    yield from _admin(config_directory, TOKEN)


@pytest.fixture
def admin_without_token(config_directory: ConfigDirectory) -> Iterator[Admin]:
    yield from _admin(config_directory, None)


def _admin(directory: ConfigDirectory, token: str | None) -> Iterator[Admin]:
    worker = core_double.Worker(load(directory.file).to_core_json(shard=2))
    drains: list[None] = []

    def drain() -> None:
        drains.append(None)
        worker.drain()

    with serving(create_app(cast("Worker", worker), token, drain)) as url:
        admin = Admin(url, worker, directory.ledger, drains)
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
    assert "proofgate_requests_total 1\n" in response.text


def test_status_and_checkpoint_are_passed_on_verbatim(admin: Admin) -> None:
    status = admin.client.get("/status")
    assert status.headers["content-type"] == "application/json"
    assert status.text == admin.worker.status()
    checkpoint = admin.client.get("/checkpoint")
    assert checkpoint.headers["content-type"] == "text/plain; charset=utf-8"
    assert checkpoint.content == admin.worker.checkpoint().encode()


def test_a_proof_carries_the_record_verbatim(admin: Admin) -> None:
    response = admin.client.get("/proof/exchange-1")
    assert response.status_code == 200
    assert response.json()["records"][0]["record"] == core_double.RECORD


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
    response = admin.client.get(f"/proof/{request_id}")
    assert (response.status_code, code(response)) == (status, expected)


@pytest.mark.parametrize("timeout", ["0", "31", "nan", "inf", "soon"])
def test_a_proof_waits_for_a_bounded_time_only(admin: Admin, timeout: str) -> None:
    response = admin.client.get("/proof/exchange-1", params={"timeout": timeout})
    assert (response.status_code, code(response)) == (400, "invalid_request")


def test_the_token_drains_the_worker(admin: Admin) -> None:
    response = admin.client.post("/drain", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (response.status_code, response.json()) == (202, {"draining": True})
    assert admin.drains == [None]
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
    assert admin.drains == []


@pytest.mark.parametrize("given", ["None", "null", TOKEN])
def test_a_worker_without_a_token_drains_for_nobody(admin_without_token: Admin, given: str) -> None:
    headers = {"Authorization": f"Bearer {given}"}
    response = admin_without_token.client.post("/drain", headers=headers)
    assert (response.status_code, code(response)) == (403, "drain_disabled")
    assert admin_without_token.drains == []


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/", "/v1/chat/completions"])
def test_nothing_else_is_served(admin: Admin, path: str) -> None:
    response = admin.client.get(path)
    assert (response.status_code, code(response)) == (404, "not_found")


def test_a_drain_needs_post(admin: Admin) -> None:
    response = admin.client.get("/drain", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (response.status_code, code(response)) == (405, "method_not_allowed")
    assert admin.drains == []


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
