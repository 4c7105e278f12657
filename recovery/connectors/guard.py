"""Where a request may go: named hosts, https, public addresses, one address per request (SEC-19).

The name is resolved once and every address it has is checked; the request then goes to that address, so that a name
cannot point elsewhere between the check and the call. `TRUSTED_ENDPOINTS` is the one way past: exact host:port.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from steadyhand.contract import MAX_REPLY_BYTES as MAX_REPLY_BYTES


class Forbidden(Exception):
    """The address is not one that a request may go to; the message says why in a sentence."""


@dataclass(frozen=True)
class Target:
    """Where to connect: the pinned URL, the Host header and the name that the certificate must carry."""

    url: str
    host: str
    extensions: dict[str, Any]


def check(url: str, *, allow_hosts: list[str]) -> Target:
    """The pinned target for a URL. Raises Forbidden."""
    parts, host, port = named(url, allow_hosts=allow_hosts)
    if _is_trusted(host, port):
        return Target(url, parts.netloc, {})
    address = _public_address(host, port)
    literal = f"[{address}]" if ":" in address else address
    pinned = parts._replace(netloc=f"{literal}:{port}").geturl()
    return Target(pinned, parts.netloc.rpartition("@")[2], {"sni_hostname": host})


def named(url: str, *, allow_hosts: list[str]) -> tuple[SplitResult, str, int]:
    """A URL whose host may be asked by its name, with host and port; no name is resolved. Raises Forbidden."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as wrong:
        raise Forbidden("The look-up's address cannot be read.") from wrong
    if _is_trusted(host, port):
        return parts, host, port
    if parts.scheme != "https":
        trust = f"for a test, start the console with TRUSTED_ENDPOINTS={host}:{port}"
        raise Forbidden(f"{host} would be asked without encryption; use https, or, {trust}.")
    if host not in {allowed.lower() for allowed in allow_hosts}:
        raise Forbidden(f"{host} is not among the connector's allow_hosts.")
    return parts, host, port


def _is_trusted(host: str, port: int) -> bool:
    return f"{host}:{port}" in settings.TRUSTED_ENDPOINTS


def is_public(text: str) -> bool:
    """Whether an address lies in the public internet, also when it is wrapped in an IPv6 form of IPv4."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or _nat64(address)
        if inner is not None:
            return is_public(str(inner))
        if address not in _UNICAST:
            return False
    special = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not special and not any(address in network for network in _CLOSED)


def _public_address(host: str, port: int) -> str:
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError as wrong:
        raise Forbidden(f"{host} cannot be resolved.") from wrong
    inside = sorted(address for address in found if not is_public(address))
    if inside:
        raise Forbidden(f"{host} points into a private network.")
    return sorted(found)[0]


_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Protocol assignments, the old 6to4 relay and documentation: some Python versions call these global.
_CLOSED = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))


def _nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    return ipaddress.IPv4Address(address.packed[-4:]) if address in _NAT64 else None
