#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Buffers, tokens, names and listings of the Python package, in one process."""

import copy
import ctypes
import errno
import gc
import importlib
import mmap
import os
import pickle
import traceback
import unittest
import weakref

import memclient
from support import BrokerTest, main, memctl, wait_until

PAGE = mmap.PAGESIZE


class Buffers(BrokerTest):
    def tearDown(self):
        gc.collect()
        self.assert_nothing_left()

    def test_what_is_written_is_read_by_whoever_opens_it(self):
        with memclient.alloc(10 * PAGE) as b:
            view = memoryview(b)
            self.assertEqual((len(b), view.nbytes, view.readonly, view.format), (10 * PAGE, 10 * PAGE, False, "B"))
            self.assertEqual(bytes(view), bytes(10 * PAGE))
            view[:5] = b"hello"
            for what in (b.share(), bytes(b.share()), bytearray(b.share()), memoryview(b.share()), b.fileno()):
                with memclient.open(what) as other:
                    self.assertEqual((other.id, other.address), (b.id, b.address))
                    self.assertEqual(bytes(memoryview(other)[:5]), b"hello")
            view.release()

    def test_a_buffer_is_as_long_as_it_was_asked_for(self):
        with memclient.alloc(1) as b:
            self.assertEqual((len(b), b.size, b.bytes, b.granule), (1, 1, PAGE, PAGE))
            self.assertEqual(memoryview(b).nbytes, 1)

    def test_it_is_at_its_home(self):
        with memclient.alloc(PAGE) as b:
            self.assertEqual(b.address, b.home)
            memoryview(b)[:3] = b"abc"
            self.assertEqual(ctypes.string_at(b.address, 3), b"abc")

    def test_an_exception_passes_one_that_ends(self):
        for _ in range(10):
            with self.assertRaises(ZeroDivisionError):
                (memclient.alloc(PAGE), 1 / 0)

    def test_readers_cannot_write(self):
        with memclient.alloc(PAGE) as b:
            for rights in ("r", memclient.READ, memclient.Right.READ):
                token = b.share(rights=rights)
                self.assertEqual(token.rights, memclient.READ)
                with memclient.open(token) as reader:
                    self.assertTrue(reader.readonly)
                    with memoryview(reader) as view:
                        self.assertTrue(view.readonly)
                        with self.assertRaises(TypeError):
                            view[0] = 1
                    with self.assertRaisesRegex(TypeError, "not writable"):
                        (ctypes.c_char * PAGE).from_buffer(reader)
                    with self.assertRaises(memclient.NoRight):
                        reader.share(rights="rw")
                    with self.assertRaises(memclient.NoRight):
                        reader.export_fd("rw")
            with memclient.open(b.share(), rights="r") as reader:
                self.assertTrue(memoryview(reader).readonly)

    def test_it_is_not_closed_under_a_view(self):
        b = memclient.alloc(PAGE)
        view = memoryview(b)
        part = view[1:3]
        with self.assertRaisesRegex(BufferError, "1 views"):
            b.close()
        view.release()
        with self.assertRaises(BufferError):
            b.close()
        part[0] = 7
        part.release()
        b.close()
        b.close()
        self.assertTrue(b.closed)

    def test_memory_stays_as_long_as_a_view_of_it(self):
        b = memclient.alloc(PAGE)
        view = memoryview(b)
        number = ctypes.c_int.from_buffer(b)
        reference = weakref.ref(b)
        del b
        gc.collect()
        self.assertIsNotNone(reference())
        number.value = 0x01020304
        self.assertEqual(bytes(view[:4]), b"\4\3\2\1")
        view.release()
        del number, view
        gc.collect()
        self.assertIsNone(reference())

    def test_a_closed_buffer_says_so(self):
        b = memclient.alloc(PAGE)
        b.close()
        calls = [
            lambda: len(b), lambda: memoryview(b), lambda: b.address, lambda: b.home, lambda: b.id, lambda: b.size,
            lambda: b.bytes, lambda: b.granule, lambda: b.rights, lambda: b.readonly, lambda: b.published, b.fileno,
            b.share, b.publish, lambda: b.bind("a"), lambda: b.unbind("a"), b.info, b.revoke_tokens, b.discard,
            lambda: b.move(0), b.export_fd, b.__enter__,
        ]  # fmt: skip
        for call in calls:
            with self.assertRaisesRegex(ValueError, "closed"):
                call()
        self.assertEqual(repr(b), "<memclient.Buffer closed>")

    def test_buffers_are_made_by_the_broker_alone(self):
        for make in (memclient.Buffer, lambda: memclient.Buffer.__new__(memclient.Buffer)):
            with self.assertRaises(TypeError):
                make()
        with memclient.alloc(PAGE) as b:
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaises(TypeError):
                    make(b)

    def test_a_descriptor_lasts_as_long_as_the_object(self):
        b = memclient.alloc(PAGE)
        fd = b.fileno()
        self.assertEqual(b.fileno(), fd)
        self.assertFalse(os.get_inheritable(fd))
        with mmap.mmap(fd, PAGE) as m:
            m[:2] = b"ab"
        self.assertEqual(bytes(memoryview(b)[:2]), b"ab")
        own = b.export_fd("r")
        b.close()
        with self.assertRaises(OSError):
            os.fstat(fd)
        self.assertEqual(os.pread(own, 2, 0), b"ab")
        os.close(own)

    def test_what_is_published_is_for_reading(self):
        b = memclient.alloc(PAGE, publishable=True)
        other = memclient.open(b.share())
        view = memoryview(other)
        view[0] = 1
        with self.assertRaisesRegex(BufferError, "writable view"):
            b.publish()
        view.release()
        reader = memoryview(memclient.open(b.share(rights="r")))
        b.publish()
        for buffer in (b, other):
            self.assertTrue(buffer.readonly)
            self.assertTrue(memoryview(buffer).readonly)
        self.assertTrue(b.published)
        self.assertEqual(reader[0], 1)
        with self.assertRaises(memclient.Published) as caught:
            b.publish()
        self.assertEqual(caught.exception.errno, errno.EROFS)
        self.assertEqual(os.read(b.fileno(), 1), b"\1")
        with memclient.alloc(PAGE) as plain, self.assertRaises(memclient.NotSupported):
            plain.publish()

    def test_names_keep_memory_until_they_are_unbound(self):
        b = memclient.alloc(PAGE, name="tests/first")
        memoryview(b)[:1] = b"1"
        b.bind("tests/second", keep=False, other_rights="r")
        self.assertEqual({n.name: n.policy for n in memclient.names()}, {"tests/first": 0, "tests/second": 1})
        with self.assertRaises(memclient.Exists):
            memclient.alloc(PAGE, name="tests/first")
        with self.assertRaises(FileExistsError):
            b.bind("tests/first")
        del b
        with memclient.open("tests/first") as b:
            self.assertEqual(bytes(memoryview(b)[:1]), b"1")
            b.unbind("tests/second")
        memclient.unbind("tests/first")
        for call in (memclient.open, memclient.unbind):
            with self.assertRaises(FileNotFoundError) as caught:
                call("tests/first")
            self.assertIsInstance(caught.exception, memclient.NotFound)
            self.assertEqual(caught.exception.status, "NO_SUCH_NAME")

    def test_what_the_broker_knows(self):
        with memclient.alloc(3 * PAGE - 1, name="tests/info", pages="base") as b:
            info = b.info()
            self.assertEqual((info.id, info.size, info.bytes, info.name), (b.id, 3 * PAGE - 1, 3 * PAGE, "tests/info"))
            self.assertEqual((info.uid, info.pid, info.state), (os.getuid(), os.getpid(), memclient.State.LIVE))
            self.assertEqual(info.pages, memclient.Pages.BASE)
            self.assertEqual(info.holders[0].rights, b.rights)
            self.assertGreaterEqual(info.holders[0].since, info.created)
            self.assertEqual(sum(info.nodes.values()), info.bytes)
            listed = [i.id for i in memclient.buffers() if i.state != memclient.State.ENDING]
            self.assertEqual(listed, [b.id])
            self.assertIn(os.getpid(), [s.pid for s in memclient.sessions()])
            self.assertIn(info.pool, [p.name for p in memclient.pools()])
            self.assertEqual(memclient.broker().buffers, 1)
            self.assertTrue(memclient.nodes())
            b.unbind("tests/info")

    def test_what_cannot_be_had_is_refused_with_a_sentence(self):
        with self.assertRaises(memclient.PoolFull) as caught:
            memclient.alloc(1 << 60)
        self.assertIsInstance(caught.exception, MemoryError)
        self.assertIsInstance(caught.exception, OSError)
        self.assertIn("capacity", caught.exception.strerror)
        self.assertEqual(caught.exception.status, "TOO_BIG")
        for size in (0, -1):
            with self.assertRaises(ValueError):
                memclient.alloc(size)
        for size in ("1", 1.5, None, b"1", [1]):
            with self.assertRaises(TypeError):
                memclient.alloc(size)
        with self.assertRaises(OverflowError):
            memclient.alloc(1 << 64)
        with self.assertRaises(memclient.NotFound):
            memclient.alloc(1, pool="no such pool")
        with self.assertRaises(ValueError):
            memclient.alloc(1, name="..")
        with self.assertRaises(ValueError):
            memclient.alloc(1, name="a\0b")
        with self.assertRaises(OSError) as caught:
            memclient.open(10**6)
        self.assertEqual(caught.exception.errno, errno.EBADF)


class Names(unittest.TestCase):
    def test_all_of_every_part_is_in_the_package(self):
        parts = "_arrays _buffers _dumps _events _listings _numpy _pickling _pool _reducers _rights _tokens errors"
        names = ["library_version"]
        for part in parts.split():
            names += importlib.import_module(f"memclient.{part}").__all__
        self.assertEqual(memclient.__all__, sorted(names))


class Tokens(BrokerTest):
    def tearDown(self):
        gc.collect()
        self.assert_nothing_left()

    def test_a_token_is_like_bytes(self):
        with memclient.alloc(PAGE) as b:
            token = b.share()
            self.assertEqual(len(bytes(token)), 32)
            self.assertEqual(memclient.Token.fromhex(token.hex()), token)
            self.assertEqual(memclient.Token(bytes(token)), token)
            self.assertEqual({token: 1}[bytes(token)], 1)
            self.assertEqual(pickle.loads(pickle.dumps(token)), token)
            self.assertIs(type(pickle.loads(pickle.dumps(token))), memclient.Token)
            for bad in (b"", bytes(31), bytes(33), bytearray(64)):
                with self.assertRaises(ValueError):
                    memclient.Token(bad)
                with self.assertRaises(ValueError):
                    memclient.open(bad)
            for bad in (32, "x" * 32, None):
                with self.assertRaises(TypeError):
                    memclient.Token(bad)

    def test_nobody_prints_its_secret(self):
        with memclient.alloc(PAGE) as b:
            token = b.share()
            secrets = (token[16:].hex(), repr(bytes(token[16:]))[2:-1], repr(bytes(token))[2:-1])
            try:
                self.fail_with(token)
            except RuntimeError as error:
                lines = list(traceback.TracebackException.from_exception(error.__cause__, capture_locals=True).format())
            self.assertIn(repr(token), "".join(lines))
            texts = [repr(token), str(token), f"{token}", f"{token!r:>80}", "%s %r" % (token, token), *lines]
            for text in texts:
                for secret in secrets:
                    self.assertNotIn(secret, text)

    @staticmethod
    def fail_with(token):
        try:
            raise KeyError(token, [token], {"token": token})
        except KeyError as error:
            raise RuntimeError("what fails has the token among its locals") from error

    def test_uses_times_and_users(self):
        with memclient.alloc(PAGE) as b:
            token = b.share(uses=2)
            for _ in range(2):
                memclient.open(token).close()
            with self.assertRaises(memclient.TokenError) as caught:
                memclient.open(token)
            self.assertEqual(caught.exception.status, "TOKEN_EXHAUSTED")
            token = b.share(expires=0.001)
            wait_until(lambda: not self.opens(token))
            token = b.share(uid=os.getuid() + 12345, pid=1)
            with self.assertRaises(PermissionError):
                memclient.open(token)
            token = b.share()
            memclient.revoke(token)
            with self.assertRaises(memclient.TokenError) as caught:
                memclient.open(token)
            self.assertEqual(caught.exception.errno, errno.EKEYREVOKED)
            token = b.share()
            b.revoke_tokens()
            self.assertFalse(self.opens(token))
            with self.assertRaises(memclient.Invalid):
                b.share(keep=True)
            token = b.share()
        with self.assertRaises(memclient.Stale):
            memclient.open(token)
        with self.assertRaises(memclient.TokenError):
            memclient.open(bytes(32))

    @staticmethod
    def opens(token):
        try:
            memclient.open(token).close()
            return True
        except memclient.TokenError:
            return False

    def test_a_keeping_token_keeps(self):
        b = memclient.alloc(PAGE)
        memoryview(b)[:4] = b"kept"
        token = b.share(uses=1, keep=True)
        b.close()
        self.assertEqual([(t.uses_left, t.rights) for t in memclient.tokens()], [(1, 3)])
        with memclient.open(token) as b:
            self.assertEqual(bytes(memoryview(b)[:4]), b"kept")

    def test_events_tell_of_names(self):
        events = memclient.events(memclient.EventKind.NAME, timeout=60)
        with memclient.alloc(PAGE, name="tests/event") as b:
            event = next(events)
            self.assertEqual((event.kind, event.name, event.buffer), (memclient.EventKind.NAME, "tests/event", b.id))
            self.assertTrue(event.bound)
            b.unbind("tests/event")
            self.assertFalse(next(events).bound)
        self.assertEqual(list(memclient.events(memclient.EventKind.NAME, timeout=0)), [])


class Listings(BrokerTest):
    def test_other_programs_see_the_same(self):
        with memclient.alloc(PAGE) as b:
            self.assertEqual([row["id"] for row in memctl("buffers")], [b.id])


if __name__ == "__main__":
    main()
