#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays of a pool go round between processes, of which one after the other is killed, and so are broker and keeper.

KILL_ROUNDS is how often; `make check-long` does it a thousand times. The seed is printed, and MEMORYD_TEST_SEED
repeats it.
"""

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile

import memclient
import workers
from support import BrokerTest, main, memctl, skip_without, wait_until

np = skip_without("numpy")

ROUNDS = int(os.environ.get("KILL_ROUNDS", "15"))
SEED = int(os.environ.get("MEMORYD_TEST_SEED", random.randrange(2**32)))
CONTEXT = multiprocessing.get_context("fork")
SIZE = 5000


class Worker:
    def __init__(self, pool, errors):
        self.pipe, theirs = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=workers.pass_on, args=(pool, theirs, errors.fileno()), daemon=True)
        self.process.start()
        theirs.close()
        self.lent = None

    def end(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Kills(BrokerTest):
    def exchange(self, worker, value):
        """Sends an array, and gets it back with one added: the same memory. None: the worker has died."""
        array = self.pool.empty(SIZE, "u4")
        array[:] = value
        address = array.ctypes.data
        try:
            worker.pipe.send(array)
            self.kill_somebody_perhaps()
            back = worker.pipe.recv()
        except (EOFError, ConnectionError):
            try:
                # it has not taken it, else it is free, or will be
                array.block.take_back()
                self.assertTrue((array == value).all())
            except memclient.Stale:
                pass
            return False
        self.assertEqual((back.ctypes.data, back.size), (address, SIZE))
        self.assertTrue((back == value + 1).all())
        return True

    def kill_somebody_perhaps(self):
        if self.killed >= ROUNDS or self.source.random() > 0.2:
            return
        self.killed += 1
        victim = self.source.choice(("worker", "worker", "worker", "broker_pid", "keeper_pid"))
        if victim == "worker":
            self.source.choice(self.workers).process.kill()
        else:
            self.wait_for_both()
            self.last = self.serving[victim]
            os.kill(self.last, signal.SIGKILL)

    def wait_for_both(self):
        """The one that was killed last has a successor: what both of them kept would be gone with the other one."""

        def serves():
            with contextlib.suppress(subprocess.CalledProcessError):
                self.serving = memctl("status")[0]
                return self.last not in (self.serving["broker_pid"], self.serving["keeper_pid"])
            return False

        wait_until(serves)

    def test_whoever_is_killed(self):
        print(f"MEMORYD_TEST_SEED={SEED}", file=sys.stderr)
        self.source, self.killed, self.last, done = random.Random(SEED), 0, None, 0
        self.pool = memclient.Pool("kills", SIZE * 4, slab_size=SIZE * 4 * 16)
        self.errors = tempfile.TemporaryFile("w+")
        self.addCleanup(self.errors.close)
        self.workers = [Worker(self.pool, self.errors) for _ in range(3)]
        value = 0
        while self.killed < ROUNDS or done < 10:
            value += 1
            number = self.source.randrange(3)
            if self.exchange(self.workers[number], value):
                done += 1
            else:
                self.workers[number].end()
                self.workers[number] = Worker(self.pool, self.errors)
        for worker in self.workers:
            # one that was killed just now does not hear it
            with contextlib.suppress(ConnectionError):
                worker.pipe.send(None)
            worker.process.join()
            self.assertIn(worker.process.exitcode, (0, -signal.SIGKILL))
            worker.end()
        self.pool.sweep()
        status = self.pool.status()
        self.assertEqual((status.given, status.owned, status.members), (0, 0, 1))
        self.errors.seek(0)
        self.assertEqual(self.errors.read(), "")
        # blocks that died with their workers were used again
        self.assertLessEqual(status.slabs, 2)
        self.pool.destroy()
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
