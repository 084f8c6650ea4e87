"""The choice of a proxy for the API server."""

import pytest
from yarl import URL

from proofgate_operator.kube.proxy import proxy_from_environment

SERVER = URL("https://10.96.0.1:443")


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY"])
def test_the_environments_proxy_leads_to_the_api_server(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    without_any(monkeypatch)
    monkeypatch.setenv(variable, "http://proxy.test:3128")
    assert proxy_from_environment(SERVER) == "http://proxy.test:3128"
    assert proxy_from_environment(URL("http://10.96.0.1:80")) is None


@pytest.mark.parametrize("bypass", ["10.96.0.1", "10.96.0.1:443", "example.org,10.96.0.1", "*"])
def test_no_proxy_leads_to_an_api_server_that_is_to_be_reached_without(
    monkeypatch: pytest.MonkeyPatch, bypass: str
) -> None:
    without_any(monkeypatch)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", bypass)
    assert proxy_from_environment(SERVER) is None


def test_without_the_variables_there_is_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    without_any(monkeypatch)
    assert proxy_from_environment(SERVER) is None


def without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
