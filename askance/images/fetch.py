"""Pictures from the web, fetched only when the caller asks, and from public addresses alone.

Each host is resolved once, within the time limit. All its addresses are checked, and the connection goes to one of the
checked addresses. So a host name that resolves to another address a moment later (DNS rebinding) gains nothing.
Redirects are checked in the same way. Proxies of the environment are not used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urljoin, urlsplit

from askance.images.info import UnusableImage

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse
    from ipaddress import IPv4Address, IPv6Address
    from socket import socket
    from ssl import SSLSocket

Resolver = Callable[[str, int], Sequence[str]]
"""Host name and port to the IP addresses that may be connected to; raises `UnusableImage` where none may."""

MAX_BYTES = 25_000_000
TIMEOUT = 30.0
"""Seconds for the whole fetch, redirects included."""

_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SAVE_IT = "Save the picture and name the file."
_SAFE_CHARACTERS = "/%:=&+!$,;@()*~'?"
_HEADERS = {"Accept": "image/*", "Accept-Encoding": "identity", "User-Agent": "askance"}


def fetch(url: str, *, max_bytes: int = MAX_BYTES, timeout: float = TIMEOUT, resolve: Resolver | None = None) -> bytes:
    """The bytes at an http(s) address.

    Args:
        url: The address.
        max_bytes: Most bytes that are read.
        timeout: Seconds for the whole, redirects included.
        resolve: Gives the addresses that may be connected to; by default `public_addresses`. Tests give one that allows
            their own server.

    Raises:
        UnusableImage: an address that is not public, a timeout, too many bytes or redirects, any answer but 200.
    """
    deadline = time.monotonic() + timeout
    for _ in range(1 + _MAX_REDIRECTS):
        target = _Target.of(url)
        addresses = _resolved(resolve or public_addresses, target, deadline)
        answer = _get(target, addresses, deadline=deadline, max_bytes=max_bytes)
        if isinstance(answer, bytes):
            return answer
        url = _redirect_url(url, answer.location)
    raise UnusableImage(f"is redirected more than {_MAX_REDIRECTS} times", _SAVE_IT)


def _resolved(resolve: Resolver, target: _Target, deadline: float) -> Sequence[str]:
    """The addresses of a host; a thread of its own asks for them, since a name server may not answer.

    Raises:
        UnusableImage: none may be connected to, or they are not known at the deadline.
    """
    addresses: Future[Sequence[str]] = Future()

    def ask() -> None:
        try:
            addresses.set_result(resolve(target.host, target.port))
        except BaseException as error:  # noqa: BLE001  # it is raised where the result is waited for
            addresses.set_exception(error)

    Thread(target=ask, name="askance resolver", daemon=True).start()
    try:
        return addresses.result(timeout=max(0.0, deadline - time.monotonic()))
    except TimeoutError as error:
        raise _too_late() from error


def _too_late() -> UnusableImage:
    return UnusableImage(
        "cannot be fetched: it takes too long", "Raise the time limit, or save the picture and name the file."
    )


def public_addresses(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, if all of them are public.

    Raises:
        UnusableImage: the host is unknown, or one of its addresses is private, loopback, link-local or reserved.
    """
    import socket

    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UnusableImage(f"cannot be fetched: the host {host!r} is not known", "Mend the address.") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if inside := next((address for address in addresses if not is_public(address)), None):
        raise UnusableImage(f"is not fetched: {host!r} is {inside}, which is not a public address", _SAVE_IT)
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address is public; an IPv6 address that embeds an IPv4 one is judged by that."""
    from ipaddress import ip_address

    ip = _embedded_ipv4(ip_address(address))
    return ip.is_global and not (
        ip.is_multicast or ip.is_reserved or ip.is_unspecified or getattr(ip, "is_site_local", False)
    )


def _embedded_ipv4(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that a mapped, 6to4, Teredo or NAT64 address embeds; any other address as it is."""
    from ipaddress import IPv4Address, IPv6Network

    if isinstance(ip, IPv4Address):
        return ip
    if ip in IPv6Network("64:ff9b::/96"):
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else ip)


@dataclass(frozen=True, slots=True)
class _Target:
    """The parts of an address."""

    secure: bool
    host: str
    port: int
    netloc: str
    path: str

    @classmethod
    def of(cls, url: str) -> _Target:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
            path = quote(parts.path or "/", safe=_SAFE_CHARACTERS) + (
                f"?{quote(parts.query, safe=_SAFE_CHARACTERS)}" if parts.query else ""
            )
        except ValueError as error:
            raise UnusableImage(f"cannot be fetched: {error}", "Mend the address.") from error
        if parts.scheme not in {"http", "https"} or not host:
            raise UnusableImage("is not fetched: only http and https addresses are", _SAVE_IT)
        if parts.username is not None or parts.password is not None:
            raise UnusableImage("is not fetched: the address carries a user name or password", _SAVE_IT)
        secure = parts.scheme == "https"
        shown = f"[{host}]" if ":" in host else host
        return cls(secure, host, port or (443 if secure else 80), shown if port is None else f"{shown}:{port}", path)


@dataclass(frozen=True, slots=True)
class _Redirect:
    location: str


def _redirect_url(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise UnusableImage(f"is redirected to a broken address: {error}", _SAVE_IT) from error


def _get(target: _Target, addresses: Sequence[str], *, deadline: float, max_bytes: int) -> bytes | _Redirect:
    from http.client import HTTPException

    expired = Event()
    try:
        with _open_connection(target, addresses, deadline=deadline, expired=expired) as connection:
            connection.request("GET", target.path, headers={"Host": target.netloc, **_HEADERS})
            with connection.getresponse() as response:
                answer = _read_response(response, max_bytes)
    except UnusableImage:
        if not expired.is_set():
            raise
    except (OSError, HTTPException, ValueError) as error:
        if not expired.is_set() and not isinstance(error, TimeoutError):
            raise UnusableImage(f"cannot be fetched: {str(error) or type(error).__name__}", _SAVE_IT) from error
    else:
        if not expired.is_set():
            return answer
    raise _too_late()


def _read_response(response: HTTPResponse, max_bytes: int) -> bytes | _Redirect:
    location = response.headers.get("Location")
    if response.status in _REDIRECTS and location:
        return _Redirect(location)
    if response.status != 200:
        raise UnusableImage(f"cannot be fetched: the server answered {response.status}", "Mend the address.")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise UnusableImage("cannot be fetched: the server compressed it although that was not asked for", _SAVE_IT)
    data = b"" if (response.length or 0) > max_bytes else response.read(max_bytes + 1)
    if len(data) > max_bytes or (response.length or 0) > max_bytes:
        raise UnusableImage(f"is larger than {max_bytes} bytes", _SAVE_IT)
    if response.length:
        raise UnusableImage("cannot be fetched: the connection broke", "Try again.")
    return data


@contextmanager
def _open_connection(
    target: _Target, addresses: Sequence[str], *, deadline: float, expired: Event
) -> Generator[HTTPConnection]:
    """A connection to one of `addresses` that is shut down at the deadline, however slowly bytes arrive."""
    from http.client import HTTPConnection

    connection = HTTPConnection(target.host, target.port)
    raw = _connect(addresses, target.port, deadline)
    wire = _start_tls(raw, target.host) if target.secure else raw
    connection.sock = wire
    cutter = Timer(max(0.0, deadline - time.monotonic()), _shut_down, (wire, expired))
    cutter.daemon = True
    cutter.start()
    try:
        if target.secure:
            cast("SSLSocket", wire).do_handshake()
        yield connection
    finally:
        cutter.cancel()
        connection.close()


def _connect(addresses: Sequence[str], port: int, deadline: float) -> socket:
    """A connection to the first address that accepts one."""
    from socket import create_connection

    problem = OSError("the host has no address")
    for address in addresses:
        try:
            return create_connection((address, port), timeout=max(0.001, deadline - time.monotonic()))
        except OSError as error:
            problem = error
    raise problem


def _start_tls(raw: socket, host: str) -> SSLSocket:
    """The connection under TLS, before the handshake."""
    from ssl import create_default_context

    return create_default_context().wrap_socket(raw, server_hostname=host, do_handshake_on_connect=False)


def _shut_down(wire: socket, expired: Event) -> None:
    """Shut the connection, so that a thread that reads from it wakes up."""
    from socket import SHUT_RDWR, socket

    expired.set()
    with suppress(OSError):
        # Not `wire.shutdown`: under TLS it would discard the session that the reader is using.
        socket.shutdown(wire, SHUT_RDWR)
