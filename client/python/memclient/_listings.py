# SPDX-License-Identifier: Apache-2.0
"""What the broker has: for this user, or for administrators everybody's."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _memclient
from ._buffers import BufferInfo, Pages, Placement, _info
from ._rights import Right

__all__ = [
    "BrokerInfo",
    "NameInfo",
    "NodeInfo",
    "PoolInfo",
    "SessionInfo",
    "TokenInfo",
    "broker",
    "buffers",
    "names",
    "nodes",
    "pools",
    "sessions",
    "tokens",
]


class PoolInfo(NamedTuple):
    """A budget of physical memory. Sizes are in bytes.

    granule    unit of what is allocated
    lazy       pages are allocated when they are touched, which may fail
    available  what this program could allocate now in one piece
    declared   in the configuration
    stock      allocated ahead, not in `used`
    allow      for whom it is; "" = everybody
    """

    name: str
    nodes: tuple[int, ...]
    pages: Pages
    placement: Placement
    page_size: int
    granule: int
    part_size: int
    weights: tuple[int, ...]
    lazy: bool
    simulated: bool
    capacity: int
    used: int
    available: int
    buffers: int
    declared: bool
    stock: int
    stock_buffers: int
    stock_ready: int
    allow: str
    client_charged: bool


class SessionInfo(NamedTuple):
    """A process that uses the broker.

    created   seconds since 1970
    bytes     that it holds and is charged for
    waiting   requests being worked on, or waiting for memory
    requests  that have come by the connection that it has now
    """

    id: int
    uid: int
    gid: int
    pid: int
    program: str
    connected: bool
    created: float
    bytes: int
    holds: int
    tokens: int
    reservations: int
    fds_in_flight: int
    queued_bytes: int
    waiting: int
    requests: int


class NameInfo(NamedTuple):
    """A name, and how long it keeps its buffer.

    policy   0 until it is unbound, 1 while its session lasts, 2 for a time after that
    keep     seconds
    session  that bound it; 0 once it has ended
    """

    name: str
    uid: int
    buffer: int
    policy: int
    keep: float
    group_rights: Right
    gid: int
    other_rights: Right
    session: int


class TokenInfo(NamedTuple):
    """A token that can be used, without its secret.

    uses_left  0 = any number
    expires    seconds from now; 0 = never
    session    that made it; 0 once it has ended
    """

    serial: int
    buffer: int
    rights: Right
    flags: int
    uid: int
    gid: int
    pid: int
    uses_left: int
    expires: float
    maker_uid: int
    session: int


class NodeInfo(NamedTuple):
    """A NUMA node with memory. Sizes are in bytes.

    physical  the kernel's number
    """

    node: int
    physical: int
    total: int
    capacity: int
    used: int
    has_cpus: bool
    simulated: bool
    distances: tuple[int, ...]


class BrokerInfo(NamedTuple):
    """What the broker is, has and has done.

    uptime    seconds
    capacity  of the pools together
    used      of that
    """

    version: str
    broker_id: int
    broker_pid: int
    broker_uid: int
    simulated: bool
    uptime: float
    sessions: int
    buffers: int
    buffers_detached: int
    buffers_ending: int
    bytes: int
    names: int
    tokens: int
    reservations: int
    requests: int
    refused: int
    config: str
    keeper_pid: int
    restarts: int
    pools: int
    capacity: int
    used: int


def _seconds(row: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The same row, with its times in seconds."""
    for key in keys:
        row[key.removesuffix("_ms")] = row.pop(key) / 1000
    return row


def pools() -> list[PoolInfo]:
    """The pools from which this user may allocate. NoBroker: no broker can be reached; as of all listings."""
    rows = _memclient.list_pools()
    for row in rows:
        row.update(pages=Pages(row["pages"]), placement=Placement(row["placement"]))
    return [PoolInfo(**row) for row in rows]


def buffers() -> list[BufferInfo]:
    """The buffers of this user, in all states; those of everybody for administrators."""
    return [_info(row) for row in _memclient.list_buffers()]


def sessions() -> list[SessionInfo]:
    """The sessions of this user, connected or waiting for their process to come back; all for administrators."""
    return [SessionInfo(**_seconds(row, "created_ms")) for row in _memclient.list_sessions()]


def names() -> list[NameInfo]:
    """The names of this user; all for administrators."""
    rows = [_seconds(row, "keep_ms") for row in _memclient.list_names()]
    for row in rows:
        row.update(group_rights=Right(row["group_rights"]), other_rights=Right(row["other_rights"]))
    return [NameInfo(**row) for row in rows]


def tokens() -> list[TokenInfo]:
    """The tokens of this user that can still be used; all for administrators."""
    rows = [_seconds(row, "expires_ms") for row in _memclient.list_tokens()]
    for row in rows:
        row.update(rights=Right(row["rights"]))
    return [TokenInfo(**row) for row in rows]


def nodes() -> list[NodeInfo]:
    """The NUMA nodes with memory."""
    return [NodeInfo(**row) for row in _memclient.list_nodes()]


def broker() -> BrokerInfo:
    """What the broker is, has and has done."""
    return BrokerInfo(**_seconds(_memclient.broker_query(), "uptime_ms"))
