# SPDX-License-Identifier: Apache-2.0
"""What happens at the broker, as it happens."""

from __future__ import annotations

import asyncio
import enum
import select
import time
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

from . import _memclient
from ._times import milliseconds

__all__ = ["Event", "EventKind", "Events", "events"]


class EventKind(enum.IntFlag):
    """Kinds of events; a bit mask.

    PRESSURE   a pool filled up or emptied
    DISCARDED  another process discarded part of a buffer, which reads as zeros
    NAME       a name was bound or unbound
    SHUTDOWN   the broker is stopping; nothing is freed
    LOST       events were missed; everybody gets it
    HELD       another process began to hold a buffer
    LEFT       one holds it no more
    DIED       one holds it no more since it died; this never waits for how
    DEATH      how a process died that had a session: `end` and `exit_status`
    PUBLISHED  another process published a buffer
    MOVED      another process moved a buffer to another node
    DESTROYED  a buffer has ended
    HISTORY    `memctl events` has something new
    """

    PRESSURE = 1
    DISCARDED = 2
    NAME = 4
    SHUTDOWN = 8
    LOST = 16
    HELD = 32
    LEFT = 64
    DIED = 128
    DEATH = 256
    PUBLISHED = 512
    MOVED = 1024
    DESTROYED = 2048
    HISTORY = 4096


class Event(NamedTuple):
    """Something that has happened.

    level        PRESSURE: 0 = below 85 % used, 1 = above it, 2 = above 95 %
    buffer       the buffer's id; 0 of PRESSURE, SHUTDOWN, LOST, DEATH and HISTORY
    bound        NAME: bound, else unbound
    pool         PRESSURE
    name         NAME
    session      HELD, LEFT, DIED, DEATH: whose; 0 = only the buffer's user may know
    uid          likewise its user; None = only that and administrators may know
    pid          likewise its process
    end          DEATH: 3 = exited, 4 = killed by a signal, 5 = nobody knows, 7 = killed, probably for want of memory
    exit_status  DEATH: exit status, or number of the signal
    """

    kind: EventKind
    level: int
    buffer: int
    bound: bool
    pool: str
    name: str
    session: int
    uid: int | None
    pid: int | None
    end: int
    exit_status: int


_SIMPLE = EventKind.PRESSURE | EventKind.DISCARDED | EventKind.NAME | EventKind.SHUTDOWN
_OF_BUFFER = (
    EventKind.HELD
    | EventKind.LEFT
    | EventKind.DIED
    | EventKind.DEATH
    | EventKind.DISCARDED
    | EventKind.PUBLISHED
    | EventKind.MOVED
    | EventKind.DESTROYED
)


def _take() -> Event | None:
    row = _memclient.event_next()
    if row is None:
        return None
    uid, pid = row.pop("uid"), row.pop("pid")
    known = pid != 0
    return Event(
        EventKind(row.pop("kind")), uid=uid if known else None, pid=pid if known else None, **row
    )


class Events(Iterator[Event], AsyncIterator[Event]):
    """What `events()` returns: for `for`, and in a loop of asyncio for `async for`."""

    def __init__(self, patience: float | None) -> None:
        self._patience = patience

    def __next__(self) -> Event:
        end = None if self._patience is None else time.monotonic() + self._patience
        while (event := _take()) is None:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise StopIteration
            # the descriptor is another one after fork(); a connection that is lost makes it readable
            poll = select.poll()
            poll.register(_memclient.event_fd(), select.POLLIN)
            poll.poll(None if left is None else left * 1000)
        return event

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        try:
            return await asyncio.wait_for(self._come(), self._patience)
        except TimeoutError:
            raise StopAsyncIteration from None

    async def _come(self) -> Event:
        loop = asyncio.get_running_loop()
        while (event := _take()) is None:
            readable = asyncio.Event()
            fd = _memclient.event_fd()
            loop.add_reader(fd, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(fd)
        return event


def events(
    kinds: EventKind | None = None,
    *,
    buffer: int | None = None,
    name: str | None = None,
    timeout: float | None = None,
) -> Events:
    """Gives events of these kinds from now on, until none has come for `timeout` seconds; None = forever.

    Of everything that this process may see, or of one buffer, by its id, or of one name, bound or not. Without `kinds`:
    PRESSURE, DISCARDED, NAME and SHUTDOWN of everything, who holds it and what becomes of it of a buffer, NAME of a name.

    What a process subscribes to is one thing for all of its threads and iterators: for everything, for each buffer and
    for each name the last call counts, and who asks next gets the next event. `EventKind(0)` ends a subscription.

    Raises NoRight if the buffer is another user's and this process does not hold it, Stale if it has ended, and
    LimitReached if too many are subscribed to (see memclient_event(3)).
    """
    patience = None if timeout is None else milliseconds(timeout, "timeout") / 1000
    if buffer is not None and name is not None:
        raise TypeError("events are of a buffer or of a name, not of both")
    if buffer is not None:
        _memclient.event_subscribe_buffer(buffer, int(_OF_BUFFER if kinds is None else EventKind(kinds)))
    elif name is not None:
        _memclient.event_subscribe_name(name, int(EventKind.NAME if kinds is None else EventKind(kinds)))
    else:
        _memclient.event_subscribe(int(_SIMPLE if kinds is None else EventKind(kinds)) & ~int(EventKind.LOST))
    return Events(patience)
