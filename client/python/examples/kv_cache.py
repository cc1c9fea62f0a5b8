#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A region into which the ranks of an inference engine offload blocks of their KV cache.

    kv_cache.py rank NUMBER STEPS       a worker: offloads blocks, and loads what it finds, also a former worker's
    kv_cache.py server STEPS            looks up what all ranks have, as a scheduler wants to know
    kv_cache.py end                     removes the region

Nobody owns the region: each of them, and the broker, may be killed at any time, in any order. What a rank has offloaded
is there when it comes back; a block that one had in its hands when it died is free again.
"""

import random
import sys
import time
from typing import Any

import numpy as np

import memclient

NAME, VERSION, RANKS, ROWS = "example/kv", 1, 2, 64
BLOCK = (16, 2, 8, 32)  # tokens, key and value, heads, numbers of a head
PARTS = np.dtype([("key", "u8"), ("values", "f4", BLOCK)])
ROW = np.dtype([("key", "u8"), ("block", "V16")])  # key 0: there is no block


class Region:
    """What one rank has in the region: rows, which only its worker writes, and the blocks that they tell of."""

    def __init__(self, rank: int) -> None:
        self.pool = memclient.Pool(NAME, PARTS.itemsize, version=VERSION, keep_given=True)
        try:
            self.rows = memclient.zeros(ROWS, ROW, name=f"{NAME}/rows/{rank}")
        except memclient.Exists:
            self.rows = memclient.frombuffer(memclient.open(f"{NAME}/rows/{rank}"), ROW)

    def store(self, key: int, values: np.ndarray[Any, Any]) -> None:
        self.take(key % ROWS)  # what has its row ends
        try:
            block = self.pool.alloc()
        except memclient.Error:  # no room, or no broker just now: offloading is a help, and no duty
            return
        memclient.frombuffer(block, PARTS, 1)[0] = (key, values)
        self.park(key, block)

    def load(self, key: int) -> np.ndarray[Any, Any] | None:
        """A copy, as for a GPU."""
        if self.rows["key"][key % ROWS] != key or (block := self.take(key % ROWS)) is None:
            return None
        part = memclient.frombuffer(block, PARTS, 1).copy()[0]
        self.park(key, block)
        return part["values"] if part["key"] == key else None

    def take(self, number: int) -> memclient.Block | None:
        """The block of a row, which is empty then. None: its worker died before it had given it to the region."""
        try:
            return self.pool.take(self.rows["block"][number].tobytes()) if self.rows["key"][number] else None
        except memclient.Stale:
            return None
        finally:
            self.rows["key"][number] = 0

    def park(self, key: int, block: memclient.Block) -> None:
        """The row first: nobody would know of a block that was given away, and is in no row."""
        self.rows["block"][key % ROWS] = np.void(block.prepare())
        self.rows["key"][key % ROWS] = key
        block.give()


def work(rank: int, steps: int) -> None:
    region, hits = Region(rank), 0
    for _ in range(steps):
        key = random.randrange(1, 4 * ROWS)
        if (values := region.load(key)) is None:
            region.store(key, np.full(BLOCK, key + rank / 10, "f4"))
        elif (values != np.float32(key + rank / 10)).any():
            sys.exit(f"rank {rank}: key {key} has {values}")
        else:
            hits += 1
        time.sleep(0.0005)  # computes
    print(f"rank {rank}: {hits} of {steps} steps found what they wanted")


def serve(steps: int) -> None:
    regions = [Region(rank) for rank in range(RANKS)]
    for _ in range(steps):
        keys = set.intersection(*({int(key) for key in region.rows["key"] if key} for region in regions))
        time.sleep(0.01)
    print(f"server: all ranks have {len(keys)} blocks; {regions[0].pool.status()}")


if __name__ == "__main__":
    if sys.argv[1] == "end":
        memclient.Pool(NAME, version=VERSION).destroy()
        for rank in range(RANKS):
            memclient.unbind(f"{NAME}/rows/{rank}")
    else:
        commands: dict[str, Any] = {"rank": work, "server": serve}
        commands[sys.argv[1]](*map(int, sys.argv[2:]))
