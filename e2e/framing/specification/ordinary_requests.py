"""Correct requests: the plain forms that other rules vary, every method, and requests of real clients."""

from __future__ import annotations

from pathlib import Path

from e2e.framing.specification.notation import AUTH, HEAD, KEY, Cases, Text

CLIENTS = Path(__file__).parents[1] / "clients"


def baseline(cases: Cases, t: Text) -> None:
    length = f"Content-Length: {t.n}\r\n"
    cases.accept("length_body", "length body", f"{HEAD}{length}\r\n{t.body}", probe=True)
    cases.accept("chunked_body", "chunked body", f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{t.chunked}", probe=True)
    row = "coding in other case"
    cases.accept("coding_in_other_case", row, f"{HEAD}transfer-encoding: Chunked\r\n\r\n{t.chunked}")
    half = t.n // 2
    two = f"{half:X}\r\n{t.body[:half]}\r\n{t.n - half:x}\r\n{t.body[half:]}\r\n0\r\n\r\n"
    cases.accept("two_chunks", "chunked body", f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{two}")
    zeros = f"{t.n:016x}\r\n{t.body}\r\n000\r\n\r\n"
    cases.accept("sixteen_digit_chunk_size", "chunked body", f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{zeros}")
    row = "value without optional space"
    cases.accept("tight_values", row, f"{HEAD}Content-Length:{t.n}\r\nX-A:\r\n\r\n{t.body}")
    row = "value with optional space"
    cases.accept("spaced_values", row, f"{HEAD}Content-Length:   {t.n}  \r\nX-A: \t1\t \r\n\r\n{t.body}")
    row = "obs-text and tab in value"
    cases.accept("obs_text_in_value", row, f"{HEAD}X-A: caf\xe9\tau lait\r\n{length}\r\n{t.body}")
    row = "ordinary value that mentions framing"
    quote = "X-A: Transfer-Encoding: chunked, Content-Length: 1\r\n"
    cases.accept("value_mentions_framing", row, f"{HEAD}{quote}{length}\r\n{t.body}")
    cases.accept("close_option", "Connection: close", f"{HEAD}Connection: close\r\n{length}\r\n{t.body}", closes=True)
    row = "Connection: keep-alive, TE"
    cases.accept("harmless_options", row, f"{HEAD}Connection: keep-alive, TE\r\nTE: trailers\r\n{length}\r\n{t.body}")
    get = f"GET /v1/models HTTP/1.1\r\nHost: gw\r\n{AUTH}"
    cases.accept("get", "GET without body", f"{get}\r\n", body="", target="/v1/models")
    cases.accept(
        "get_length_zero",
        "GET with length 0",
        f"{get}Content-Length: 0\r\n\r\n",
        body="",
        target="/v1/models",
    )
    cases.accept(
        "target_with_query",
        "query",
        f"{get}\r\n".replace("models", "models?limit=2&a=%20b/?"),
        body="",
        target="/v1/models?limit=2&a=%20b/?",
    )

    methods(cases, t, get)
    spaces = "X-A: 1\r\n" * 56
    cases.accept("most_headers", "head bytes, header count", f"{HEAD}{spaces}{length}\r\n{t.body}")
    large = f"X-A: {'a' * 15000}\r\n"
    cases.accept("large_head", "head bytes, header count", f"{HEAD}{large}{length}\r\n{t.body}")
    target = "/v1/" + "a" * 8188
    cases.accept(
        "longest_target", "target too long", f"{get}\r\n".replace("/v1/models", target), body="", target=target
    )


def methods(cases: Cases, t: Text, get: str) -> None:
    """A request with any method is well framed; the application decides whether it supports the method."""
    row = "method"
    cases.accept("head", row, f"{get}\r\n".replace("GET", "HEAD"), body="", target="/v1/models")
    origin = "Host: gw\r\nOrigin: https://app.example\r\n"
    preflight = f"{origin}Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
    options = f"OPTIONS /v1/chat/completions HTTP/1.1\r\n{preflight}\r\n"
    cases.accept("options", row, options, body="")
    cases.accept(
        "get_from_browser", row, f"GET /v1/models HTTP/1.1\r\n{origin}{AUTH}\r\n", body="", target="/v1/models"
    )
    cases.accept("delete", row, f"{get}\r\n".replace("GET", "DELETE"), body="", target="/v1/models")
    cases.accept("method_in_other_case", row, f"{get}\r\n".replace("GET", "get"), body="", target="/v1/models")
    cases.accept(
        "method_any_token", row, f"{get}\r\n".replace("GET", "A!#$%&'*+-.^_`|~9"), body="", target="/v1/models"
    )
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        head = HEAD.replace("POST", method)
        name = method.lower()
        cases.accept(f"length_on_{name}", row, f"{head}Content-Length: {t.n}\r\n\r\n{t.body}")
        cases.accept(f"coding_on_{name}", row, f"{head}Transfer-Encoding: chunked\r\n\r\n{t.chunked}")


def clients(cases: Cases, t: Text) -> None:
    """Requests of real clients and proxies: each file contains a head, and the body is the chat request."""
    if t.name != "chat":
        return
    for path in sorted(CLIENTS.glob("*.http")):
        head = path.read_text().replace("{key}", KEY).replace("{length}", str(t.n)).replace("\n", "\r\n") + "\r\n"
        target = head.split(" ")[1].removeprefix("http://gw:8080")
        body, sent = "", ""
        if "\r\ntransfer-encoding: chunked\r\n" in head.lower():
            body, sent = t.body, t.chunked
        elif "\r\ncontent-length: " in head.lower():
            body = sent = t.body
        closes = {"closes": True} if "\r\nConnection: close\r\n" in head else {}
        name = "client_" + path.stem.replace("-", "_")
        cases.accept(name, "a client's request", head + sent, body=body, target=target, **closes)
