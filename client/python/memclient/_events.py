# SPDX-License-Identifier: Apache-2.0
"""What happens at the broker, as it happens."""

from __future__ import annotations

import enum
import select
import time
from collections.abc import Iterator
from typing import NamedTuple

from . import _memclient
from ._times import milliseconds

__all__ = ["Event", "EventKind", "events"]


class EventKind(enum.IntFlag):
    """Kinds of events; a bit mask."""

    PRESSURE = 1  #: a pool filled up or emptied
    DISCARDED = 2  #: another process discarded part of a buffer that this one holds
    NAME = 4  #: a name was bound or unbound
    SHUTDOWN = 8  #: the broker is stopping; nothing is freed
    LOST = 16  #: events were missed; everybody gets it


class Event(NamedTuple):
    """Something that has happened."""

    kind: EventKind
    level: int  #: PRESSURE: 0 = below 85 % used, 1 = above it, 2 = above 95 %
    buffer: int  #: DISCARDED, NAME: the buffer's id
    bound: bool  #: NAME: bound, else unbound
    pool: str  #: PRESSURE
    name: str  #: NAME


def events(kinds: EventKind = EventKind(15), *, timeout: float | None = None) -> Iterator[Event]:
    """Yields events of these kinds from now on, until none has come for `timeout` seconds; None = for ever.

    What a process subscribes to is one thing for all of its threads: the last call counts.
    """
    patience = None if timeout is None else milliseconds(timeout, "timeout") / 1000
    _memclient.event_subscribe(int(EventKind(kinds)) & ~int(EventKind.LOST))
    return _take_events(patience)


def _take_events(patience: float | None) -> Iterator[Event]:
    last = time.monotonic()
    while True:
        row = _memclient.event_next()
        if row is not None:
            yield Event(EventKind(row.pop("kind")), **row)
            last = time.monotonic()
            continue
        left = None if patience is None else last + patience - time.monotonic()
        if left is not None and left <= 0:
            return
        # the descriptor is another one after fork(); a connection that is lost makes it readable
        poll = select.poll()
        poll.register(_memclient.event_fd(), select.POLLIN)
        poll.poll(None if left is None else left * 1000)
