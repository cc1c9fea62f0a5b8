# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors on buffers. Whoever imports this wants PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ._buffers import Buffer, view
from ._memclient import check_extent
from ._pickling import check_integers, keep_token, open_kept, settings
from ._pool import Block, Pool, memory_at, take_block
from .errors import Published


def reduce_tensor(tensor: Any) -> tuple[Any, ...] | None:
    """How to pickle a tensor as a token; None if it does not lie in a buffer that the receiver may write to.

    PyTorch knows no tensors that are read-only.
    """
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or not tensor.numel():
        return None
    if tensor.grad_fn is not None or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return None
    found = memory_at(tensor.data_ptr())
    if not found or settings().readonly:
        return None
    memory, offset, size = found
    if isinstance(memory, Buffer) and memory.readonly:
        return None
    itemsize = tensor.element_size()
    shape, strides = tuple(tensor.shape), tensor.stride()
    try:
        check_extent(offset, shape, tuple(stride * itemsize for stride in strides), itemsize, size)
    except ValueError:
        return None
    geometry = (offset, shape, strides, str(tensor.dtype).removeprefix("torch."), tensor.requires_grad)
    if isinstance(memory, Block):
        return open_block_tensor, (memory.pool, memory._give(0, True), *geometry)
    return open_tensor, (*keep_token(memory, True), *geometry)


def open_tensor(
    token: bytes,
    rights: int,
    counted: bool,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    name: str,
    requires_grad: bool,
) -> Any:
    """The tensor of a pickle. Nothing of its geometry is believed."""
    dtype = _check_tensor(offset, shape, strides, name)
    buffer = open_kept(Buffer, token, rights, counted)
    if buffer.readonly:
        raise Published("the buffer of this tensor can only be read, and a tensor cannot be read-only")
    return _lay(buffer, buffer.size, dtype, offset, shape, strides).requires_grad_(bool(requires_grad))


def open_block_tensor(
    pool: Pool,
    reference: bytes,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    name: str,
    requires_grad: bool,
) -> Any:
    """The same, of a pickle that gives a block away."""
    dtype = _check_tensor(offset, shape, strides, name)
    block = take_block(pool, reference)
    return _lay(block, pool.block_size, dtype, offset, shape, strides).requires_grad_(bool(requires_grad))


def _check_tensor(offset: int, shape: tuple[int, ...], strides: tuple[int, ...], name: str) -> torch.dtype:
    check_integers(offset, shape, strides)
    dtype = vars(torch).get(name) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype) or any(stride < 0 for stride in strides):
        raise ValueError("this is no tensor")
    return dtype


def _lay(
    memory: Buffer | Block,
    size: int,
    dtype: torch.dtype,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Any:
    itemsize = torch.empty((), dtype=dtype).element_size()
    check_extent(offset, shape, tuple(stride * itemsize for stride in strides), itemsize, size)
    span = 1 + sum(stride * (number - 1) for number, stride in zip(shape, strides, strict=True) if number > 1)
    # PyTorch holds what it gets, and not a view of it: so that gets one
    elements = torch.frombuffer(view(memory), dtype=dtype, count=span, offset=offset)
    return elements.as_strided(shape, strides)
