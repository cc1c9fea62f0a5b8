#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples run, also while their processes and the broker are killed."""

import os
import random
import signal
import subprocess
import sys

import memclient
from support import PickleTest, main, memctl, skip_without, wait_until

np = skip_without("numpy")

FOLDER = os.path.join(os.environ["srcdir"], "client/python/examples")
# of all tests that kill at random
SEED = int(os.environ.get("MEMORYD_TEST_SEED", "21"))


def start(example, *args):
    command = [sys.executable, "-X", "dev", "-W", "error", os.path.join(FOLDER, example), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def broker_pid():
    return memctl("status")[0]["broker_pid"]


class Examples(PickleTest):
    def run_one(self, example, *args):
        process = start(example, *args)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        return out, err

    def test_each_is_short(self):
        for name in os.listdir(FOLDER):
            with open(os.path.join(FOLDER, name)) as file:
                self.assertLessEqual(len(file.readlines()), 100, name)

    def kill_all(self, rounds):
        """In any order. Whoever lives is not disturbed, and finds nothing but what it has stored."""
        source = random.Random(SEED)
        kinds = {"server": ("server", 10**6), "rank 0": ("rank", 0, 10**6), "rank 1": ("rank", 1, 10**6)}
        running = {name: start("kv_cache.py", *args) for name, args in kinds.items()}
        rows = [b"" for _ in range(2)]
        for _ in range(rounds):
            # they have begun
            wait_until(lambda: sum(n["name"].startswith("example/kv/rows/") for n in memctl("names")) == 2)
            # and go on
            for rank in range(2):
                before = rows[rank]

                def changes():
                    with memclient.open(f"example/kv/rows/{rank}") as buffer:
                        rows[rank] = bytes(memoryview(buffer))
                    return rows[rank] != before

                wait_until(changes)
            victim = source.choice([*kinds, "broker"])
            if victim == "broker":
                pid = broker_pid()
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: broker_pid() != pid)
                continue
            process = running[victim]
            process.kill()
            self.assertEqual(process.communicate(), ("", ""), victim)
            self.assertEqual(process.returncode, -signal.SIGKILL)
            running[victim] = start("kv_cache.py", *kinds[victim])
        for name, process in running.items():
            self.assertIsNone(process.poll(), name)
            process.kill()
            self.assertEqual(process.communicate(), ("", ""), name)
        # blocks that are in rows, and no others
        pool = memclient.Pool("example/kv")
        pool.sweep()
        status = pool.status()
        self.assertEqual((status.owned, status.members), (0, 1))
        self.assertLessEqual(status.given, 2 * 64)
        pool.close()

    def test_kv_cache(self):
        self.kill_all(int(os.environ.get("KILL_ROUNDS", "5")))
        self.assertIn("of 300 steps found", self.run_one("kv_cache.py", "rank", 0, 300)[0])
        self.assertIn("all ranks have", self.run_one("kv_cache.py", "server", 1)[0])
        self.run_one("kv_cache.py", "end")

    def test_weights(self):
        arrays = {"a": np.arange(1000.0).reshape(10, 100), "b": np.asfortranarray(np.eye(3, dtype="f4")), "c": np.int8(7)}
        file = os.path.join(os.environ["PYTHON_TEST_FOLDER"], "weights.npz")
        np.savez(file, **arrays)
        first = self.run_one("weights.py", file)[0]
        self.assertIn("a: (10, 100) of float64, sum 499500.0\nb: (3, 3) of float32, sum 3.0\nc: () of int8, sum 7\n", first)
        number = memclient.open("example/weights/v1").id
        # the second does not read it
        self.assertEqual(self.run_one("weights.py", "no such file")[0], first)
        self.assertEqual(memclient.open("example/weights/v1").id, number)
        memclient.unbind("example/weights/v1")

    def test_the_manuals(self):
        """The examples of the page, and what the README's tour does."""
        with open(os.path.join(os.environ["srcdir"], "client/python/memclient-python.7.scd")) as file:
            example = file.read().split("```\n# adding.py\n")[1].split("```")[0]
        with open(os.path.join(os.environ["srcdir"], "README.md")) as file:
            tour = file.read().split("```python\n")[1].split("```")[0]
        for program in (example, "import multiprocessing\nqueue = multiprocessing.SimpleQueue()\n" + tour):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, "1048576.0\n" if program.endswith(example) else "")
        memclient.unbind("a/b")
        memclient.Pool("engine/kv").destroy()

    def test_camera(self):
        out = self.run_one("camera.py", 25)[0].splitlines()
        self.assertEqual(out, ["brightness: 300.0", "edges: 0.0", "motion: 24.0"])


if __name__ == "__main__":
    main()
