"""Detection of requests from this machine itself, and the network of a client."""

import ipaddress

from starlette.requests import Request

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORWARDING = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"}
)
_FORWARDING_PREFIXES = ("x-forwarded-", "x-envoy-", "x-original-")
_SAME_SITES = frozenset({"same-origin", "none"})
_IPV6_SITE = 64


def is_loopback(request: Request) -> bool:
    """Return whether a request comes directly from this machine, and not on behalf of a web page.

    The `Host` header must be local, too: a remote page may have its own name resolve to this
    machine (DNS rebinding). Nor may the browser report another origin: it sends simple requests
    across origins without a preflight.
    """
    address = _get_client_address(request)
    return (
        address is not None
        and address.is_loopback
        and not _was_forwarded(request)
        and _has_local_host(request)
        and not _has_foreign_origin(request)
    )


def get_client_network(request: Request) -> str:
    """Return the network of a client: an IPv4 address, or the /64 network of an IPv6 address."""
    address = _get_client_address(request)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed, _IPV6_SITE), strict=False))
    return "unknown" if address is None else str(address)


def _get_client_address(request: Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if request.client is None:
        return None
    try:
        address = ipaddress.ip_address(request.client.host)
    except ValueError:
        return None
    # A socket that listens on both families reports IPv4 clients as mapped addresses.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _was_forwarded(request: Request) -> bool:
    # nginx by default uses HTTP/1.0 and adds no forwarding header.
    return request.scope.get("http_version") == "1.0" or any(
        name in _FORWARDING or name.startswith(_FORWARDING_PREFIXES) for name in request.headers
    )


def _has_local_host(request: Request) -> bool:
    hosts = request.headers.getlist("host")
    if len(hosts) != 1:
        return False
    host, colon, port = hosts[0].rpartition(":")
    if not colon or hosts[0].endswith("]"):
        host, port = hosts[0], ""
    is_port = not colon or not port or (port.isascii() and port.isdigit())
    return is_port and host.lower() in _LOCAL_NAMES


def _has_foreign_origin(request: Request) -> bool:
    headers = request.headers
    if any(site not in _SAME_SITES for site in headers.getlist("sec-fetch-site")):
        return True
    own = headers.get("host", "").lower()
    return any(
        origin.lower() not in {f"http://{own}", f"https://{own}"}
        for origin in headers.getlist("origin")
    )
