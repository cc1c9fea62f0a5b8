# SPDX-License-Identifier: Apache-2.0
"""Objects in a buffer: their pickle of protocol 5, and what that leaves out of band.

The buffer begins with a header: the format, the number of out-of-band parts, the length of the pickle and of each part.
The pickle follows, and the parts, each at the next multiple of 64 bytes.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from typing import Any

from ._buffers import Buffer, alloc, open, view
from ._pickling import settings
from ._rights import parse
from ._tokens import Token

__all__ = ["dumps", "loads"]

_FORMAT = b"memclnt1"
_START = struct.Struct("<8sQQ")
_ALIGNMENT = 64


class _Pickler(pickle.Pickler):
    """Puts arrays into the new buffer that lie in others, since the tokens of those would expire."""

    def reducer_override(self, thing: Any) -> Any:
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(thing, numpy.ndarray):
            return NotImplemented
        array = sys.modules.get(f"{__package__}._ndarray")
        if type(thing) is numpy.ndarray or array is not None and type(thing) is array.Array:
            return thing.view(numpy.ndarray).__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return NotImplemented


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def dumps(thing: Any, *, rights: int | str = "r", **options: Any) -> Token:
    """Puts an object into a new buffer, and returns a token, with which loads() makes it again in any process.

    It is pickled by protocol 5. What its parts leave out of band, as the elements of arrays, is copied into the same
    buffer, and not copied by loads().

    rights   what loads() may ask for: "r", or "rw" if who loads it may write to that memory, which all of them share
    options  those of memclient.alloc(): name=, pool=, and so on. By a name, which keeps it, it can be loaded as well

    The token keeps the buffer for a time, and ends then: see set_pickling(). Errors are those of memclient.alloc(),
    Buffer.share() and pickle.dumps().
    """
    granted = parse(rights)
    parts: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, pickle.HIGHEST_PROTOCOL, buffer_callback=parts.append).dump(thing)
    pieces = [stream.getbuffer(), *(part.raw() for part in parts)]
    header = _START.pack(_FORMAT, len(parts), pieces[0].nbytes) + struct.pack(
        f"<{len(parts)}Q", *(piece.nbytes for piece in pieces[1:])
    )
    size = len(header)
    places = []
    for piece in pieces:
        size = _aligned(size)
        places.append(size)
        size += piece.nbytes
    with alloc(size, **options) as buffer:
        with view(buffer) as memory:
            memory[: len(header)] = header
            for place, piece in zip(places, pieces):
                memory[place : place + piece.nbytes] = piece
        now = settings()
        return buffer.share(rights=granted, keep=True, uses=now.uses, expires=now.keep)


def loads(what: bytes | str | int | Buffer, *, rights: int | str = "r") -> Any:
    """Makes an object again that dumps() has put into a buffer.

    what    its token, the buffer's name or descriptor, or the Buffer
    rights  "r": arrays are read-only; "rw": they can be written to, as dumps() allows it

    What lies in the buffer keeps it. As pickle.loads() does, this runs what the pickle tells it to: load only what
    comes from whom you trust. ValueError: there is no such object in the buffer, or not all of it. Other errors are those of
    memclient.open() and pickle.loads().
    """
    buffer = what if isinstance(what, Buffer) else open(what, rights=rights)
    memory = view(buffer) if parse(rights) & 2 else view(buffer).toreadonly()
    # who made it may still write to it: every number is read once
    start = bytes(memory[: _START.size])
    if len(start) < _START.size or start[:8] != _FORMAT:
        raise ValueError("nothing that dumps() has made is in this buffer")
    _, number, length = _START.unpack(start)
    place = _START.size + 8 * number
    if place > memory.nbytes:
        raise ValueError(f"a buffer of {memory.nbytes} bytes has no {number} parts")
    pieces = []
    for nbytes in (length, *struct.unpack(f"<{number}Q", bytes(memory[_START.size : place]))):
        place = _aligned(place)
        if place + nbytes > memory.nbytes:
            raise ValueError(f"bytes {place} to {place + nbytes} are not within a buffer of {memory.nbytes} bytes")
        pieces.append(memory[place : place + nbytes])
        place += nbytes
    return pickle.loads(bytes(pieces[0]), buffers=pieces[1:])
