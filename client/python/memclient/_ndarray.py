# SPDX-License-Identifier: Apache-2.0
"""NumPy's arrays on buffers. Whoever imports this wants NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy

from . import _memclient
from ._buffers import Buffer, view
from ._memclient import array_at, check_extent
from ._pickling import find_token, keep_token, make_token, open_kept, settings
from ._pool import Block, Pool, block_at, has_pools, memory_at, take_block

__all__ = ["Array"]

# how files of arrays say a type
_format: Any = numpy.lib.format

_Reduced = tuple[Any, ...]


class Array(numpy.ndarray[Any, Any]):
    """An array in a buffer, whose pickle is a token of the buffer and the array's geometry.

    It is made by `empty`, `zeros`, `array` and `frombuffer`, and is an ndarray in everything else. Views and slices of
    it are Arrays, results of computations are ndarrays. Copies, whose memory is their own, are pickled as ndarrays are.
    Those that lie in a block of a Pool are given away by pickling, as Pool says; all else here is about the others.

    A pickle of it keeps the memory for a time; see `set_pickling`. Where it is loaded, the array is the same memory, at
    the same address unless something else is there, and read-only if this one is. Do not store such pickles: they end.
    Pickling raises LimitReached, an OSError, at the limit of tokens, and NoRight if the buffer was opened without
    SHARE.
    """

    __module__ = "memclient"

    @property
    def buffer(self) -> Buffer | None:
        """The buffer that its first element lies in, a pool's slab for one; None if it has memory of its own."""
        found = _memclient.at(Buffer, self.__array_interface__["data"][0])
        return found[0] if found else None

    @property
    def block(self) -> Block | None:
        """The block of a Pool that its first element lies in; None if it lies in none."""
        return block_at(self.__array_interface__["data"][0])

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        array = super().__array_wrap__(array, context)
        if array is self:
            return array
        return array[()] if array.shape == () else array.view(numpy.ndarray)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_array(self) or self.view(numpy.ndarray).__reduce_ex__(protocol)

    def __reduce__(self) -> Any:
        return reduce_array(self) or self.view(numpy.ndarray).__reduce__()


def _describe(dtype: numpy.dtype[Any]) -> Any:
    """A type as text, or as a list of fields; None if that cannot say all of it."""
    # types are equal whatever their metadata are
    return None if dtype.hasobject or dtype.metadata else _describe_plain(dtype)


@functools.lru_cache(64)
def _describe_plain(dtype: numpy.dtype[Any]) -> Any:
    text = dtype.str if dtype.names is None else _format.dtype_to_descr(dtype)
    try:
        return text if _dtype(text) == dtype else None
    except (TypeError, ValueError):
        return None


def _dtype(description: Any) -> numpy.dtype[Any]:
    if type(description) is str:
        return _dtype_of_text(description)
    if not isinstance(description, list):
        raise TypeError("this is no pickle of memclient's")
    return _dtype_of(description)


@functools.lru_cache(64)
def _dtype_of_text(text: str) -> numpy.dtype[Any]:
    return _dtype_of(text)


def _dtype_of(description: Any) -> numpy.dtype[Any]:
    dtype: numpy.dtype[Any] = _format.descr_to_dtype(description)
    if dtype.hasobject:
        raise ValueError("objects cannot be shared")
    return dtype


def reduce_array(array: numpy.ndarray[Any, Any]) -> _Reduced | None:
    """How to pickle an array as a token; None if it does not lie in a buffer, or has elements that cannot be shared."""
    found = array_at(array)
    if found is None or (has_pools() and block_at(found[1]) is not None):
        return _reduce_any(array)
    description = _describe(array.dtype)
    if description is None:
        return None
    number, address, offset = found
    granted = find_token(number, True)
    if granted is None:
        opened = _memclient.at(Buffer, address)
        if opened is None:
            return None
        granted = make_token(opened[0], True)
    return open_array, (*granted, offset, array.shape, array.strides, description)


def _reduce_any(array: numpy.ndarray[Any, Any]) -> _Reduced | None:
    """The same of what array_at() knows nothing of: it is in a pool, read-only, not contiguous, or in no buffer."""
    if not array.nbytes:
        return None
    found = memory_at(array.__array_interface__["data"][0])
    description = _describe(array.dtype)
    if not found or description is None:
        return None
    memory, offset, size = found
    geometry = (offset, array.shape, array.strides, description)
    flags = array.flags
    writable = flags.writeable
    if flags.c_contiguous:
        if offset + array.nbytes > size:
            return None
    else:
        try:
            check_extent(*geometry[:3], array.itemsize, size)
        except ValueError:
            return None
    if isinstance(memory, Block):
        return open_block_array, (memory.pool, memory._give(0, True), writable and not settings().readonly, *geometry)
    return open_array, (*keep_token(memory, writable and not memory.readonly), *geometry)


def open_array(
    token: bytes,
    rights: int,
    counted: bool,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    description: Any,
) -> Array:
    """The array of a pickle. Nothing of its geometry is believed."""
    dtype = _dtype(description)
    buffer = open_kept(Buffer, token, rights, counted)
    check_extent(offset, shape, strides, dtype.itemsize, buffer.size)
    return lay(buffer, shape, dtype, offset, strides)


def open_block_array(
    pool: Pool,
    reference: bytes,
    writable: bool,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    description: Any,
) -> Array:
    """The same, of a pickle that gives a block away."""
    dtype = _dtype(description)
    block = take_block(pool, reference)
    check_extent(offset, shape, strides, dtype.itemsize, pool.block_size)
    array = lay(block, shape, dtype, offset, strides)
    if not writable:
        array.flags.writeable = False
    return array


def lay(
    buffer: Buffer | Block,
    shape: tuple[int, ...],
    dtype: numpy.dtype[Any],
    offset: int = 0,
    strides: tuple[int, ...] | None = None,
    order: Any = None,
) -> Array:
    """An array in a buffer or block. NumPy does not hold the view of what it gets as `buffer`, but of what frombuffer() gets."""
    memory = numpy.frombuffer(view(buffer), numpy.uint8)
    return Array(shape, dtype, memory, offset, strides, order)
