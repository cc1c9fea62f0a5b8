# SPDX-License-Identifier: Apache-2.0
"""Pickling of others' classes, where their memory is a buffer."""

from __future__ import annotations

import copyreg
import multiprocessing.reduction
import sys
from typing import Any

__all__ = ["install"]


def install() -> None:
    """From now on plain NumPy arrays and PyTorch tensors that lie in a buffer are pickled as memclient.Arrays are.

    All others are pickled as before, but for arrays at protocol 5: those are copied into the pickle, also where the
    pickler would take them out of band.

    Arrays: by whatever pickles: pickle itself, multiprocessing, concurrent.futures, joblib, cloudpickle. So do not
    store such pickles; they end as set_pickling() says. (joblib moves arrays of more than its max_nbytes into files of
    its own before it pickles; max_nbytes=None leaves them.)

    Tensors: by multiprocessing, torch.multiprocessing, concurrent.futures and joblib; torch.save() and pickle copy
    them. They arrive writable, as PyTorch has no others: those in read-only buffers are copied.

    NumPy, PyTorch and joblib are not imported: call it after they are. Calling it again is allowed.
    """
    if "numpy" in sys.modules:
        import numpy

        copyreg.pickle(numpy.ndarray, _reduce_array)  # type: ignore[arg-type]
    if "torch" in sys.modules:
        import torch

        # as imported, PyTorch puts its own there
        multiprocessing.reduction.ForkingPickler.register(torch.Tensor, _reduce_forking)
        for name in ("loky.backend.reduction", "joblib.externals.loky.backend.reduction"):
            if name in sys.modules:
                sys.modules[name].register(torch.Tensor, _reduce_tensor)


def _reduce_array(array: Any) -> tuple[Any, ...]:
    from ._ndarray import reduce_array

    reduced: tuple[Any, ...] = reduce_array(array) or array.__reduce__()
    return reduced


def _reduce_tensor(tensor: Any) -> tuple[Any, ...]:
    from ._tensors import reduce_tensor

    reduced: tuple[Any, ...] = reduce_tensor(tensor) or tensor.__reduce_ex__(2)
    return reduced


def _reduce_forking(tensor: Any) -> Any:
    from torch.multiprocessing import reductions

    from ._tensors import reduce_tensor

    reduced: Any = reduce_tensor(tensor)
    if reduced is None:
        others: Any = reductions
        reduced = others.reduce_tensor(tensor)
    return reduced
