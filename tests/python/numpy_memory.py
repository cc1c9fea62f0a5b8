#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy's own arrays in buffers, by its allocator, and memory that goes through DLPack."""

import copyreg
import gc
import pickle
import threading
import warnings

import memclient
from memclient import _memclient
from support import PickleTest, main, memctl, skip_without

np = skip_without("numpy")

MIB = 1 << 20


def buffer_of(array):
    found = _memclient.at(memclient.Buffer, array.__array_interface__["data"][0])
    return found[0] if found else None


class Allocator(PickleTest):
    def test_large_results_are_buffers(self):
        source = np.ones(MIB, "u1")
        with memclient.numpy_allocator(MIB):
            large, small, zeros = source + 1, source[:100] + 1, np.zeros(MIB, "u1")
        outside = source + 1
        self.assertEqual(len(memctl("buffers")), 2)
        self.assertEqual((int(large.sum()), int(small.sum()), int(zeros.sum())), (2 * MIB, 200, 0))
        self.assertEqual([buffer_of(a) is not None for a in (large, small, zeros, outside)], [True, False, True, False])
        view = large[10:]
        del large, zeros
        gc.collect()
        self.assertEqual((len(memctl("buffers")), int(view.sum())), (1, 2 * MIB - 20))

    def test_they_are_sent_as_tokens(self):
        self.addCleanup(copyreg.dispatch_table.pop, np.ndarray, None)
        memclient.install()
        with memclient.numpy_allocator(4096):
            array = np.arange(10000)
        self.assertLess(len(pickle.dumps(array)), 300)
        other = pickle.loads(pickle.dumps(array))
        self.assertEqual(other.ctypes.data, array.ctypes.data)

    def test_they_grow_and_shrink(self):
        with memclient.numpy_allocator(4096):
            a = np.arange(1000)
            for number in (5000, 10, 2000, 600, 100000):
                kept = min(a.size, number)
                before = a[:kept].copy()
                a.resize(number, refcheck=False)
                np.testing.assert_array_equal(a[:kept], before)
                self.assertEqual(int(a[kept:].sum()), 0)
            self.assertIsNotNone(buffer_of(np.array(list(range(100000)))))

    def test_it_is_of_the_context(self):
        seen = []
        with memclient.numpy_allocator(4096):
            thread = threading.Thread(target=lambda: seen.append(buffer_of(np.ones(8192))))
            thread.start()
            thread.join()
            with memclient.numpy_allocator(MIB):
                seen.append(buffer_of(np.ones(8192)))
            seen.append(buffer_of(np.ones(8192)) is not None)
        self.assertEqual(seen, [None, None, True])

    def test_no_room_is_a_memory_error(self):
        with memclient.numpy_allocator(4096), self.assertRaises(MemoryError):
            np.empty(2**50, "u1")
        with memclient.numpy_allocator(4096, pool="none"), self.assertRaises(MemoryError):
            np.empty(8192)
        for options in ({"size": 0}, {"size": -1}, {"pages": "none"}):
            with self.assertRaises(ValueError):
                memclient.numpy_allocator(**options)
        for arguments in ((None, None), (1, 2), (memclient._numpy._functions(), 1)):
            with self.assertRaises((TypeError, ValueError)):
                _memclient.set_numpy_handler(*arguments)


class DLPack(PickleTest):
    def sources(self):
        pool = memclient.Pool(block_size=4096)
        a = memclient.array(np.arange(12, dtype="i4").reshape(3, 4))
        yield from (a, a[1:, ::2], pool.array(a), a.buffer, pool.alloc())

    def test_numpy(self):
        for source in self.sources():
            # this NumPy makes it read-only
            there = np.from_dlpack(source)
            memory = source if isinstance(source, np.ndarray) else np.frombuffer(source, "u1")
            np.testing.assert_array_equal(there, memory)
            self.assertEqual((there.ctypes.data, there.strides), (memory.ctypes.data, memory.strides))
            del source, memory
            gc.collect()
            there.sum()
        self.assertIs(type(memclient.from_dlpack(np.ones(3))), np.ndarray)

    def test_torch_and_back(self):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                import torch
        except ImportError as error:
            self.skipTest(str(error))
        for source in self.sources():
            there = torch.from_dlpack(source)
            back = memclient.from_dlpack(there)
            self.assertEqual((type(back), back.ctypes.data), (memclient.Array, there.data_ptr()))
            self.assertTrue(back.flags.writeable)
            back[...] = 7
            del back, source
            gc.collect()
            self.assertTrue(bool((there == 7).all()))
        self.assertIs(type(memclient.from_dlpack(torch.ones(3))), np.ndarray)

    def test_what_is_read_only_is_not_lent(self):
        buffer = memclient.alloc(4096)
        reader = memclient.open(buffer.share(rights="r"))
        with self.assertRaises(BufferError):
            np.from_dlpack(reader)


if __name__ == "__main__":
    main()
