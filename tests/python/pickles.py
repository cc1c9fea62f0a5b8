#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pickles of arrays: how long they keep memory, whose word is taken for what, and what is not an Array."""

import copyreg
import errno
import gc
import pickle
import random
import struct

import memclient
from support import PickleTest, main, memctl, python, skip_without, start_broker

np = skip_without("numpy")


def span(array):
    """The addresses of its first byte, and of the one after its last."""
    return np.byte_bounds(array)


class Keeping(PickleTest):
    def test_a_pickle_is_small_and_may_be_loaded_often(self):
        a = memclient.array(np.arange(100000))
        address, p = a.ctypes.data, pickle.dumps(a)
        self.assertLess(len(p), 160)
        del a
        for _ in range(3):
            b = pickle.loads(p)
            self.assertEqual((b.ctypes.data, b[-1]), (address, 99999))
            b, c = pickle.loads(pickle.dumps([b, b[5:]]))
            self.assertEqual(c[0], 5)
            del b, c

    def test_slices_are_loaded_as_they_were(self):
        a = memclient.array(np.arange(120, dtype="i2").reshape(4, 5, 6))
        for view in (
            a, a[1], a[1, 2, 3:4], a[::-1], a[::2, ::-3, 1:], a.T, a[:, None], a[0, 0, 0:1].reshape(()), a.view("u1"),
            np.broadcast_to(a[0], (9, 5, 6), subok=True), a.view([("x", "u1"), ("y", "i1")]),
            a.ravel()[:4].view("M8[s]"),
        ):  # fmt: skip
            self.assertIs(type(view), memclient.Array)
            for protocol in range(2, 6):
                b = pickle.loads(pickle.dumps(view, protocol))
                self.assertEqual(
                    (b.dtype, b.shape, b.strides, b.flags.writeable, span(b)),
                    (view.dtype, view.shape, view.strides, view.flags.writeable, span(view)),
                )

    def test_one_that_nobody_opens_leaves_nothing(self):
        before = memclient.set_pickling(keep=0.2)
        self.assertEqual(before, memclient.Pickling(60, None, False))
        p = pickle.dumps(memclient.zeros(1000))
        gc.collect()
        self.assert_nothing_left()
        with self.assertRaises((memclient.TokenError, memclient.Stale)):
            pickle.loads(p)
        memclient.set_pickling(**before._asdict())

    def test_uses(self):
        memclient.set_pickling(uses=2)
        p = pickle.dumps(memclient.array([1]))
        both = pickle.loads(p), pickle.loads(p)
        self.assertEqual(*both)
        del both
        self.assert_nothing_left()
        with self.assertRaises((memclient.TokenError, memclient.Stale)):
            pickle.loads(p)

    def test_what_is_read_only_arrives_so(self):
        a = memclient.array([1, 2, 3])
        a.flags.writeable = False
        memclient.set_pickling(readonly=True)
        for array in (a, memclient.array([1])):
            b = pickle.loads(pickle.dumps(array))
            self.assertFalse(b.flags.writeable)
            with self.assertRaises(ValueError):
                b.flags.writeable = True
            token = b.__reduce_ex__(5)[1][0]
            with self.assertRaises(memclient.NoRight):
                memclient.open(token, rights="w")

    def test_what_is_published_in_flight_arrives_read_only(self):
        b = memclient.alloc(100, publishable=True)
        p = pickle.dumps(memclient.frombuffer(b, "u1"))
        gc.collect()
        b.publish()
        self.assertFalse(pickle.loads(p).flags.writeable)

    def test_what_is_sent_again_has_the_same_token(self):
        a = memclient.zeros(100)
        pickles = {pickle.dumps(a[i:]) for i in range(50)}
        self.assertEqual((len(pickles), len(memctl("tokens"))), (50, 1))
        a.buffer.revoke_tokens()
        with self.assertRaises(memclient.TokenError):
            pickle.loads(pickles.pop())
        self.assertEqual(pickle.loads(pickle.dumps(a)).size, 100)

    def test_at_the_limit_of_tokens_it_is_an_oserror(self):
        memclient.set_pickling(uses=1)
        a = memclient.zeros(10)
        with self.assertRaises(OSError) as caught:
            for _ in range(200):
                pickle.dumps(a)
        self.assertIsInstance(caught.exception, memclient.LimitReached)
        self.assertEqual(caught.exception.errno, errno.EDQUOT)

    def test_who_may_not_share_is_told(self):
        program = """if True:
            import memclient, pickle, sys
            a = memclient.frombuffer(memclient.open(memclient.Token.fromhex(sys.argv[1])))
            try:
                pickle.dumps(a)
            except memclient.NoRight:
                print("NoRight")
        """
        a = memclient.zeros(10)
        done = python(program, a.buffer.share(rights="r").hex())
        self.assertEqual((done.stdout, done.stderr), ("NoRight\n", ""))

    def test_bad_settings_are_refused(self):
        for options, kind in [
            ({"keep": 0}, ValueError), ({"keep": -1}, ValueError), ({"keep": float("nan")}, ValueError),
            ({"keep": "1"}, TypeError), ({"keep": True}, TypeError), ({"uses": 0}, ValueError),
            ({"uses": 2**32}, ValueError), ({"uses": 1.5}, TypeError),
        ]:  # fmt: skip
            with self.subTest(**options), self.assertRaises(kind):
                memclient.set_pickling(**options)
        self.assertEqual(memclient.set_pickling(), memclient.Pickling(60, None, False))


class Requests(PickleTest):
    """How often the broker is asked, which is most of what pickling and loading take."""

    def asks(self, number, function, *args):
        before = memclient.broker().requests
        result = function(*args)
        # one is that of broker()
        self.assertEqual(memclient.broker().requests - before - 1, number)
        return result

    def test_of_the_sender(self):
        a = self.asks(1, memclient.zeros, 1000)
        # a token, which serves all pickles of this memory
        self.asks(1, pickle.dumps, a)
        for again in (a, a[::2], a[5:], a.view("u1"), a.view("M8[s]")):
            self.asks(0, pickle.dumps, again)
        a.flags.writeable = False
        self.asks(0, pickle.dumps, a[:0])
        self.asks(1, pickle.dumps, a)
        self.asks(0, pickle.dumps, a)
        memclient.set_pickling(uses=9)
        for _ in range(2):
            self.asks(1, pickle.dumps, a)

    def test_of_the_receiver(self):
        program = """if True:
            import gc, memclient, pickle, sys

            def asks(number, function, *args):
                before = memclient.broker().requests
                result = function(*args)
                asked = memclient.broker().requests - before - 1
                if asked != number:
                    print(asked, "requests and not", number)
                return result

            def drop():
                arrays.clear()
                gc.collect()

            p = bytes.fromhex(sys.argv[1])
            # the descriptor comes with the answer; what is open need not be asked for
            arrays = [asks(1, pickle.loads, p)]
            arrays.append(asks(0, pickle.loads, p))
            asks(1, pickle.dumps, arrays[0])
            asks(0, pickle.dumps, arrays[1])
            asks(1, drop)
            arrays.append(asks(1, pickle.loads, p))
        """
        a = memclient.zeros(1000)
        done = python(program, pickle.dumps(a).hex())
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_of_blocks(self):
        with memclient.Pool(block_size=4096, slab_size=65536) as pool:
            pickle.loads(pickle.dumps(pool.zeros(10)))
            a = self.asks(0, pool.zeros, 10)
            a = self.asks(0, pickle.loads, self.asks(0, pickle.dumps, a))
            del a
            gc.collect()
            pool.destroy()


class Hostile(PickleTest):
    """The sender makes everything up but the token, which is good."""

    def setUp(self):
        self.array = memclient.array(np.arange(1024, dtype="u1"))
        self.open, self.good = self.array.__reduce_ex__(5)
        self.low, self.high = span(self.array)

    def tearDown(self):
        del self.array
        super().tearDown()

    def refused(self, *changes, kind=(ValueError, TypeError, OverflowError)):
        """Each change is the number of an argument and what it becomes."""
        arguments = list(self.good)
        for number, value in changes:
            arguments[number] = value
        with self.subTest(changes=changes), self.assertRaises(kind):
            self.open(*arguments)

    def test_geometry_is_not_believed(self):
        for offset, shape, strides in [
            (0, (1025,), (1,)), (1, (1024,), (1,)), (-1, (1,), (1,)), (1024, (1,), (1,)), (1023, (2,), (1,)),
            (0, (2,), (-1,)), (0, (2,), (1024,)), (0, (-1,), (1,)), (0, (1024, 2), (1, 1)), (0, (2, 2), (512, -513)),
            # numbers that NumPy's own check would multiply to 0, or to less
            (0, (2**32 + 1,), (2**32,)), (0, (2**33, 2), (2**31, 1)), (0, (2**62,), (4,)), (0, (3,), (2**63 - 1,)),
            (0, (2,), (-(2**63),)), (2**63 - 1, (2,), (1,)), (0, (2**64 + 1,), (2**64,)), (2**64, (1,), (1,)),
            (0, (2**63,), (1,)), (0, (1,), (1, 1)), (0, (1, 1), (1,)), (0, (1,) * 100, (1,) * 100),
            (0, [1], (1,)), (0, (1.0,), (1,)), (0, (1,), ("1",)), (None, (1,), (1,)), (0, None, (1,)), (0, (1,), None),
        ]:  # fmt: skip
            self.refused((3, offset), (4, shape), (5, strides))

    def test_classes_of_numbers_are_not_asked(self):
        class Growing(tuple):
            looks = 0

            def __iter__(self):
                self.looks += 1
                return iter((1,) if self.looks < 3 else (1 << 20,))

        self.refused((4, Growing((1,))), kind=TypeError)
        self.refused((4, (1,)), (5, Growing((1,))), kind=TypeError)

    def test_types_are_not_believed(self):
        for dtype in ["u2", "S1025", "O", "f8", [("a", "O")], [("a", "u1", (1025,))], [("a", "u1", (2**40, 2**40))],
                      object, np.dtype("u1"), None, 7, "", "no type", [("a", "V9999")], ("u1", (50,)), b"u1"]:  # fmt: skip
            self.refused((6, dtype), kind=Exception)

    def test_rights_and_tokens_are_not_believed(self):
        for rights in (0, 2, 4, 8, 15, 16, 1 | 256, -1, 2**70, "r", None, 1.0):
            self.refused((1, rights))
        for token in (b"", b"x" * 31, bytes(32), None, "x" * 32, bytearray(self.good[0])):
            self.refused((0, token), kind=(ValueError, TypeError, OSError))
        reader = memclient.open(self.good[0], rights="rs")
        token = bytes(reader.share(rights="r"))
        self.refused((0, token), kind=memclient.NoRight)
        # which is open here with more rights
        self.assertFalse(self.open(token, 1, *self.good[2:]).flags.writeable)

    def test_whatever_comes_lies_in_the_buffer(self):
        """10 000 geometries, of numbers that are near the limits of something."""
        source = random.Random(46)
        near = [0, 1, 2, 3, 7, 8, 31, 512, 1016, 1023, 1024, 1025]
        near += [2**31, 2**32, 2**33, 2**61, 2**62, 2**63 - 1, 2**63, 2**64]
        loaded = 0
        for _ in range(10000):
            dims = source.choice((1, 1, 2, 3))
            shape = tuple(source.choice(near) + source.choice((0, 0, 1)) for _ in range(dims))
            strides = tuple(source.choice(near) * source.choice((1, -1)) for _ in range(dims))
            try:
                dtype = source.choice(("u1", "<u8", "S3"))
                array = self.open(*self.good[:3], source.choice(near), shape, strides, dtype)
            except (ValueError, TypeError, OverflowError):
                continue
            loaded += 1
            low, high = array.ctypes.data, array.ctypes.data
            for number, stride in zip(array.shape, array.strides):
                low += min(stride * (number - 1), 0)
                high += max(stride * (number - 1), 0)
            if array.size:
                self.assertTrue(self.low <= low and high + array.itemsize <= self.high, (shape, strides))
        self.assertGreater(loaded, 100)


class Plain(PickleTest):
    """NumPy's own arrays, after install()."""

    def setUp(self):
        self.addCleanup(copyreg.dispatch_table.pop, np.ndarray, None)

    def test_plain_arrays_that_lie_in_a_buffer(self):
        b = memclient.alloc(4096)
        plain = np.frombuffer(b, "u2")[10:20].reshape(2, 5)
        self.assertGreater(len(pickle.dumps(plain)), 130)
        memclient.install()
        memclient.install()
        for protocol in range(2, 6):
            other = pickle.loads(pickle.dumps(plain, protocol))
            self.assertEqual(span(other), span(plain))
        for array in (np.arange(10), np.array([object]), np.zeros(0), np.zeros(3, "M8[s]"), plain.copy()):
            for protocol in range(6):
                other = pickle.loads(pickle.dumps(array, protocol))
                self.assertIs(type(other), np.ndarray)
                np.testing.assert_array_equal(other, array)
        del plain, other, array


class OutOfBand(PickleTest):
    def test_everything_is_in_one_buffer(self):
        inner = memclient.array(np.arange(1000))
        thing = {"a": np.arange(5000.0), "b": [inner, inner[::-1][:10]], "c": b"text", "d": np.zeros((3, 0))}
        token = memclient.dumps(thing)
        self.assertEqual((type(token), token.rights, memclient.broker().buffers), (memclient.Token, memclient.READ, 2))
        inner[:] = 0
        del thing["b"], inner
        for _ in range(2):
            got = memclient.loads(bytes(token))
            np.testing.assert_array_equal(got["a"], thing["a"])
            np.testing.assert_array_equal(got["b"][0], np.arange(1000))
            self.assertEqual((got["b"][1].tolist(), got["c"]), (list(range(999, 989, -1)), b"text"))
            self.assertFalse(got["a"].flags.writeable or got["a"].flags.owndata)
            self.assertEqual(got["a"].ctypes.data % 64, 0)
        with self.assertRaises(memclient.NoRight):
            memclient.loads(token, rights="rw")

    def test_writable_and_by_name(self):
        memclient.dumps([np.zeros(10)], rights="rw", name="some zeros")
        memclient.loads("some zeros", rights="rw")[0][3] = 7
        self.assertEqual(memclient.loads("some zeros")[0][3], 7)
        memclient.unbind("some zeros")

    def test_no_header_is_believed(self):
        for header in [
            b"", b"nonsense", b"memclnt1" + struct.pack("<QQ", 2**61, 1),
            b"memclnt1" + struct.pack("<QQ", 2**64 - 1, 0),
            b"memclnt1" + struct.pack("<QQ", 0, 4096), b"memclnt1" + struct.pack("<QQ", 0, 2**64 - 1),
            b"memclnt1" + struct.pack("<QQQ", 1, 1, 2**64 - 64), b"memclnt1" + struct.pack("<QQ", 510, 1),
        ]:  # fmt: skip
            with self.subTest(header=header), memclient.alloc(4096) as b:
                with memoryview(b) as view:
                    view[: len(header)] = header
                with self.assertRaises((ValueError, pickle.UnpicklingError)):
                    memclient.loads(b)
                gc.collect()
        with memclient.alloc(3) as b, self.assertRaises(ValueError):
            memclient.loads(b)


if __name__ == "__main__":
    start_broker("[pools]\npages = base\n\n[limits]\nsession_tokens = 100\n")
    main()
