#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call with whatever: a result, or an exception with a sentence.

FUZZ_CALLS is how many calls; `make check-long` makes 100 000. Only then the seed is another one each time: what it
finds is news, and no reason to refuse the change that `make check` is about. MEMORYD_TEST_SEED repeats a run.
"""

import gc
import inspect
import os
import pickle
import random
import sys

import memclient
import memclient.shared_memory
from memclient import _memclient
from support import BrokerTest, main, start_broker

try:
    import numpy as np
except ImportError:
    np = None

CALLS = int(os.environ.get("FUZZ_CALLS", "6000"))
SEED = int(os.environ.get("MEMORYD_TEST_SEED", random.randrange(2**32) if "FUZZ_CALLS" in os.environ else 22))
PAGE = 4096

# these would make the test wait, or change what it relies on
LEFT_OUT = {"set_error", "event_next", "events", "Events", "set_pickling", "set_numpy_handler", "install", "numpy_allocator"}

# NumPy's warnings, as of 1e300 in an array of "f4", are exceptions here because warnings are errors
REFUSALS = (TypeError, ValueError, OverflowError, OSError, BufferError, MemoryError, pickle.PickleError, EOFError,
            AttributeError, LookupError, ImportError, RuntimeWarning)  # fmt: skip


class Fuzz(BrokerTest):
    def setUp(self):
        self.source = random.Random(SEED)
        print(f"MEMORYD_TEST_SEED={SEED}", file=sys.stderr)

    def lost(self):
        """A buffer that the broker does not have any more."""
        buffer = memclient.alloc(PAGE)
        _memclient.destroy_id(buffer.id, 1)
        return buffer

    def closed(self):
        buffer = memclient.alloc(PAGE)
        buffer.close()
        return buffer

    def things(self):
        """What arguments are made of. It is made anew now and then: calls close and spoil it."""
        pool = memclient.Pool(block_size=PAGE, slab_size=16 * PAGE)
        published = memclient.alloc(PAGE, publishable=True)
        published.publish()
        token = memclient.alloc(PAGE, name=f"fuzz/{self.source.random()}", keep=False).share(rights="rws", uses=1000)
        block = pool.alloc()
        buffers = [memclient.alloc(3 * PAGE), published, self.lost(), self.closed(), memclient.open(token, rights="r")]
        arrays = [] if np is None else [memclient.zeros(10), pool.zeros((2, 3)), np.zeros(3), np.array([object])]
        plain = [
            None, True, False, -1, 0, 1, 2, 3, 7, 15, 63, 64, 4096, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62,
            2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**70), 0.0, 1.5, 1e300, float("nan"), float("inf"), 1j,
            "", "r", "rw", "rws", "x", "a/b", "fuzz", "\0", "\ud800", "\u20ac", "a" * 300, "a" * 100000, "shared",
            b"", b"x", bytes(16), bytes(32), b"\xff" * 16, b"\xff" * 32, bytearray(32), memoryview(bytes(32)), token,
            bytes(token), (), (1,), (0, 1), (2**32,), [], [0], [1.5], ["x"], list(range(100)), {}, {"size": 1},
            {"flags": 2**40}, {"name": 1}, {"pool": "x"}, {"rights": 3}, {1: 2}, set(), range(3), object(), int, Fuzz,
            memclient.Buffer, memclient.Pool, memclient.Block, memclient.READ, memclient.Pages.THP, lambda *_: None,
            "f4", "O", "no type", slice(None), ...,
        ]  # fmt: skip
        return plain + buffers + arrays + [pool, block]

    def calls(self, things):
        """What can be called: functions, classes, and methods of the objects among the things."""
        for module in (memclient, _memclient, memclient.shared_memory):
            names = getattr(module, "__all__", None) or dir(module)
            yield from (getattr(module, name) for name in names if name not in LEFT_OUT and name[0] != "_")
        kinds = (_memclient.Buffer, _memclient.Block, _memclient.Heap)
        for thing in things:
            if isinstance(thing, kinds):
                for name in dir(thing):
                    if name[:2] != "__" or name in ("__enter__", "__exit__", "__reduce__", "__dlpack__", "__len__"):
                        yield lambda *a, _thing=thing, _name=name, **k: self.use(_thing, _name, *a, **k)
        yield from (memoryview, len, bytes, repr, hash, pickle.dumps, iter, bool)

    @staticmethod
    def use(thing, name, *args, **kwargs):
        """Calls a method, or reads a property."""
        what = getattr(thing, name)
        return what(*args, **kwargs) if callable(what) else what

    def arguments(self, call, things):
        args = [self.source.choice(things) for _ in range(self.source.choice((0, 0, 1, 1, 1, 2, 2, 3, 4, 6, 7)))]
        try:
            names = [name for name in inspect.signature(call).parameters if name not in ("timeout", "args", "kwargs")]
        except (ValueError, TypeError):
            names = []
        chosen = self.source.sample(names, min(len(names), self.source.choice((0, 0, 1, 2, 3))))
        return args, {name: self.source.choice(things) for name in chosen}

    def test_every_call_with_anything(self):
        done = refused = 0
        while done + refused < CALLS:
            things = self.things()
            calls = list(self.calls(things))
            for _ in range(400):
                call = self.source.choice(calls)
                args, kwargs = self.arguments(call, things)
                try:
                    call(*args, **kwargs)
                    done += 1
                except REFUSALS as error:
                    refused += 1
                    if not isinstance(error, (KeyError, MemoryError)):
                        self.assertTrue(str(error), (call, args, kwargs, error))
                except Exception as error:
                    raise AssertionError(f"{call} {args} {kwargs}") from error
            del things, calls, call, args, kwargs
            gc.collect()
        self.assertGreater(done, 10)
        self.assertGreater(refused, done)


if __name__ == "__main__":
    start_broker("[pools]\npages = base\ncapacity = 256M\nstock = 0\n")
    main()
