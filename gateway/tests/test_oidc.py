"""Sign-in with an OpenID provider: a conforming provider succeeds, and any deviation is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import auditor_double
import httpx
import pytest
from conftest import serving
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from index_ledger import NOON, Log, bring_up
from joserfc import jwt
from joserfc.jwk import RSAKey
from signing import AUDITOR, VKEY

from proofgate import _core
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import LedgerWatcher
from proofgate.index import oidc_settings, sessions
from proofgate.index.access_log import AccessLog
from proofgate.index.index_services import IndexServices
from proofgate.index.oidc import OidcClient
from proofgate.index.oidc_settings import OidcSettingsError
from proofgate.index.readers import Reader, ReadersFile
from proofgate.index.routes import ReaderPort

pytestmark = pytest.mark.usefixtures("fake_auditor")
CLIENT, SECRET = "proofgate-auditor", "client-secret-0123"
GROUPS = {"officers": {"all": True}, "acme-team": {"tenant": "acme"}}


@dataclass
class Provider:
    """A small conforming provider; `claims` and other fields change its answers."""

    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    url: str = ""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    signing: Any = None
    header: dict[str, Any] = field(default_factory=dict)
    issuer: str | None = None
    token_requests: list[dict[str, str]] = field(default_factory=list)

    def authorize(self, url: str) -> str:
        """Handles a browser's request, and returns the URL of the redirect."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?code={code}&state={asked['state']}"

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        def metadata() -> dict[str, Any]:
            paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            return {
                "issuer": self.issuer or self.url,
                **{name: f"{self.url}/{path}" for name, path in paths.items()},
            }

        @app.get("/keys")
        def keys() -> dict[str, Any]:
            return {"keys": [self.key.as_dict(private=False)]}

        @app.post("/token")
        async def token(request: Request) -> JSONResponse:
            form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
            self.token_requests.append(form)
            basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            began = self.codes.pop(form["code"], None)
            challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
            valid = (
                request.headers.get("authorization") == f"Basic {basic}"
                and began is not None
                and challenge.rstrip(b"=").decode() == began["code_challenge"]
                and form["redirect_uri"] == began["redirect_uri"]
            )
            if not valid or began is None:
                return JSONResponse({"error": "invalid_grant"}, 400)
            now = int(time.time())
            usual = {"iss": self.url, "aud": CLIENT, "sub": "u-1", "iat": now, "exp": now + 60}
            more = {"nonce": began["nonce"], "groups": ["officers"], "preferred_username": "ada"}
            claims = {
                name: value for name, value in (usual | more | self.claims).items() if value is not None
            }
            header = {"alg": "RS256", "kid": "one", **self.header}
            id_token = jwt.encode(header, claims, self.signing or self.key, algorithms=[header["alg"]])
            return JSONResponse({"access_token": "at", "token_type": "Bearer", "id_token": id_token})

        return app


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "one"})


@pytest.fixture
def provider(key: RSAKey) -> Iterator[Provider]:
    provider = Provider(key)
    with serving(provider.app()) as url:
        provider.url = url
        yield provider


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = Log(tmp_path / "ledger")
    log.exchange(1, NOON)
    log.exchange(2, NOON + 1, tenant="globex")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    (tmp_path / "readers").write_text("{}")
    (tmp_path / "secret").write_text(SECRET + "\n")
    return tmp_path


def settings(folder: Path, provider: Provider, **changed: Any) -> Path:
    usual = {
        "issuer": provider.url,
        "clientId": CLIENT,
        "clientSecretFile": "secret",
        "redirectUri": "http://127.0.0.1:9091/oidc/callback",
        "readers": GROUPS,
    }
    path = folder / "oidc.json"
    path.write_text(
        json.dumps({name: value for name, value in (usual | changed).items() if value is not None})
    )
    return path


@dataclass
class Signing:
    """A browser at the auditor's port."""

    url: str
    provider: Provider
    client: httpx.Client
    oidc: OidcClient
    folder: Path

    def begin(self) -> str:
        answer = self.client.get(f"{self.url}/oidc/login")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def come_back(self, to: str) -> httpx.Response:
        return self.client.get(f"{self.url}/oidc/callback?{urlsplit(to).query}")

    def sign_in(self) -> httpx.Response:
        return self.come_back(self.provider.authorize(self.begin()))

    def exchanges(self) -> httpx.Response:
        return self.client.get(f"{self.url}/v1/exchanges")

    def recorded(self) -> list[dict[str, Any]]:
        [file] = self.folder.glob("access-*.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()[1:]]


@pytest.fixture
def signing(folder: Path, provider: Provider) -> Iterator[Signing]:
    oidc = OidcClient(oidc_settings.read_oidc_settings(settings(folder, provider)))
    double = auditor_double.Auditor("ledger", "state", AUDITOR.signing, VKEY, 1, 1, 1, True)
    watch = LedgerWatcher(cast("_core.Auditor", double), 1 << 20)
    access_log = AccessLog(folder, 7)
    desk = ReaderPort(
        folder / "index", folder / "ledger", ReadersFile(folder / "readers"), access_log, oidc=oidc
    )
    with (
        serving(create_app(watch, IndexServices(reader_port=desk))) as url,
        httpx.Client(follow_redirects=False) as client,
    ):
        yield Signing(url, provider, client, oidc, folder)
    access_log.close()


def code_of(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["code"])


def test_a_person_of_a_group_signs_in_and_reads_are_recorded_under_the_name(signing: Signing) -> None:
    assert signing.client.get(f"{signing.url}/v1/sign-in").json() == {
        "readers": True,
        "oidc": True,
        "reader": None,
    }
    answer = signing.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "../")
    told = signing.client.get(f"{signing.url}/v1/sign-in").json()
    assert told == {"readers": True, "oidc": True, "reader": {"name": "oidc:ada", "tenant": None}}
    assert {row["tenant"] for row in signing.exchanges().json()["exchanges"]} == {"acme", "globex"}
    assert signing.recorded()[-1]["reader"] == "oidc:ada"
    assert signing.client.post(f"{signing.url}/v1/sign-out").status_code == 200
    assert code_of(signing.exchanges()) == "not_a_reader"


def test_people_of_one_name_are_distinguished_by_their_subject(signing: Signing) -> None:
    """The name can be chosen by the person (OpenID Connect Core 1.0 section 5.7)."""
    watched = f"{signing.url}/v1/exchanges?watch=true"
    signing.sign_in()
    assert signing.client.get(watched).status_code == 200
    signing.client.cookies.clear()
    signing.provider.claims = {"sub": "u-2", "preferred_username": "ada"}
    signing.sign_in()
    assert signing.client.get(watched).status_code == 200
    told = [(line["reader"], line["subject"]) for line in signing.recorded() if "asked" in line]
    assert told == [("oidc:ada", "u-1"), ("oidc:ada", "u-2")]


def test_a_person_who_signs_in_again_and_again_signs_nobody_else_out() -> None:
    signed_in = sessions.Sessions()
    officer = signed_in.start(Reader("oidc:ada", None, None, "u-1"))
    own = [
        signed_in.start(Reader("oidc:ada", None, None, "u-2"))
        for _ in range(sessions.MAX_SESSIONS_PER_READER + 1)
    ]
    assert signed_in.find(officer) is not None
    assert [signed_in.find(token) is None for token in own] == [True] + [
        False
    ] * sessions.MAX_SESSIONS_PER_READER


def test_the_cookies_are_out_of_reach_of_scripts_and_other_sites(signing: Signing) -> None:
    began = signing.client.get(f"{signing.url}/oidc/login")
    assert "HttpOnly" in began.headers["set-cookie"]
    assert "SameSite=lax" in began.headers["set-cookie"]
    answer = signing.come_back(signing.provider.authorize(began.headers["location"]))
    [session] = [one for one in answer.headers.get_list("set-cookie") if "-session=" in one]
    assert all(part in session for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=28800"))
    assert "Secure" not in session
    [verifier] = [form["code_verifier"] for form in signing.provider.token_requests]
    assert verifier not in began.headers["location"]


def test_over_tls_cookies_are_sent_over_tls_alone(folder: Path, provider: Provider) -> None:
    secure = oidc_settings.read_oidc_settings(
        settings(folder, provider, redirectUri="https://auditor.example/oidc/callback")
    )
    assert secure.is_secure


def test_a_group_of_a_tenant_sees_that_tenant_and_nobody_of_no_group_anything(signing: Signing) -> None:
    signing.provider.claims = {"groups": ["others", "acme-team"]}
    signing.sign_in()
    assert {row["tenant"] for row in signing.exchanges().json()["exchanges"]} == {"acme"}
    signing.client.cookies.clear()
    for groups in (["others"], [], None, {"officers": True}, 5):
        signing.provider.claims = {"groups": groups}
        assert code_of(signing.sign_in()) == "no_reader_group"
    assert code_of(signing.exchanges()) == "not_a_reader"
    assert "no_reader_group" in json.dumps(signing.recorded())


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"sub": None},
        {"iat": 1 << 40},
    ],
)
def test_an_id_token_that_is_not_for_this_sign_in_is_refused(
    signing: Signing, claims: dict[str, Any]
) -> None:
    signing.provider.claims = claims
    answer = signing.sign_in()
    assert (answer.status_code, code_of(answer)) == (403, "id_token_invalid")
    assert code_of(signing.exchanges()) == "not_a_reader"


def test_a_browser_that_is_refused_is_sent_to_the_page_which_says_why(signing: Signing) -> None:
    signing.client.headers["Accept"] = "text/html,application/xhtml+xml,*/*;q=0.8"
    signing.provider.claims = {"groups": ["others"]}
    answer = signing.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "../#/not-signed-in/no_reader_group")
    signing.provider.issuer = "https://other.example"
    signing.oidc._metadata = None
    answer = signing.client.get(f"{signing.url}/oidc/login")
    assert answer.headers["location"] == "../#/not-signed-in/provider_unusable"


def test_a_session_ends_after_its_time(signing: Signing, monkeypatch: pytest.MonkeyPatch) -> None:
    signing.sign_in()
    assert signing.exchanges().status_code == 200
    later = time.time_ns() + (signing.oidc.settings.session_seconds + 1) * 1_000_000_000
    monkeypatch.setattr(sessions, "time", SimpleNamespace(time_ns=lambda: later))
    assert code_of(signing.exchanges()) == "not_a_reader"
    assert signing.client.get(f"{signing.url}/v1/sign-in").json()["reader"] is None


def test_an_id_token_by_another_key_or_by_the_clients_secret_is_refused(signing: Signing) -> None:
    signing.provider.signing = RSAKey.generate_key(2048, {"kid": "one"})
    assert code_of(signing.sign_in()) == "id_token_invalid"
    from joserfc.jwk import OctKey

    signing.provider.signing = OctKey.import_key(SECRET * 4)
    signing.provider.header = {"alg": "HS256"}
    assert code_of(signing.sign_in()) == "id_token_invalid"


def test_another_browsers_answer_signs_nobody_in(signing: Signing) -> None:
    others = signing.provider.authorize(signing.begin())
    signing.client.cookies.clear()
    assert code_of(signing.come_back(others)) == "state_differs"
    own = signing.provider.authorize(signing.begin())
    assert code_of(signing.come_back(others)) == "state_differs"
    assert code_of(signing.come_back(own.replace("state=", "state=x"))) == "state_differs"
    assert code_of(signing.come_back(own + "&iss=https://other.example")) == "issuer_differs"
    assert code_of(signing.come_back(own + "&error=access_denied")) == "provider_refused"
    assert signing.come_back(own).status_code == 303
    # A code can be used only once.
    assert code_of(signing.come_back(own)) == "state_differs"


def test_a_cookie_that_somebody_made_and_a_session_that_ended_are_nobodys(signing: Signing) -> None:
    for made in ("x", "x.y", f"{base64.urlsafe_b64encode(b'{}').decode()}.{'0' * 64}"):
        signing.client.cookies.set("proofgate-sign-in", made)
        assert code_of(signing.come_back("http://x/?code=a&state=b")) == "state_differs"
    signing.client.cookies.clear()
    reader = signing.oidc.settings.reader({"sub": "u-2", "groups": ["officers"]}, 1)
    assert reader is not None
    assert reader.name == "oidc:u-2"
    assert reader.is_expired(time.time_ns() // 1000)


def test_a_provider_of_another_issuer_is_not_used(signing: Signing) -> None:
    signing.provider.issuer = "https://other.example"
    answer = signing.client.get(f"{signing.url}/oidc/login")
    assert (answer.status_code, code_of(answer)) == (502, "provider_unusable")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"issuer": "http://login.example"}, "issuer: use https"),
        ({"redirectUri": "http://auditor.example/oidc/callback"}, "redirectUri: use https"),
        ({"redirectUri": "https://auditor.example/callback"}, "redirectUri: end it with /oidc/callback"),
        ({"clientId": None}, "clientId: this field is required"),
        ({"clientSecretFile": "none"}, "cannot be read"),
        ({"readers": {}}, "readers: name at least one group"),
        ({"readers": {"a": {"all": False}}}, "readers.a: write .*tenant"),
        ({"readers": {"a": {"tenant": "b", "all": True}}}, "readers.a: write .*tenant"),
        ({"readers": {"a": {"tenants": "b"}}}, "readers.a.tenants: .* did you mean tenant?"),
        ({"sessionSeconds": 1 << 20}, "sessionSeconds"),
        ({"clientSecret": "x"}, "clientSecret: .* did you mean clientSecretFile?"),
        ({"session_seconds": 60}, "session_seconds: .* did you mean sessionSeconds?"),
    ],
)
def test_settings_that_are_not_in_order_are_refused_with_what_to_do(
    folder: Path, provider: Provider, changed: dict[str, Any], why: str
) -> None:
    with pytest.raises(OidcSettingsError, match=why):
        oidc_settings.read_oidc_settings(settings(folder, provider, **changed))
