# SPDX-License-Identifier: Apache-2.0
"""Functions that make arrays. NumPy is imported when the first of them is called."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._buffers import Buffer, alloc, view
from ._pool import Block

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike, DTypeLike

    from ._ndarray import Array

__all__ = ["array", "empty", "frombuffer", "zeros"]


def _plain_dtype(dtype: DTypeLike) -> numpy.dtype[Any]:
    import numpy

    plain: numpy.dtype[Any] = numpy.dtype(dtype)
    if plain.hasobject:
        raise TypeError("an array of objects cannot be shared: they are this process's")
    return plain


def check_geometry(
    shape: int | Sequence[int], dtype: DTypeLike, order: str
) -> tuple[tuple[int, ...], numpy.dtype[Any]]:
    """Of a new array: its shape as a tuple, and the type of its elements."""
    plain = _plain_dtype(dtype)
    # a number, or several
    sizes: Any = (shape,) if hasattr(shape, "__index__") else shape
    numbers = tuple(operator.index(number) for number in sizes)
    if any(number < 0 for number in numbers):
        raise ValueError(f"a shape has no negative numbers: {numbers}")
    if not isinstance(order, str) or order not in ("C", "F"):
        raise ValueError(f'order is "C" or "F", not {order!r}')
    return numbers, plain


def copy_into(source: ArrayLike, dtype: DTypeLike, make: Callable[..., Array]) -> Array:
    """A copy in what make(shape, dtype, order) returns."""
    import numpy

    elements = numpy.asarray(source, dtype)
    fortran = elements.flags.f_contiguous and not elements.flags.c_contiguous
    made = make(elements.shape, elements.dtype, "F" if fortran else "C")
    made[...] = elements
    return made


def empty(shape: int | Sequence[int], dtype: DTypeLike = float, order: str = "C", **options: Any) -> Array:
    """A new array in a buffer of its own, which is zeroed. Processes share it by sending it; see memclient.Array.

    shape, dtype, order  as of numpy.empty()
    options              those of memclient.alloc(): name=, pool=, node=, pages=, timeout= and so on

    Errors are those of memclient.alloc(): PoolFull, TimedOut, LimitReached and so on. TypeError: elements that are
    objects. ImportError: there is no NumPy.
    """
    from ._ndarray import lay

    numbers, plain = check_geometry(shape, dtype, order)
    return lay(alloc(max(math.prod(numbers) * plain.itemsize, 1), **options), numbers, plain, order=order)


def zeros(shape: int | Sequence[int], dtype: DTypeLike = float, order: str = "C", **options: Any) -> Array:
    """A new array of zeros in a buffer of its own: the same as memclient.empty()."""
    return empty(shape, dtype, order, **options)


def array(source: ArrayLike, dtype: DTypeLike = None, **options: Any) -> Array:
    """A new array in a buffer of its own, with a copy of `source`: an array, or what numpy.array() takes.

    dtype    of the elements; by default those of `source`
    options  those of memclient.alloc()

    Errors are those of memclient.empty().
    """
    return copy_into(source, dtype, functools.partial(empty, **options))


def frombuffer(buffer: Buffer | Block, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array of memory that is there, as of numpy.frombuffer(): read-only if the buffer is.

    count   of elements; -1 = as many as there are
    offset  of the first of them in bytes

    ValueError: the buffer is smaller than that, or closed.
    """
    import numpy

    from ._ndarray import Array

    if not isinstance(buffer, (Buffer, Block)):
        raise TypeError(f"no memclient.Buffer, nor a Block: {type(buffer).__name__}")
    made: Array = numpy.frombuffer(view(buffer), _plain_dtype(dtype), count, offset).view(Array)
    return made
