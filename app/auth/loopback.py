"""Detection of requests from this machine itself, and the network of a client.

None of this admits a request by itself: a proxy on this machine may pass on a stranger's request
without a trace. It narrows down where a local token is accepted, and explains refusals.
"""

import ipaddress
import re
from functools import lru_cache

from starlette.requests import Request

from app.auth.peer_process import is_process_of_this_user

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Headers by which proxies, balancers and content networks pass on addresses, hosts and hops.
_FORWARDING = re.compile(
    r"""
    (.*-)?forwarded(-.*)? | via | cdn-loop | front-end-https | x-(url-)?scheme | x-host
    | .*(client|connecting|proxyuser|real|remote|socket|source|user)-?ip(v6)?(-.*)?
    | (cf|fastly|fly|x-(amzn?|appengine|arr|azure|cloud|cluster|envoy|original|real))-.*
    """,
    re.VERBOSE,
)
_SAME_SITES = frozenset({"same-origin", "none"})
_IPV6_SITE = 64
_HTTP_PORT = 80
_KEPT_ADDRESSES = 1024
_LONGEST_ADDRESS = 64
"""Characters, with the name of an interface. A forwarding header may have thousands instead."""


def is_loopback(request: Request) -> bool:
    """Return whether a request looks as if it came directly from this machine.

    A proxy on this machine that adds no header looks the same.
    """
    return describe_remoteness(request) is None


def describe_remoteness(request: Request) -> str | None:
    """Describe in what a request differs from one of a local program; None if in nothing.

    The `Host` header must be local, too: a remote page may have its own name resolve to this
    machine (DNS rebinding). Nor may the browser report another origin: it sends simple requests
    across origins without a preflight.
    """
    address = _get_client_address(request)
    if address is None or not address.is_loopback:
        return "comes from another address"
    if _was_forwarded(request):
        return "came through a proxy"
    if _find_local_port(request) is None:
        return (
            f"is for the host {request.headers.get('host', '')[:80]!r} rather than localhost or "
            "127.0.0.1"
        )
    if _has_foreign_origin(request):
        return "comes from a page of another site"
    return None


def is_of_this_user(request: Request) -> bool:
    """Return whether a loopback request is of a program that runs as the user of this process.

    Its `Host` must have the port of this process. The user is the kernel's account of the other end
    of the connection, where it gives one: a proxy runs as another user.
    """
    client, (server, port) = request.client, request.scope.get("server") or ("", None)
    if client is None or port is None:
        return False
    return (
        is_loopback(request)
        and _find_local_port(request) == port
        and is_process_of_this_user((client.host, client.port), (server, port))
    )


def get_client_network(request: Request) -> str:
    """Return the network of a client: an IPv4 address, or the /64 network of an IPv6 address."""
    return _find_network(_get_client_host(request))


@lru_cache(_KEPT_ADDRESSES)
def _find_network(host: str) -> str:
    address = _parse_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed, _IPV6_SITE), strict=False))
    return "unknown" if address is None else str(address)


def _get_client_address(request: Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    return _parse_address(_get_client_host(request))


def _get_client_host(request: Request) -> str:
    """Return the text of the client's address; an empty one if there is none, or no such text."""
    host = "" if request.client is None else request.client.host
    return host if len(host) <= _LONGEST_ADDRESS else ""


@lru_cache(_KEPT_ADDRESSES)
def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    # A socket that listens on both families reports IPv4 clients as mapped addresses.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _was_forwarded(request: Request) -> bool:
    # nginx before 1.29.7 by default uses HTTP/1.0 and adds no forwarding header.
    return request.scope.get("http_version") == "1.0" or any(
        _FORWARDING.fullmatch(name) for name in request.headers
    )


def _find_local_port(request: Request) -> int | None:
    """Find the port of the `Host` header; None unless there is one that names this machine."""
    hosts = request.headers.getlist("host")
    if len(hosts) != 1:
        return None
    host, colon, port = hosts[0].rpartition(":")
    if not colon or hosts[0].endswith("]"):
        host, port = hosts[0], ""
    is_port = not port or (port.isascii() and port.isdigit() and len(port) <= len("65535"))
    return int(port or _HTTP_PORT) if is_port and host.lower() in _LOCAL_NAMES else None


def _has_foreign_origin(request: Request) -> bool:
    headers = request.headers
    if any(site not in _SAME_SITES for site in headers.getlist("sec-fetch-site")):
        return True
    own = headers.get("host", "").lower()
    return any(
        origin.lower() not in {f"http://{own}", f"https://{own}"}
        for origin in headers.getlist("origin")
    )
