"""Settings that are written as text: lists, keys and networks."""

import ipaddress
from typing import Any

from sameface.model.access.keys import parse_entry


def split_list(value: Any) -> Any:
    """Split a string at its commas; any other value is returned unchanged."""
    return (
        tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
    )


def parse_keys(value: Any) -> Any:
    """Parse the entries that `sameface keys create --environment` prints, separated by commas."""
    return tuple(parse_entry(entry) if isinstance(entry, str) else entry for entry in split_list(value))


def parse_networks(value: Any) -> Any:
    """Parse IP addresses and networks; an address is a network of one."""
    return tuple(ipaddress.ip_network(entry) for entry in split_list(value))
