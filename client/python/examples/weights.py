#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights that one process reads from a file, and all others of the machine attach to.

    weights.py FILE.npz [VERSION]

The first one reads them into a buffer, publishes it, so that nobody can write to it any more, and binds the name: who
finds that has all of them. The name keeps the weights; later processes begin at once, also after the first has ended.

    python3 -c 'import memclient; memclient.unbind("example/weights/v1")'       frees them, when the last has ended
"""

import json
import sys
import time
import zipfile
from typing import Any, cast

import numpy as np

import memclient

ALIGNMENT = 64
FORMAT: Any = np.lib.format  # which has no types


def read(file: str) -> memclient.Buffer:
    """A file of numpy.savez(), in a buffer: the length of a description, that, and the arrays. None is copied."""
    with zipfile.ZipFile(file) as archive:
        members, place = {}, 0
        for member in archive.namelist():
            with archive.open(member) as stream:
                FORMAT.read_magic(stream)
                shape, fortran, dtype = FORMAT.read_array_header_1_0(stream)
            place = -(-place // ALIGNMENT) * ALIGNMENT
            members[member.removesuffix(".npy")] = [place, shape, dtype.str, "F" if fortran else "C"]
            place += int(np.prod(shape)) * dtype.itemsize
        description = json.dumps(members).encode()
        first = -(-(8 + len(description)) // ALIGNMENT) * ALIGNMENT
        buffer = memclient.alloc(first + place, publishable=True)
        with memclient.frombuffer(buffer, "u1").data as memory:
            memory[:8] = len(description).to_bytes(8, "little")
            memory[8 : 8 + len(description)] = description
            for name, (place, shape, dtype, _) in members.items():
                with archive.open(f"{name}.npy") as stream:
                    FORMAT.read_magic(stream)
                    FORMAT.read_array_header_1_0(stream)
                    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                    cast(zipfile.ZipExtFile, stream).readinto(memory[first + place : first + place + size])
    buffer.publish()
    return buffer


def weights(buffer: memclient.Buffer) -> dict[str, np.ndarray[Any, Any]]:
    """Views of the buffer, which they keep."""
    length = int(memclient.frombuffer(buffer, "u8", 1)[0])
    members = json.loads(bytes(memclient.frombuffer(buffer, "u1", length, 8)))
    first = -(-(8 + length) // ALIGNMENT) * ALIGNMENT
    return {
        name: memclient.frombuffer(buffer, dtype, int(np.prod(shape)), first + place).reshape(shape, order=order)
        for name, (place, shape, dtype, order) in members.items()
    }


def load(file: str, version: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    """The weights, wherever they come from. A new version of them has a new name, beside the old one."""
    name = f"example/weights/v{version}"
    try:
        return weights(memclient.open(name, rights="r"))
    except memclient.NotFound:
        buffer = read(file)
    try:
        buffer.bind(name)
    except memclient.Exists:  # another process was as quick: its are the ones
        buffer = memclient.open(name, rights="r")
    return weights(buffer)


if __name__ == "__main__":
    start = time.perf_counter()
    loaded = load(sys.argv[1], *map(int, sys.argv[2:]))
    took = time.perf_counter() - start
    for name, array in loaded.items():
        print(f"{name}: {array.shape} of {array.dtype}, sum {array.sum()}")
    print(f"{took * 1000:.1f} ms", file=sys.stderr)
