"""Whoever has not the address, or comes from another page, gets nothing; and the server outlives them all."""

import random
import re
import sys
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

REQUESTS = 500
OTHERS = ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "127.0.0.1:{port}.evil.example", "[::1]:{port}", ""]
OTHERS += [
    "0.0.0.0:{port}",
    "127.1:{port}",
    "evil.example:{port}",
    "localhost:{port}@evil.example",
    "2130706433:{port}",
]
PATHS = ["", "api/run", "api/source", "assets/app.js", "api/frames?recording=0&first=0&last=9", "api/forecast?frame=9"]
ESCAPES = [
    "../",
    "..%2f",
    "%2e%2e/",
    "%2e%2e%2f",
    "..%252f",
    "..%c0%af",
    "..\\",
    "..%5c",
    "....//",
    "%00",
    "..;/",
    "//",
]
FILES = ["etc/passwd", "config.toml", "names.json", "model/manifest.json", "provenance.json", "walks.npz", "_app.py"]
METHODS = ["PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH", "CONNECT", "PROPFIND", "GETS", "get", "POST"]


def request(method, target, host, *headers, body=""):
    lines = [f"{method} {target} HTTP/1.1", *([f"Host: {host}"] if host is not None else []), *headers, "", body]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")


def hostile(rng, token, port):
    """One request that nobody with good intentions sends."""
    here, origin = f"127.0.0.1:{port}", f"Origin: http://127.0.0.1:{port}"
    good, path = f"/{token}/", rng.choice(PATHS)
    wrong = rng.choice(
        ["", "x", token[:-1], token + "A", token.swapcase(), token[::-1], urllib.parse.quote(token + "/")]
    )
    wrong = wrong if wrong != token else "x"
    away = "".join(rng.choices(ESCAPES, k=rng.randint(1, 6))) + rng.choice(FILES)
    name = '{"state": 0, "name": "stolen"}'
    length, chunked, edit = f"Content-Length: {len(name)}", "Transfer-Encoding: chunked", good + "api/name"
    kinds = [
        lambda: request("GET", good + path, rng.choice(OTHERS).format(port=port)),
        lambda: request("GET", good + path, None),
        lambda: request("GET", good + path, here, "Host: evil.example"),
        lambda: request("GET", f"/{wrong}/{path}", here),
        lambda: request("GET", f"/{path}", here, f"Cookie: token={token}", f"Referer: http://{here}{good}"),
        lambda: request("GET", f"/?token={token}", here, f"Authorization: Bearer {token}"),
        lambda: request("GET", good + path, here, f"Origin: {rng.choice(['null', 'http://evil.example', f'https://{here}'])}"),
        lambda: request("GET", good + rng.choice(["", "assets/", "api/"]) + away, here),
        lambda: request("GET", "/" + away, here),
        lambda: request("GET", f"http://{here}{good}{path}", here),
        lambda: request(rng.choice(METHODS), good + path, here),
        lambda: request("POST", edit, here, length, body=name),
        lambda: request("POST", edit, here, "Origin: http://evil.example", length, body=name),
        lambda: request("POST", f"/{wrong}/api/name", here, origin, length, body=name),
        lambda: request("POST", edit, here, origin, "Content-Length: 99999999", body="x" * 3000),
        lambda: request("POST", edit, here, origin, f"Content-Length: {2**15}", body="x" * 2**15),
        lambda: request("POST", edit, here, origin, length, chunked, body=f"0\r\n\r\n{name}"),
        lambda: request("POST", edit, here, origin, length, "Content-Length: 5", body=name),
        lambda: request("POST", edit, here, origin, chunked, body="4001\r\n" + "x" * 0x4001),
        lambda: request("GET", good + path, here, f"Content-Length: {len(name)}", body=name),
        lambda: request("GET", good + path, here, "X: " + "y" * 80_000),
        lambda: request("GET", good + "?" + "x=1&" * 9000, here),
        lambda: request("GET", good + path, here, " folded: yes"),
        lambda: request("GET", good + path, here, f"Host : {here}"),
        lambda: request("GET", f"{good}{path}\r\nX: y", "evil.example"),
        lambda: request("GET", good + path, here).replace(b"HTTP/1.1", rng.choice([b"HTTP/9.9", b"HTTP/1.1 x"])),
        lambda: request("GET", good.replace("/", "//") + path, here),
        lambda: request("GET", urllib.parse.quote(good, safe="").replace("%2F", "/", 1) + path, here),
        lambda: rng.randbytes(rng.randint(1, 4000)),
        lambda: b"",
    ]  # fmt: skip
    return rng.choice(kinds)()


def status(answer):
    """Of the first response, None where there is none."""
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else None


def test_500_hostile_requests_are_refused_and_the_server_lives(served, images):
    rng, before = random.Random(20261116), images.names
    requests = [hostile(rng, served.token, served.port) for _ in range(REQUESTS)]
    with ThreadPoolExecutor(16) as people:
        answers = list(people.map(served.raw, requests))
    for number, (sent, answer) in enumerate(zip(requests, answers, strict=True)):
        found = [int(s) for s in re.findall(rb"HTTP/1\.[01] (\d{3})", answer)]
        assert all(s >= 400 for s in found), (number, sent[:300], answer[:300])
        assert b"recordings" not in answer and b"<html" not in answer and b"seed" not in answer, (number, sent[:300])
    assert images.names == before and sum(status(answer) == 403 for answer in answers) > REQUESTS // 3
    assert served.process.poll() is None and b"recordings" in served.ask("api/run")


def test_what_is_sent_carries_the_policy_and_what_is_refused_says_nothing(served):
    here = f"127.0.0.1:{served.port}"
    page = served.raw(request("GET", f"/{served.token}/", here, "Connection: close"))
    assert status(page) == 200 and b"default-src 'none'" in page and b"no-referrer" in page and b"nosniff" in page
    local = request("GET", f"/{served.token}/", f"localhost:{served.port}", "Connection: close")
    assert status(served.raw(local)) == 200
    refused = [
        served.raw(request("GET", f"/{'x' * 43}/", here)),
        served.raw(request("GET", f"/{served.token}/", "evil.example")),
    ]
    for answer in refused:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert status(head) == 403 and body == b"refused\n"


@pytest.mark.parametrize(
    "told", ['{"state": 99, "name": "x"}', '{"state": true, "name": "x"}', "[]", "{", '{"state": 0}']
)
def test_what_makes_no_sense_is_one_sentence(served, told):
    headers = [f"Origin: http://127.0.0.1:{served.port}", f"Content-Length: {len(told)}"]
    sent = request("POST", f"/{served.token}/api/name", f"127.0.0.1:{served.port}", *headers, body=told)
    answer = served.raw(sent)
    assert status(answer) == 422 and b'"error"' in answer and b"Traceback" not in answer


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it in a file")
def test_it_listens_on_this_machine_only(served):
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [line[1] for line in lines if line[3] == "0A" and line[1].endswith(f":{served.port:04X}")]
    assert listening == [f"0100007F:{served.port:04X}"]
