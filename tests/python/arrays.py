#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays in buffers, in one process."""

import copy
import gc
import pickle

import memclient
from support import PickleTest, main, memctl, python, skip_without

np = skip_without("numpy")


def numbers(*shape):
    return np.arange(np.prod(shape), dtype="i4").reshape(shape)


class Arrays(PickleTest):
    def test_they_are_ndarrays_on_a_buffer(self):
        for make in (memclient.empty, memclient.zeros):
            a = make((3, 5), "f4", name="an array", keep=False)
            self.assertIsInstance(a, np.ndarray)
            self.assertIs(type(a), memclient.Array)
            self.assertEqual((a.shape, a.dtype, a.strides, a.sum()), ((3, 5), np.float32, (20, 4), 0))
            self.assertTrue(a.flags.writeable and a.flags.aligned)
            self.assertEqual((a.buffer.size, a.buffer.address), (60, a.ctypes.data))
            with memclient.open("an array") as other:
                self.assertEqual(other.id, a.buffer.id)
            memclient.unbind("an array")
            del a
        self.assertEqual(memclient.zeros(3).dtype, np.float64)
        self.assertEqual(memclient.zeros(np.int64(3), order="F").shape, (3,))
        self.assertEqual(memclient.zeros((2, 3), order="F").strides, (8, 16))
        self.assertEqual(memclient.zeros(()).shape, ())
        self.assertEqual(memclient.zeros((2, 0)).shape, (2, 0))
        self.assertEqual(memclient.zeros(2, [("a", "i1"), ("b", "f8")]).dtype.names, ("a", "b"))

    def test_array_copies(self):
        source = np.asfortranarray(numbers(3, 4))
        a = memclient.array(source)
        np.testing.assert_array_equal(a, source)
        self.assertEqual(a.strides, source.strides)
        source[0, 0] = 99
        self.assertEqual(a[0, 0], 0)
        self.assertEqual(memclient.array([1, 2], "u1").tolist(), [1, 2])
        self.assertEqual(memclient.array("text").item(), "text")

    def test_frombuffer_is_an_array_of_what_is_there(self):
        with memclient.alloc(100) as b:
            a = memclient.frombuffer(b, "i4", 3, 8)
            a[:] = 1, 2, 3
            self.assertEqual(bytes(memoryview(b)[8:20]), a.tobytes())
            with self.assertRaises(BufferError):
                b.close()
            with memclient.open(b.share(rights="r")) as reader:
                r = memclient.frombuffer(reader, "u1")
                self.assertFalse(r.flags.writeable)
                with self.assertRaises(ValueError):
                    r.flags.writeable = True
                del r
            with self.assertRaises(ValueError):
                memclient.frombuffer(b, "u1", 101)
            with self.assertRaises(TypeError):
                memclient.frombuffer(b"abc", "u1")
            del a

    def test_the_memory_stays_as_long_as_a_view_of_it(self):
        row = memclient.array(numbers(4, 4))[1]
        gc.collect()
        self.assertEqual(row.tolist(), [4, 5, 6, 7])
        with self.assertRaises(BufferError):
            row.base.base.base.obj.close()

    def test_memory_stays_that_was_taken_without_a_view(self):
        b = memclient.alloc(4096)
        a = np.ndarray(16, "u1", b)
        b.close()
        b.close()
        self.assertTrue(b.closed)
        with self.assertRaises(ValueError):
            memoryview(b)
        a[:] = 7
        del b
        gc.collect()
        self.assertEqual((a.tolist(), len(memctl("buffers"))), ([7] * 16, 1))

    def test_results_of_computations_are_ndarrays(self):
        a = memclient.array([1.0, 2.0])
        self.assertIs(type(a + 1), np.ndarray)
        self.assertIs(type(a.sum()), np.float64)
        self.assertIs(type(np.add(a, 1, out=a)), memclient.Array)
        self.assertIs(type(a[:1]), memclient.Array)
        self.assertIsNone(copy.deepcopy(a).buffer)
        for protocol in range(2, 6):
            self.assertIs(type(pickle.loads(pickle.dumps(a.copy(), protocol))), np.ndarray)

    def test_bad_arguments_are_refused(self):
        for shape, dtype, kind in [
            (-1, "u1", ValueError), ((2, -1), "u1", ValueError), ("ab", "u1", TypeError), (1.5, "u1", TypeError),
            (None, "u1", TypeError), (3, object, TypeError), (3, [("a", "O")], TypeError), (3, "no type", TypeError),
            (2**70, "u1", (ValueError, OverflowError)), ((2**40, 2**40), "u1", (ValueError, OverflowError)),
        ]:  # fmt: skip
            with self.subTest(shape=shape, dtype=dtype), self.assertRaises(kind):
                memclient.empty(shape, dtype)
        with self.assertRaises(ValueError):
            memclient.zeros(3, order="K")
        with self.assertRaises(TypeError):
            memclient.zeros(3, no_option=1)
        with self.assertRaises(TypeError):
            memclient.array([object()])
        with self.assertRaises(AttributeError):
            memclient.Arrays

    def test_numpy_is_imported_by_who_asks_for_it(self):
        program = """if True:
            import sys, memclient
            from memclient import *
            install(), set_pickling()
            assert memclient.loads(memclient.dumps([1])) == [1]
            assert "numpy" not in sys.modules
            sys.modules["numpy"] = None
            try:
                memclient.zeros(3)
            except ImportError:
                print("ImportError")
        """
        done = python(program)
        self.assertEqual((done.stdout, done.stderr), ("ImportError\n", ""))


if __name__ == "__main__":
    main()
