"""Rules for request heads: line ends and field syntax, target, Host and version, hop-by-hop fields, limits."""

from __future__ import annotations

from e2e.framing.specification.notation import AUTH, HEAD, Cases, Text


def lines(cases: Cases, t: Text) -> None:
    length = f"Content-Length: {t.n}\r\n"
    tail = f"{length}\r\n{t.body}"
    cases.add("bare_lf", "bare LF", f"{HEAD}{length}\r\n".replace("\r\n", "\n") + t.body, 400, probe=True)
    cases.add("bare_lf_one_line", "bare LF", f"{HEAD}X-A: 1\n{tail}", 400)
    cases.add("bare_lf_start_line", "bare LF", (HEAD + tail).replace("\r\n", "\n", 1), 400)
    cases.add("bare_lf_empty_line", "bare LF", f"{HEAD}{length}\n{t.body}", 400)
    cases.add("bare_cr", "bare CR in value", f"{HEAD}X-A: a\rb\r\n{tail}", 400, probe=True)
    cases.add("bare_cr_hides_coding", "bare CR in value", f"{HEAD}X-A: a\rTransfer-Encoding: chunked\r\n{tail}", 400)
    cases.add("bare_cr_before_crlf", "bare CR in value", f"{HEAD}X-A: a\r\r\n{tail}", 400)
    cases.add("bare_lf_hides_coding", "bare LF", f"{HEAD}X-A: a\nTransfer-Encoding: chunked\r\n{tail}", 400)
    cases.add("nul", "NUL in value", f"{HEAD}X-A: a\x00b\r\n{tail}", 400, probe=True)
    row = "space before colon"
    cases.add("space_before_colon", row, f"{HEAD}Content-Length : {t.n}\r\n\r\n{t.body}", 400, probe=True)
    cases.add("tab_before_colon", row, f"{HEAD}Content-Length\t: {t.n}\r\n\r\n{t.body}", 400)
    row = "other control byte in value"
    for name, byte in {
        "soh": "\x01",
        "vertical_tab": "\x0b",
        "form_feed": "\x0c",
        "escape": "\x1b",
        "del": "\x7f",
    }.items():
        cases.add(f"{name}_in_value", row, f"{HEAD}X-A: a{byte}b\r\n{tail}", 400)
    row = "folded line, any header"
    cases.add("folded_line", row, f"{HEAD}X-A: a\r\n b\r\n{tail}", 400)
    cases.add("folded_line_tab", row, f"{HEAD}X-A: a\r\n\tb\r\n{tail}", 400)
    cases.add("folded_first_line", row, (HEAD + tail).replace("\r\nHost", "\r\n Host"), 400)
    row = "name not a token, or empty"
    for name, line in {
        "parenthesis": "X(A): 1",
        "empty": ": 1",
        "leading_space": " X: 1",
        "inner_space": "X A: 1",
        "obs_text": "X\xe9: 1",
        "slash": "X/A: 1",
        "quote": '"X": 1',
        "without_colon": "X-A",
        "nul": "X\x00A: 1",
    }.items():
        cases.add(f"name_{name}", row, f"{HEAD}{line}\r\n{tail}", 400)
    cases.add("empty_line_first", "empty line before the request", f"\r\n{HEAD}{tail}", 400)
    cases.add("lf_first", "empty line before the request", f"\n{HEAD}{tail}", 400)
    cases.add("two_empty_lines_first", "empty line before the request", f"\r\n\r\n{HEAD}{tail}", 400)
    cases.add("cr_first", "empty line before the request", f"\r{HEAD}{tail}", 400)
    for name, byte in {"space": " ", "tab": "\t", "nul": "\x00", "bom": "\xef\xbb\xbf"}.items():
        cases.add(f"{name}_first", "byte before the request", f"{byte}{HEAD}{tail}", 400)


def target_host_version(cases: Cases, t: Text) -> None:
    tail = f"{AUTH}Content-Type: application/json\r\nContent-Length: {t.n}\r\n\r\n{t.body}"

    def request(line: str, host: str = "Host: gw\r\n") -> str:
        return f"{line}\r\n{host}{tail}"

    post = "POST /v1/chat/completions HTTP/1.1"
    cases.add("two_hosts", "two Hosts", request(post, "Host: x\r\nHost: y\r\n"), 400, probe=True)
    cases.add("two_hosts_equal", "two Hosts", request(post, "Host: gw\r\nHost: gw\r\n"), 400)
    cases.add("no_host", "no Host", request(post, ""), 400, probe=True)
    row = "absolute target contradicts Host"
    cases.add("absolute_contradicts_host", row, request("POST http://evil/ HTTP/1.1"), 400, probe=True)
    cases.add("absolute_other_port", row, request("POST http://gw:81/v1/models HTTP/1.1"), 400)
    cases.add("absolute_without_host", row, request("POST http://gw/v1/models HTTP/1.1", ""), 400)
    row = "absolute target equal to Host"
    for name, url in {"": "http://gw", "_other_case": "HTTP://GW", "_default_port": "http://gw:80"}.items():
        raw = request(f"POST {url}/v1/models HTTP/1.1")
        cases.accept(f"absolute_equals_host{name}", row, raw, target="/v1/models")
    row = "Host list, user info, bad byte"
    for name, host in {
        "list": "a, b",
        "comma": "gw,gw",
        "user_info": "u@gw",
        "space": "g w",
        "empty": "",
        "tab": "g\tw",
        "tab_before": "\tgw",
        "tab_after": "gw\t",
        "only_dot": ".",
        "first_dot": ".gw",
        "two_dots": "gw..example",
        "slash": "gw/x",
        "obs_text": "g\xe9",
        "bad_port": "gw:8x",
        "large_port": "gw:65536",
        "empty_port": "gw:",
        "only_port": ":80",
        "two_ports": "gw:80:80",
        "open_bracket": "[::1",
        "bad_address": "[::g]",
        "bad_escape": "g%zz",
        "escape": "g%77",
        "sub_delims": "g!$&'()*+;=w",
        "tilde": "~gw",
        "query": "gw?x",
    }.items():
        cases.add(f"host_{name}", row, request(post, f"Host: {host}\r\n"), 400)
    for name, host in {
        "port": "gw:8080",
        "ipv4": "127.0.0.1:80",
        "ipv6": "[::1]:80",
        "name": "gw-1.team.example",
        "final_dot": "gw.example.",
        "underscore": "gw_1",
    }.items():
        cases.accept(f"host_{name}", "valid Host", request(post, f"Host: {host}\r\n"))
    row = "authority or asterisk form"
    cases.add("authority_form", row, request("POST gw:80 HTTP/1.1"), 400)
    cases.add("asterisk_form", row, request("POST * HTTP/1.1"), 400)
    cases.add("options_asterisk", row, f"OPTIONS * HTTP/1.1\r\nHost: gw\r\n{AUTH}\r\n", 400)
    cases.add("connect", row, f"CONNECT gw:80 HTTP/1.1\r\nHost: gw:80\r\n{AUTH}\r\n", 400)
    cases.add("relative_target", row, request("POST v1/models HTTP/1.1"), 400)
    cases.add("other_scheme", row, request("POST ftp://gw/ HTTP/1.1"), 400)
    cases.add("user_info_in_target", row, request("POST http://u@gw/ HTTP/1.1"), 400)
    row = "space, control or raw non-ASCII byte in target"
    for name, byte in {
        "space": " ",
        "tab": "\t",
        "nul": "\x00",
        "obs_text": "\xe9",
        "del": "\x7f",
        "fragment": "#",
    }.items():
        cases.add(f"target_{name}", row, request(f"POST /a{byte}b HTTP/1.1"), 400)
    row = "byte or escape in target that no URL holds"
    for name, text in {
        "quote": 'a"b',
        "angle": "a<b>",
        "backslash": "a\\b",
        "caret": "a^b",
        "backtick": "a`b",
        "brace": "{a}",
        "quote_in_query": 'a?b="c"',
        "angle_in_query": "a?<b>",
        "bad_escape": "a%zz",
        "short_escape": "a%4",
        "escape_at_end": "a?b=%",
        "nul_escape": "a%00b",
    }.items():
        cases.add(f"target_{name}", row, request(f"POST /{text} HTTP/1.1"), 400)
    row = "target as a browser sends it"
    for name, text in {
        "brackets": "/v1/models?include[]=a&b=c|d",
        "query_punctuation": "/v1/models?a={b}^`\\!$'()*+,;:@/?",
        "path_punctuation": "/v1/a;b=c,d/!$&'()*+:@~|[e]",
        "escapes": "/v1/%7e%2F/.././%2e?%41",
        "two_slashes": "//evil/v1/models",
    }.items():
        cases.accept(f"target_{name}", row, request(f"POST {text} HTTP/1.1"), target=text)
    cases.add("target_missing", row, request("POST HTTP/1.1"), 400)
    cases.add("two_spaces_before_target", row, request("POST  /a HTTP/1.1"), 400)
    cases.add("two_spaces_before_version", row, request("POST /a  HTTP/1.1"), 400)
    cases.add("tab_before_target", row, request("POST\t/a HTTP/1.1"), 400)
    cases.add("space_after_version", row, request("POST /a HTTP/1.1 "), 400)
    row = "method not a token"
    for name, method in {"not_a_token": "PO(ST", "empty": "", "colon": "POST:", "obs_text": "POST\xe9"}.items():
        cases.add(f"method_{name}", row, request(f"{method} /a HTTP/1.1"), 400)
    row = "HTTP/1.0, other versions"
    for version in (
        "HTTP/1.0",
        "HTTP/1.2",
        "http/1.1",
        "HTTP/2.0",
        "HTTP/0.9",
        "HTTP/1.10",
        "HTTP/01.1",
        "HTTP/1",
        "HTTPS/1.1",
        "HTTP/1.1x",
        "HTTP/1,1",
        "HTTP/+1.1",
        "HTTP/ 1.1",
    ):
        name = version.replace("HTTP", "version").replace("http", "version_lower")
        for byte, word in {"/": "_", ".": "_", ",": "_comma_", "+": "plus_", " ": "space_"}.items():
            name = name.replace(byte, word)
        cases.add(name, row, f"GET /v1/models {version}\r\nHost: gw\r\n{AUTH}\r\n", 400)
    cases.add("no_version", row, f"GET /v1/models\r\nHost: gw\r\n{AUTH}\r\n", 400)
    cases.add("version_0_9_line", row, "GET /v1/models\r\n\r\n", 400)
    cases.add("http_2_preface", row, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400)


def hops_expectations_limits(cases: Cases, t: Text) -> None:
    tail = f"Content-Length: {t.n}\r\n\r\n{t.body}"
    row = "Connection names a security header"
    for field in (
        "Authorization",
        "host",
        "Content-Length",
        "Transfer-Encoding",
        "X-Proofgate-Tenant",
        "X-Forwarded-For",
        "Expect",
        "Content-Type",
        "X-Api-Key",
    ):
        name = "connection_names_" + field.lower().replace("-", "_")
        cases.add(name, row, f"{HEAD}Connection: close, {field}\r\n{tail}", 400)
    row = "Connection contradicts itself"
    cases.add("close_then_keep_alive", row, f"{HEAD}Connection: close\r\nConnection: keep-alive\r\n{tail}", 400)
    cases.add("keep_alive_and_close", row, f"{HEAD}Connection: Keep-Alive, Close\r\n{tail}", 400)
    cases.add("connection_not_a_token", row, f"{HEAD}Connection: cl@se\r\n{tail}", 400)
    row = "two of a field that decides who asks"
    cases.add("two_authorizations", row, f"{HEAD}{AUTH}{tail}", 400)
    cases.add("two_content_types", row, f"{HEAD}Content-Type: text/plain\r\n{tail}", 400)
    row = "upgrade"
    settings = "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
    offer = f"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n{settings}"
    cases.accept("upgrade_h2c", row, f"{HEAD}{offer}{tail}")
    cases.accept("upgrade_without_option", row, f"{HEAD}Upgrade: h2c\r\n{tail}")
    websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: cHJvb2ZnYXRlLWZyYW1pbg==\r\n"
    cases.add("upgrade_websocket", row, f"GET /v1/realtime HTTP/1.1\r\nHost: gw\r\n{AUTH}{websocket}{key}\r\n", 426)
    cases.accept("upgrade_option_alone", row, f"{HEAD}Connection: upgrade\r\n{tail}")
    cases.accept("expect_in_other_case", "expectation", f"{HEAD}expect: 100-Continue\r\n{tail}")
    cases.add("expectation_empty", "other expectation", f"{HEAD}Expect:\r\n{tail}", 417)
    cases.add("two_expectations", "other expectation", f"{HEAD}Expect: 100-continue\r\nExpect: x\r\n{tail}", 417)
    twice = "Expect: 100-continue\r\n" * 2
    cases.add("two_expectations_equal", "other expectation", f"{HEAD}{twice}{tail}", 417)
    cases.accept("expect_continue", "expectation", f"{HEAD}Expect: 100-continue\r\n{tail}")
    cases.add("other_expectation", "other expectation", f"{HEAD}Expect: x\r\n{tail}", 417)
    cases.add("expectation_list", "other expectation", f"{HEAD}Expect: 100-continue, x\r\n{tail}", 417)
    cases.add("head_too_large", "head bytes, header count", f"{HEAD}X-A: {'a' * 16384}\r\n{tail}", 431)
    many = "".join(f"X-{number}: 1\r\n" for number in range(64))
    cases.add("too_many_headers", "head bytes, header count", f"{HEAD}{many}{tail}", 431)
    long = "/v1/" + "a" * 8192
    cases.add("target_too_long", "target too long", f"GET {long} HTTP/1.1\r\nHost: gw\r\n{AUTH}\r\n", 414)
    row = "body over cap"
    cases.add("declared_too_large", row, f"{HEAD}Content-Length: 33554433\r\n\r\n{t.body}", 413)
    cases.chunks("chunk_too_large", row, f"2000001\r\n{t.body}", 413)
    cases.chunks("second_chunk_too_large", row, f"{t.size}\r\n{t.body}\r\n2000000\r\n{t.body}", 413)
