"""Which requests are this machine's own, and which network the others come from."""

import ipaddress

from starlette.requests import Request

_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORWARDING = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"}
)
_FORWARDING_PREFIXES = ("x-forwarded-", "x-envoy-", "x-original-")
_OWN_SITES = frozenset({"same-origin", "none"})
_IPV6_SITE = 64


def is_loopback(request: Request) -> bool:
    """Whether a request comes from this machine, by its own wish, and not through a proxy on it.

    The name it was asked for by must be local, too: a page elsewhere may have its own name resolve
    to this machine, and have a browser here ask. Nor may a browser say that another page asks: what
    needs no body needs no leave of ours to be sent.
    """
    address = _address_of(request)
    return (
        address is not None
        and address.is_loopback
        and not _was_forwarded(request)
        and _is_asked_by_a_local_name(request)
        and not _is_asked_by_another_page(request)
    )


def client_network(request: Request) -> str:
    """Where a request comes from: an IPv4 address, or the network that one IPv6 customer gets."""
    address = _address_of(request)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed, _IPV6_SITE), strict=False))
    return "unknown" if address is None else str(address)


def _address_of(request: Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if request.client is None:
        return None
    try:
        address = ipaddress.ip_address(request.client.host)
    except ValueError:
        return None
    # How a socket that listens on both families names IPv4 callers.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _was_forwarded(request: Request) -> bool:
    # HTTP/1.0 is what a proxy speaks that was told nothing else, and nginx by default tells neither
    # whom it asks for nor by which name.
    return request.scope.get("http_version") == "1.0" or any(
        name in _FORWARDING or name.startswith(_FORWARDING_PREFIXES) for name in request.headers
    )


def _is_asked_by_a_local_name(request: Request) -> bool:
    hosts = request.headers.getlist("host")
    if len(hosts) != 1:
        return False
    host, colon, port = hosts[0].rpartition(":")
    if not colon or hosts[0].endswith("]"):
        host, port = hosts[0], ""
    is_port = not colon or not port or (port.isascii() and port.isdigit())
    return is_port and host.lower() in _LOCAL_NAMES


def _is_asked_by_another_page(request: Request) -> bool:
    headers = request.headers
    if any(site not in _OWN_SITES for site in headers.getlist("sec-fetch-site")):
        return True
    own = headers.get("host", "").lower()
    return any(
        origin.lower() not in {f"http://{own}", f"https://{own}"}
        for origin in headers.getlist("origin")
    )
