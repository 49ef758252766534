"""Tests of fetching pictures, against a server of their own."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadImage
from askance.images import Image, fetch
from askance.images.info import UnusableImage
from tests.images import samples

PNG = samples.png()
CERTIFICATE = Path(__file__).with_name("loopback.pem")
"""Certificate and key of `ads.test`."""


class Pages(BaseHTTPRequestHandler):
    """One page for each way in which a fetch can go."""

    asked: list[tuple[str, str]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Host"]))
        page = getattr(self, "page_" + self.path.split("?")[0].strip("/").split(".")[0].replace("%20", "_"), None)
        if page is None:
            self.answer(404)
        else:
            page()

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def page_ad(self) -> None:
        self.answer(200, PNG, Content_Type="text/html")

    def page_an_ad(self) -> None:
        self.answer(200, PNG)

    def page_text(self) -> None:
        self.answer(200, b"<html>not found</html>", Content_Type="image/png")

    def page_moved(self) -> None:
        self.answer(302, Location="/ad.png?x=1")

    def page_circle(self) -> None:
        self.answer(301, Location="circle")

    def page_inside(self) -> None:
        self.answer(307, Location="http://inside.test/secret")

    def page_file(self) -> None:
        self.answer(302, Location="file:///etc/passwd")

    def page_packed(self) -> None:
        self.answer(200, PNG, Content_Encoding="gzip")

    def page_short(self) -> None:
        self.answer(200, PNG[:50], Content_Length=str(len(PNG)))

    def page_endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(1000):
            self.wfile.write(bytes(1000))

    def page_slow(self) -> None:
        self.send_response(200)
        self.end_headers()
        for byte in PNG:
            self.wfile.write(bytes([byte]))
            time.sleep(0.05)

    def page_slow_header(self) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
            self.wfile.write(bytes([byte]))
            time.sleep(0.05)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Stay silent."""


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""


@contextmanager
def serving(server: ThreadingHTTPServer) -> Generator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serving(Quiet(("127.0.0.1", 0), Pages)) as port:
        yield f"http://ads.test:{port}"


@pytest.fixture(scope="module")
def secure_port() -> Iterator[int]:
    server = Quiet(("127.0.0.1", 0), Pages)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with serving(server) as port:
        yield port


def let_through(host: str, port: int) -> Sequence[str]:
    """The server of these tests and no other host."""
    if host != "ads.test":
        raise UnusableImage(f"is not fetched: {host!r} is not the server of the test")
    return ["127.0.0.1"]


@pytest.mark.parametrize("path", ["/ad.png", "/moved", "/an ad.png", "/ad.jpg?q=ä b#part"])
def test_a_picture_counts_by_its_content(site: str, path: str) -> None:
    image = Image.from_url(site + path, resolve=let_through)
    assert image == Image.from_bytes(PNG)
    assert image.name == path.split("?", maxsplit=1)[0].strip("/")
    assert Pages.asked[-1][1] == site.removeprefix("http://")


BAD = {
    "/none": "cannot be fetched: the server answered 404.",
    "/text": "holds no picture that is known here.",
    "/circle": "is redirected more than 5 times.",
    "/inside": "is not fetched: 'inside.test' is not the server of the test.",
    "/file": "is not fetched: only http and https addresses are.",
    "/packed": "cannot be fetched: the server compressed it although that was not asked for.",
    "/short": "cannot be fetched: the connection broke.",
}


@pytest.mark.parametrize(("path", "reason"), BAD.items(), ids=BAD)
def test_what_brings_no_picture_says_why(site: str, path: str, reason: str) -> None:
    with pytest.raises(BadImage) as caught:
        Image.from_url(site + path, resolve=let_through)
    assert caught.value.message == f"The picture {site + path!r} {reason}"


@pytest.mark.parametrize("path", ["/ad.png", "/endless"], ids=["announced", "not announced"])
def test_too_many_bytes_are_not_read(site: str, path: str) -> None:
    with pytest.raises(BadImage, match=r"is larger than 100 bytes\. Save the picture and name the file\.$"):
        Image.from_url(site + path, resolve=let_through, max_bytes=100)


@pytest.mark.parametrize("path", ["/slow", "/slow_header"])
def test_a_trickle_ends_at_the_time_limit(site: str, path: str) -> None:
    start = time.monotonic()
    with pytest.raises(BadImage, match=r"cannot be fetched: it takes too long\. Raise the time limit, or save"):
        Image.from_url(site + path, resolve=let_through, timeout=0.3)
    assert time.monotonic() - start < 3


def test_a_server_that_is_not_there(site: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://ads.test:{free.getsockname()[1]}/ad.png"
        with pytest.raises(BadImage, match=r"cannot be fetched: .*[Cc]onnection refused\. Save the picture"):
            Image.from_url(url, resolve=let_through)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://ads.test/ad.png", "is not fetched: only http and https addresses are."),
        ("http:///ad.png", "is not fetched: only http and https addresses are."),
        ("http://me:word@ads.test/", "is not fetched: the address carries a user name or password."),
        ("http://ads.test:99999/", "cannot be fetched: Port out of range 0-65535."),
        ("http://[::1/", "cannot be fetched: Invalid IPv6 URL."),
    ],
    ids=["scheme", "host", "password", "port", "brackets"],
)
def test_broken_addresses(url: str, reason: str) -> None:
    with pytest.raises(BadImage) as caught:
        Image.from_url(url, resolve=let_through)
    assert caught.value.message == f"The picture {url!r} {reason}"


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]", "localhost"])
def test_the_machine_itself_is_refused_by_default(site: str, address: str) -> None:
    asked = len(Pages.asked)
    with pytest.raises(BadImage, match=r"is not fetched: .* is not a public address\."):
        Image.from_url(f"http://{address}:{site.rpartition(':')[2]}/ad.png")
    assert len(Pages.asked) == asked


INSIDE = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1", "198.18.0.1",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254",
    "ff02::1", "2001:db8::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_a_network_are_not_public(address: str) -> None:
    assert not fetch.is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:93.184.215.14", "64:ff9b::5db8:d70e"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert fetch.is_public(address)


def answering(*addresses: str) -> Callable[..., list[tuple[Any, ...]]]:
    """A name server that gives the next of `addresses` each time, all of `addresses[n]` split at commas."""
    answers = iter(addresses)
    return lambda *_args, **_options: [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 80)) for each in next(answers).split(",")
    ]


def test_one_private_address_among_public_ones_refuses_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answering("93.184.215.14,10.0.0.1"))
    with pytest.raises(BadImage) as caught:
        Image.from_url("http://mixed.test/ad.png")
    assert str(caught.value) == (
        "The picture 'http://mixed.test/ad.png' is not fetched: 'mixed.test' is 10.0.0.1, "
        "which is not a public address. Save the picture and name the file."
    )


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: list[object] = []

    def dial(address: tuple[str, int], **_options: object) -> socket.socket:
        dialled.append(address)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "getaddrinfo", answering("93.184.215.14", "127.0.0.1"))
    monkeypatch.setattr(socket, "create_connection", dial)
    with pytest.raises(BadImage, match="cannot be fetched: refused"):
        Image.from_url("https://rebinding.test/ad.png")
    assert dialled == [("93.184.215.14", 443)]


def test_tls_goes_to_the_checked_address_under_the_name(secure_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    image = Image.from_url(f"https://ads.test:{secure_port}/ad.png", resolve=let_through)
    assert image == Image.from_bytes(PNG)
    with pytest.raises(BadImage, match="cannot be fetched: it takes too long"):
        Image.from_url(f"https://ads.test:{secure_port}/slow", resolve=let_through, timeout=0.3)


@pytest.mark.parametrize(
    ("host", "trusted", "reason"),
    [("ads.test", False, "certificate verify failed"), ("other.test", True, "Hostname mismatch")],
    ids=["unknown certificate", "another name"],
)
def test_tls_checks_the_certificate(
    secure_port: int, monkeypatch: pytest.MonkeyPatch, host: str, trusted: bool, reason: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE) if trusted else "/dev/null")
    with pytest.raises(BadImage, match=rf"cannot be fetched: .*{reason}"):
        Image.from_url(f"https://{host}:{secure_port}/ad.png", resolve=lambda _host, _port: ["127.0.0.1"])


def test_an_unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: object, **_options: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(
        BadImage, match=r"cannot be fetched: the host 'nowhere\.test' is not known\. Mend the address\."
    ):
        Image.load("http://nowhere.test/ad.png", allow_urls=True)


def test_a_name_server_that_never_answers_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    def waiting(*_args: object, **_options: object) -> list[object]:
        let_go.wait(5)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", waiting)
    try:
        with pytest.raises(BadImage, match=r"it takes too long: no name server knows 'slow\.test' in time"):
            Image.from_url("http://slow.test/ad.png", timeout=0.05)
        assert not let_go.is_set()
    finally:
        let_go.set()
