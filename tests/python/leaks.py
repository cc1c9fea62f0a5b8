#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A loop over what the package has leaves no object, no descriptor, no mapping and no memory."""

import contextlib
import copyreg
import gc
import os
import pickle
import sys

import memclient
from memclient import shared_memory
from support import PickleTest, main, memctl, skip_without

np = skip_without("numpy")

PAGE = 4096
ROUNDS = 100
WINDOWS = 8


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def state():
    """What must not grow: descriptors, mappings of ours, blocks of Python's allocator."""
    gc.collect()
    with open("/proc/self/maps") as file:
        maps = sum("memfd:" in line for line in file)
    return len(os.listdir("/proc/self/fd")), maps


class Leaks(PickleTest):
    def everything(self):
        with memclient.alloc(10 * PAGE, name="leak", publishable=True) as buffer:
            with memoryview(buffer) as view:
                view[:3] = b"abc"
            token = buffer.share(rights="r", uses=3)
            with memclient.open(token) as other, memclient.open("leak") as named:
                other.info(), named.fileno(), os.close(named.export_fd())
            with contextlib.suppress(memclient.Error, ValueError):
                memclient.open(bytes(32))
            with contextlib.suppress(ZeroDivisionError):
                (memclient.alloc(PAGE), 1 / 0)
            a = np.ndarray(10, "u1", buffer)
            del a
            buffer.publish()
        memclient.unbind("leak")
        memclient.buffers(), memclient.pools(), memclient.names(), memclient.tokens(), memclient.broker()
        a = memclient.array(np.arange(100))
        b = pickle.loads(pickle.dumps([a, a[::2]]))
        a.buffer.revoke_tokens()
        del a, b
        with memclient.Pool("leak", PAGE, slab_size=16 * PAGE) as pool:
            a = pool.array([1, 2, 3])
            p = pickle.dumps(a)
            del a
            b = pickle.loads(p)
            with pool.alloc() as block:
                reference = block.give()
            pool.take(reference).close()
            with contextlib.suppress(memclient.Stale):
                pool.take(reference)
            del b
            pool.destroy()
        token = memclient.dumps({"a": np.zeros(100)})
        with memclient.open(token, rights="r") as buffer:
            memclient.loads(buffer)["a"].sum()
            gc.collect()
        memclient.revoke(token)
        segment = shared_memory.SharedMemory(create=True, size=PAGE)
        segment.unlink()
        segment.close()
        with memclient.numpy_allocator(PAGE):
            np.zeros(PAGE)
        np.from_dlpack(memclient.zeros(10))

    def test_a_loop(self):
        self.addCleanup(copyreg.dispatch_table.pop, np.ndarray, None)
        for _ in range(50):
            self.everything()
        before, grown = state(), []
        for _ in range(WINDOWS):
            blocks, memory = sys.getallocatedblocks(), resident()
            for _ in range(ROUNDS):
                self.everything()
            self.assertEqual(state(), before)
            grown.append((sys.getallocatedblocks() - blocks, resident() - memory))
            # caches fill for a while; what leaks an object or more each round does so in every window
            if grown[-1][0] < ROUNDS // 2 and ("LD_PRELOAD" in os.environ or grown[-1][1] < ROUNDS * PAGE // 2):
                break
        else:
            self.fail(f"objects and bytes that {ROUNDS} rounds leave, each time: {grown}")
        self.assertEqual(memctl("names"), [])


if __name__ == "__main__":
    main()
