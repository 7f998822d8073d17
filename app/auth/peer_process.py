"""The user of the program at the other end of a loopback connection, as Linux reports it."""

import ipaddress
import os
import struct
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
# Columns of a line of these tables.
_LOCAL, _REMOTE, _UID, _INODE = 1, 2, 7, 9


def is_process_of_this_user(client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Return whether the client's socket of a connection belongs to the user of this process.

    Both ends identify it: programs of different users may share a client's port, to different
    servers. True where the kernel keeps no table of sockets: only Linux does.

    Args:
        client: the client's address, on the loopback interface, and its port.
        server: the address and port of this process's end.
    """
    if not _TABLES[0].exists():
        return True
    local, remote = _format_ends(*client), _format_ends(*server)
    return any(
        columns[_LOCAL] in local
        and columns[_REMOTE] in remote
        and columns[_UID] == str(os.geteuid())
        and columns[_INODE] != "0"
        for table in _TABLES
        for columns in _read_rows(table)
    )


def _format_ends(host: str, port: int) -> set[str]:
    return {f"{address}:{port:04X}" for address in _format_addresses(host)}


def _read_rows(table: Path) -> list[list[str]]:
    try:
        return [line.split() for line in table.read_text("ascii").splitlines()[1:]]
    except OSError:
        return []


def _format_addresses(host: str) -> list[str]:
    """Format an address as the tables do: 32-bit words in the byte order of the machine.

    An IPv4 address may be that of a socket of either family.
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv4Address):
        mapped = ipaddress.IPv6Address(f"::ffff:{address}")
        return [_format_words(address.packed), _format_words(mapped.packed)]
    plain = [] if address.ipv4_mapped is None else [_format_words(address.ipv4_mapped.packed)]
    return [_format_words(address.packed), *plain]


def _format_words(packed: bytes) -> str:
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))
