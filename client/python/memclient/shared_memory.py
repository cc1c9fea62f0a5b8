# SPDX-License-Identifier: Apache-2.0
"""SharedMemory and ShareableList as of multiprocessing.shared_memory, in buffers of the broker.

    from memclient import shared_memory             # instead of: from multiprocessing import shared_memory

A segment is a buffer with a name, and lives until it is unlinked; nothing tracks it, so no process destroys it for
others by ending. All of its pages are there, so writing to it never fails. It is at the same address in every process,
and its memory stays as long as an array or a view of it, whatever is closed.

Errors are those of Python's classes: FileExistsError, FileNotFoundError, ValueError; and those of memclient.alloc().
"""

from __future__ import annotations

import multiprocessing.shared_memory as _python
import os
import types
from typing import Any

from ._buffers import Buffer, alloc, open, unbind, view
from .errors import Exists, NotFound

__all__ = ["SharedMemory", "ShareableList"]

_EXCLUSIVELY = os.O_CREAT | os.O_EXCL


class SharedMemory(_python.SharedMemory):
    """Makes a segment of shared memory, or attaches to one.

    name    under which it is found; None with create=True: one is made up
    create  True: makes a new segment. FileExistsError: there is one of that name
    size    of a new segment, in bytes
    track   means nothing here: no segment is tracked
    """

    _buffer: Buffer | None = None
    _buf: memoryview | None
    _flags: int
    _name: str
    _size: int

    # pylint: disable-next=super-init-not-called
    def __init__(self, name: str | None = None, create: bool = False, size: int = 0, *, track: bool = True) -> None:
        if not size >= 0:
            raise ValueError("'size' must be a positive integer")
        if create:
            self._flags = _EXCLUSIVELY | os.O_RDWR
            if size == 0:
                raise ValueError("'size' must be a positive number different from zero")
        if name is None and not self._flags & os.O_EXCL:
            raise ValueError("'name' can only be None if create=True")
        if name is not None:
            self._name = "/" + name.removeprefix("/")
            self._buffer = self._make(size)
        while self._buffer is None:
            # Python's, so that programs know the names of these, too
            self._name = "/" + _python._make_filename().removeprefix("/")  # type: ignore[attr-defined]
            try:
                self._buffer = alloc(size, name=self.name)
            except Exists:
                continue
        self._size = self._buffer.size
        self._buf = view(self._buffer)

    def _make(self, size: int) -> Buffer:
        """By the flags, which classes of programs may set: makes it, or opens it."""
        if self._flags & _EXCLUSIVELY == _EXCLUSIVELY:
            return alloc(size, name=self.name)
        try:
            return open(self.name)
        except NotFound:
            if not self._flags & os.O_CREAT or not size:
                raise
            return alloc(size, name=self.name)

    def close(self) -> None:
        """Gives the memory back, unless arrays or views of `buf` are left: with the last of those."""
        self._buf = self._buffer = None

    def unlink(self) -> None:
        """Removes the name; the memory is freed when nobody has it. FileNotFoundError: it is removed already."""
        unbind(self.name)


def _constructor() -> Any:
    """Python's, which looks up SharedMemory among its globals, and finds ours there."""
    theirs: Any = _python.ShareableList.__init__
    ours = types.FunctionType(
        theirs.__code__, {**vars(_python), "SharedMemory": SharedMemory}, "__init__", theirs.__defaults__
    )
    ours.__kwdefaults__ = theirs.__kwdefaults__
    return ours


class ShareableList(_python.ShareableList[Any]):
    """A list of fixed size in shared memory, of int, float, bool, str, bytes and None, as of Python.

    sequence  the values of a new list
    name      of the segment, which is made or attached to
    """

    __init__ = _constructor()
