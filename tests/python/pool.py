#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pools: blocks that processes hand to each other."""

import gc
import multiprocessing
import os
import pickle
import signal
import weakref

import memclient
import workers
from memclient import _memclient
from support import BrokerTest, main, memctl, python, skip_without

np = skip_without("numpy")

MIB = 1 << 20


class PoolTest(BrokerTest):
    def setUp(self):
        self.pool = memclient.Pool("kv", MIB)

    def tearDown(self):
        gc.collect()
        if not self.pool.closed:
            self.pool.destroy()
        del self.pool
        gc.collect()
        self.assert_nothing_left()

    def mine(self):
        status = self.pool.status()
        return status.mine, status.given


class Blocks(PoolTest):
    def test_a_block_goes_round(self):
        block = self.pool.alloc()
        self.assertEqual((block.size, len(block), block.pool, self.mine()), (MIB, MIB, self.pool, (1, 0)))
        address = block.address
        memoryview(block)[:5] = b"hello"
        prepared, reference = block.prepare(), block.give()
        self.assertEqual(prepared, reference)
        self.assertEqual((type(reference), len(reference), block.closed, self.mine()), (bytes, 16, True, (0, 1)))
        with self.pool.take(reference) as same:
            self.assertEqual((same.address, bytes(memoryview(same)[:5])), (address, b"hello"))
            with self.assertRaises(memclient.Stale):
                self.pool.take(reference)
        self.assertTrue(same.closed)
        same.close()
        self.assertEqual(self.mine(), (0, 0))
        for call in (block.give, block.prepare, lambda: len(block), lambda: memoryview(block), block.__enter__):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            pickle.dumps(same)

    def test_views_keep_a_block(self):
        block = self.pool.alloc()
        view = memoryview(block)
        for call in (block.close, block.give, self.pool.close, self.pool.destroy):
            with self.assertRaises(BufferError):
                call()
        del block
        gc.collect()
        self.assertEqual(self.mine(), (1, 0))
        view.release()
        del view
        self.assertEqual(self.mine(), (0, 0))

    def test_what_takes_memory_without_a_view_keeps_it_too(self):
        block = self.pool.alloc()
        array = np.ndarray(4, "u1", block)
        block.close()
        del block
        self.assertEqual(self.mine(), (1, 0))
        with self.assertRaises(BufferError):
            self.pool.destroy()
        self.pool.close()
        array[:] = 1
        del array
        memclient.Pool("kv").destroy()

    def test_the_pool_ends_with_its_name(self):
        block = self.pool.alloc()
        ref = weakref.ref(self.pool)
        self.pool.destroy()
        self.assertTrue(block.closed and self.pool.closed)
        self.assertEqual(memctl("names"), [])
        for call in (self.pool.alloc, self.pool.status, self.pool.share, self.pool.sweep, self.pool.destroy,
                     self.pool.__enter__, block.give, lambda: self.pool.member):  # fmt: skip
            with self.assertRaises(ValueError):
                call()
        self.pool.close()
        del self.pool, block
        gc.collect()
        self.assertIsNone(ref())
        self.pool = memclient.Pool("kv", MIB)

    def test_versions_do_not_meet(self):
        two = memclient.Pool("kv", 4096, version=2)
        self.assertEqual(two.block_size, 4096)
        self.assertEqual([row["name"] for row in memctl("names")], ["kv/v1", "kv/v2"])
        with self.assertRaises(ValueError) as caught:
            memclient.Pool("kv", 4096)
        self.assertIn("use another version", str(caught.exception))
        with self.assertRaises(memclient.NotFound):
            memclient.Pool("kv", version=3)
        self.assertEqual(memclient.Pool("kv").block_size, MIB)
        two.destroy()

    def test_without_a_name(self):
        with memclient.Pool(block_size=100, slabs=1, slab_size=1280) as pool:
            self.assertEqual(pool.block_size, 128)
            with memclient.Pool.open(pool.share()) as other:
                blocks = [pool.alloc() for _ in range(pool.status().blocks or 10)]
                with self.assertRaises(memclient.PoolFull):
                    for _ in range(1000):
                        blocks.append(other.alloc())
                reference = blocks[0].give(other.member)
                with self.assertRaises(memclient.NoRight):
                    memclient.Pool.open(pool.share(uses=1)).take(reference)
                other.take(reference).close()
            with self.assertRaises(memclient.Stale):
                blocks[1].give(12345)
            self.assertFalse(blocks[1].closed)

    def test_bad_arguments_are_refused(self):
        for arguments, kind in [
            ((), TypeError), ((None, None), TypeError), ((None, 0), ValueError), ((None, -1), ValueError),
            ((None, 2**63), ValueError), ((None, 2**64), OverflowError), ((7, 4096), TypeError),
            (("", 4096), OSError), (("a" * 300, 4096), OSError), ((None, "4096"), TypeError), ((None, 1.5), TypeError),
        ]:  # fmt: skip
            with self.subTest(arguments=arguments), self.assertRaises(kind):
                memclient.Pool(*arguments)
        for options in ({"version": -1}, {"version": "1"}, {"slabs": 1025}, {"group": 1}, {"pages": "none"}):
            with self.subTest(**options), self.assertRaises((ValueError, TypeError)):
                memclient.Pool("other", 4096, **options)
        for reference in (b"", bytes(15), bytes(17), b"\xff" * 16, "a" * 16, None, 16):
            with self.subTest(reference=reference), self.assertRaises((ValueError, TypeError, memclient.Stale)):
                self.pool.take(reference)
        with memclient.alloc(4096, name="no pool/v1", keep=False) as buffer:
            for call in (lambda: memclient.Pool("no pool"), lambda: memclient.Pool.open(buffer.share())):
                with self.assertRaises(memclient.Error):
                    call()
        memclient.unbind("no pool/v1")
        for kind in (_memclient.Heap, _memclient.Block, memclient.Block):
            with self.assertRaises(TypeError):
                kind()


class Arrays(PoolTest):
    def test_arrays_lie_in_blocks(self):
        a = self.pool.zeros((4, 5), "i4")
        self.assertIs(type(a), memclient.Array)
        self.assertEqual((a.sum(), a.block.address, self.mine()), (0, a.ctypes.data, (1, 0)))
        a[:] = 7
        address, row = a.ctypes.data, a[2]
        del a
        self.assertEqual((row.tolist(), row.block.address), ([7] * 5, address))
        del row
        self.assertEqual(self.mine(), (0, 0))
        self.assertEqual(self.pool.zeros(MIB, "u1").sum(), 0)
        self.assertEqual(self.pool.array(np.asfortranarray([[1, 2], [3, 4]])).strides, (8, 16))
        with memclient.alloc(4096) as other:
            self.assertIsNone(memclient.frombuffer(other, "u1").block)
        with self.assertRaises(ValueError):
            self.pool.empty(MIB + 1, "u1")
        with self.assertRaises(TypeError):
            self.pool.empty(1, object)

    def test_a_pickle_gives_the_block_away(self):
        for protocol in range(2, 6):
            a = self.pool.array(np.arange(100))
            p = pickle.dumps(a[10:20:3], protocol)
            self.assertLess(len(p), 350)
            self.assertEqual(self.mine(), (0, 1))
            with self.assertRaises(ValueError):
                pickle.dumps(a)
            a.block.take_back()
            self.assertEqual(self.mine(), (1, 0))
            with self.assertRaises(ValueError):
                a.block.take_back()
            with self.assertRaises(memclient.Stale):
                pickle.loads(p)
            p = pickle.dumps(a[10:20:3], protocol)
            b, gone = pickle.loads(p), a.block
            with self.assertRaises((memclient.Stale, ValueError)):
                a.block.take_back()
            del a, gone
            self.assertEqual((b.tolist(), b.flags.writeable, self.mine()), ([10, 13, 16, 19], True, (1, 0)))
            with self.assertRaises(memclient.Stale):
                pickle.loads(p)
            # and on
            b = pickle.loads(pickle.dumps(b))
            self.assertEqual(b.tolist(), [10, 13, 16, 19])
            b.flags.writeable = False
            self.assertFalse(pickle.loads(pickle.dumps(b)).flags.writeable)
            self.assertIs(type(pickle.loads(pickle.dumps(self.pool))), memclient.Pool)
            del b

    def test_no_pickle_is_believed(self):
        for change, value in [
            (0, None), (0, "kv/v1"), (0, memclient.Buffer), (1, b""), (1, None), (1, b"\xff" * 16), (3, -1), (3, MIB),
            (4, (MIB + 1,)), (4, (2**63,)), (4, None), (5, (-1,)), (5, (2**62,)), (6, "O"), (6, None),
        ]:  # fmt: skip
            a = self.pool.array(np.arange(100))
            function, arguments = a.__reduce_ex__(5)
            arguments = list(arguments)
            arguments[change] = value
            with self.subTest(change=change, value=value):
                with self.assertRaises((ValueError, TypeError, OverflowError, AttributeError, memclient.Error)):
                    function(*arguments)
            del a

    def test_processes_hand_blocks_on(self):
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            queue, answers = context.Queue(), context.Queue()
            process = context.Process(target=workers.serve, args=(queue, answers))
            process.start()
            for i in range(10):
                a = self.pool.array([i] * 1000)
                address = a.ctypes.data
                queue.put(a)
                back, there = answers.get()
                self.assertEqual((back.ctypes.data, there, back.tolist()), (address, address, [i + 1] * 1000))
            queue.put(None)
            process.join()
            self.assertEqual(process.exitcode, 0)
            for q in (queue, answers):
                q.close()
                q.join_thread()
            del back, a

    def test_a_child_has_none_of_its_parents_blocks(self):
        a = self.pool.array([1, 2, 3])
        pid = os.fork()
        if not pid:
            status = 1
            try:
                pickle.dumps(a)
            except memclient.NoRight:
                status = self.pool.array(a).sum() - 6
            del a
            gc.collect()
            os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual((a.tolist(), self.mine()[0]), ([1, 2, 3], 1))


class Deaths(PoolTest):
    def child(self, program):
        done = python("import memclient, os, sys, numpy, pickle\npool = memclient.Pool('kv')\n" + program)
        self.assertEqual(done.stderr, "")
        return done

    def test_the_blocks_of_the_dead_are_free(self):
        done = self.child(
            "a = [pool.alloc() for _ in range(5)]\n"
            "print(a[0].give().hex(), flush=True)\n"
            "os.kill(os.getpid(), 9)"
        )
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.pool.sweep(trim=True)
        with self.assertRaises(memclient.Stale):
            self.pool.take(bytes.fromhex(done.stdout))
        status = self.pool.status()
        self.assertEqual((status.owned, status.given, status.members, status.blocks), (0, 0, 1, 0))

    def test_what_the_dead_have_given_away_stays_if_that_was_asked_for(self):
        other = memclient.Pool("parked", 4096, keep_given=True)
        done = self.child(
            "pool = memclient.Pool('parked')\n"
            "print(pickle.dumps(pool.array(range(100))).hex(), flush=True)\n"
            "os.kill(os.getpid(), 9)"
        )
        self.assertEqual(pickle.loads(bytes.fromhex(done.stdout)).tolist(), list(range(100)))
        other.destroy()

    def test_one_that_comes_back_attaches(self):
        a = self.pool.array([5, 6, 7])
        block = a.block
        for _ in range(3):
            done = self.child("a = pool.array([1])\nprint(pool.status().slabs, pool.block_size)")
            self.assertEqual(done.stdout, f"1 {MIB}\n")
        self.assertEqual((a.tolist(), self.mine()), ([5, 6, 7], (1, 0)))
        del a, block

    def test_a_process_that_has_not_opened_it_attaches_for_a_pickle(self):
        p = pickle.dumps(self.pool.array([1, 2]))
        done = python(f"import pickle\nprint(pickle.loads({p!r}).tolist())")
        self.assertEqual((done.stdout, done.stderr), ("[1, 2]\n", ""))


if __name__ == "__main__":
    main()
