# SPDX-License-Identifier: Apache-2.0
"""Plain NumPy arrays whose memory is a buffer, and arrays that come by DLPack."""

from __future__ import annotations

import operator
import types
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import _memclient
from ._buffers import Buffer, Pages, Placement, memory_options
from ._memclient import check_extent
from ._pool import memory_at

if TYPE_CHECKING:
    import numpy

__all__ = ["from_dlpack", "numpy_allocator"]


class numpy_allocator:  # pylint: disable=invalid-name
    """Puts the memory of NumPy's new arrays into buffers, from a size on.

        with memclient.numpy_allocator(1 << 20):
            sums = images.sum(axis=0)               # in a buffer, if it has 1 MiB or more

    size  bytes, from which on an array's memory is a buffer of its own; less is malloc()'s
    pool, node, pages, placement, weights, part_size  where it comes from, as of memclient.alloc()

    It holds for what is allocated in the `with` block: in this thread, or in this task of asyncio, since NumPy keeps its
    handler in the context (contextvars). A thread that is started there does not have it. The arrays stay as they are
    after the block, and their memory is freed with them.

    They are ndarrays; after memclient.install() they are pickled as tokens. NumPy holds the interpreter's lock while
    memory is allocated. MemoryError: there is no room. ImportError: there is no NumPy of 1.22 or later.
    """

    def __init__(
        self,
        size: int = 1 << 20,
        *,
        pool: str | None = None,
        node: int | Iterable[int] | None = None,
        pages: Pages | str | int | None = None,
        placement: Placement | str | None = None,
        weights: Sequence[int] | None = None,
        part_size: int = 0,
    ) -> None:
        if operator.index(size) <= 0:
            raise ValueError(f"a buffer has 1 byte or more, not {size}")
        options, nodes, many = memory_options(pool, node, pages, placement, weights, part_size)
        self._table = _functions()
        self._handler = _memclient.make_numpy_handler(Buffer, size, options, None, nodes, many)
        self._former: list[Any] = []

    def __enter__(self) -> None:
        self._former.append(_memclient.set_numpy_handler(self._table, self._handler))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        _memclient.set_numpy_handler(self._table, self._former.pop())


def _functions() -> Any:
    """NumPy's table of functions for extensions."""
    import numpy

    if tuple(map(int, numpy.__version__.split(".")[:2])) < (1, 22):
        raise ImportError(f"NumPy {numpy.__version__} has no allocators: 1.22 has")
    core: Any = getattr(numpy, "_core", None) or numpy.core
    return core._multiarray_umath._ARRAY_API


def from_dlpack(source: Any) -> numpy.ndarray[Any, Any]:
    """An array of the memory that an object has, as a tensor of PyTorch's does: without a copy.

    source  has __dlpack__(), and its memory is the processor's

    If it lies in a buffer or in a block, what is returned is a memclient.Array, which can be sent on; it is writable if
    the buffer is. Else it is as numpy.from_dlpack() makes it. Errors are those of that.

    The other way, NumPy's and PyTorch's from_dlpack() take Arrays, Buffers and Blocks, of which they make bytes.
    """
    import numpy

    from ._ndarray import lay

    array: numpy.ndarray[Any, Any] = numpy.from_dlpack(source)
    found = memory_at(array.__array_interface__["data"][0]) if array.nbytes else None
    if not found:
        return array
    memory, offset, size = found
    try:
        check_extent(offset, array.shape, array.strides, array.itemsize, size)
    except ValueError:
        return array
    return lay(memory, array.shape, array.dtype, offset, array.strides)
