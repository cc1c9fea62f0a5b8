# SPDX-License-Identifier: Apache-2.0
"""Shareable memory from the memory broker memoryd.

    import memclient

    buffer = memclient.alloc(64 << 20)              # bytes; zeroed, all pages there
    memoryview(buffer)[:5] = b"hello"
    token = buffer.share(rights="r")                # 32 bytes: send them to another process, which does
    with memclient.open(token) as other:            # the same memory, read-only, at the same address
        print(bytes(memoryview(other)[:5]))

    array = memclient.zeros((1024, 1024), "f4")     # a NumPy array in a buffer
    queue.put(array)                                # of multiprocessing: nothing is copied, here or there

    pool = memclient.Pool("engine/kv", 2 << 20)     # blocks of 2 MiB that the processes of an engine share
    queue.put(pool.array([1, 2, 3]))                # who gets it has the block: without a call of the broker

A buffer is memory that the broker keeps, not a process: it lives as long as a process holds it or has it mapped, or a
name or a keeping token keeps it, and it is freed when the last of them is gone, however they end. A restart of the
broker changes nothing; calls just take longer meanwhile.

help(memclient.Array) has more about arrays, and help(memclient.shared_memory) about what takes the place of
multiprocessing.shared_memory; memclient-python(7) is an overview.

Sizes, offsets and addresses are in bytes, times in seconds. Errors are subclasses of `Error`, which is an OSError.
The broker is found as memclient(3) tells: by the environment's MEMORYD_SOCKET, or where it usually is; where none is, a
private one is started.

Every function may be called from any thread, and gives up the interpreter's lock while it may wait. The handlers of
signals run meanwhile, and what they raise, as KeyboardInterrupt, ends the wait.
After fork() the child shares the memory of its parent's buffers, and has a session of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arrays import array, empty, frombuffer, zeros
from ._buffers import Buffer, BufferInfo, Holder, Pages, Placement, State, alloc, open, unbind
from ._dumps import dumps, loads
from ._events import Event, EventKind, Events, events
from ._listings import (
    BrokerInfo,
    NameInfo,
    NodeInfo,
    PoolInfo,
    SessionInfo,
    TokenInfo,
    broker,
    buffers,
    names,
    nodes,
    pools,
    sessions,
    tokens,
)
from ._memclient import library_version
from ._numpy import from_dlpack, numpy_allocator
from ._pickling import Pickling, set_pickling
from ._pool import Block, Pool, PoolStatus
from ._reducers import install
from ._rights import MANAGE, READ, SHARE, WRITE, Right
from ._tokens import Token, revoke
from .errors import (
    Busy,
    Error,
    Exists,
    Interrupted,
    Invalid,
    LimitReached,
    NoBroker,
    NoRight,
    NotFound,
    NotSupported,
    PoolFull,
    Published,
    Stale,
    TimedOut,
    TokenError,
)

if TYPE_CHECKING:
    from ._ndarray import Array as Array

__all__ = [
    "Block",
    "BrokerInfo",
    "Buffer",
    "BufferInfo",
    "Busy",
    "Error",
    "Event",
    "EventKind",
    "Events",
    "Exists",
    "Holder",
    "Interrupted",
    "Invalid",
    "LimitReached",
    "MANAGE",
    "NameInfo",
    "NoBroker",
    "NoRight",
    "NodeInfo",
    "NotFound",
    "NotSupported",
    "Pages",
    "Pickling",
    "Placement",
    "Pool",
    "PoolFull",
    "PoolInfo",
    "PoolStatus",
    "Published",
    "READ",
    "Right",
    "SHARE",
    "SessionInfo",
    "Stale",
    "State",
    "TimedOut",
    "Token",
    "TokenError",
    "TokenInfo",
    "WRITE",
    "alloc",
    "array",
    "broker",
    "buffers",
    "dumps",
    "empty",
    "events",
    "from_dlpack",
    "frombuffer",
    "install",
    "library_version",
    "loads",
    "names",
    "nodes",
    "numpy_allocator",
    "open",
    "pools",
    "revoke",
    "sessions",
    "set_pickling",
    "tokens",
    "unbind",
    "zeros",
]

#: The library's version.
__version__: str = library_version

# programs know all of it by this name
for _name in __all__:
    _thing: Any = globals()[_name]
    if isinstance(getattr(_thing, "__module__", None), str):
        _thing.__module__ = __name__
    if hasattr(_thing, "_fields"):
        # help() would say ForwardRef('int') and "Alias for field number 0"
        _thing.__new__.__annotations__ = {
            name: getattr(kind, "__forward_arg__", kind) for name, kind in _thing.__annotations__.items()
        }
        for _field in _thing._fields:
            getattr(_thing, _field).__doc__ = None
del _name, _thing, _field


def __getattr__(name: str) -> Any:
    """Array, which is NumPy's child, and is made when it is wanted: it imports NumPy."""
    if name != "Array":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._ndarray import Array

    return Array
