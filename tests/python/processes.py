#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays that go from process to process."""

import concurrent.futures
import gc
import multiprocessing
import subprocess
import sys

import memclient
import workers
from support import PickleTest, main, skip_without

np = skip_without("numpy")


def numbers(*shape):
    return np.arange(np.prod(shape), dtype="i4").reshape(shape)


class Processes(PickleTest):
    """Each way between processes: what the other one writes is seen here, at the same address."""

    def check(self, array, answer):
        back, address = answer
        self.assertEqual(address, array.ctypes.data)
        self.assertEqual(back.ctypes.data, address)
        np.testing.assert_array_equal(array, numbers(*array.shape) + 1)
        np.testing.assert_array_equal(back, array)
        self.assertIs(type(back), memclient.Array)

    def test_pools(self):
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            with self.subTest(method=method, by="Pool"), context.Pool(1) as pool:
                a = memclient.array(numbers(4, 5))
                self.check(a, pool.apply(workers.add_one, (a,)))
                a = memclient.array(numbers(4, 5))
                self.check(a[1:, ::-1], self.shifted(a, pool.apply(workers.add_one, (a[1:, ::-1],))))
                a.flags.writeable = False
                self.assertIn("read-only", pool.apply(workers.try_to_write, (a[0],)))
                pool.close()
                pool.join()
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
            a = memclient.array(numbers(4, 5))
            self.check(a, executor.submit(workers.add_one, a).result())

    def shifted(self, array, answer):
        """As if the slice had been made of numbers in a row."""
        np.testing.assert_array_equal(array[0], numbers(4, 5)[0])
        array[1:, ::-1] -= numbers(4, 5)[1:, ::-1]
        array[1:, ::-1] += numbers(3, 5)
        return answer

    def test_queues(self):
        context = multiprocessing.get_context("fork")
        queue, answers = context.Queue(), context.Queue()
        process = context.Process(target=workers.serve, args=(queue, answers))
        process.start()
        for _ in range(20):
            a = memclient.array(numbers(100))
            queue.put(a)
            self.check(a, answers.get())
        queue.put(None)
        process.join()
        self.assertEqual(process.exitcode, 0)
        for q in (queue, answers):
            q.close()
            q.join_thread()

    def test_what_was_sent_outlives_its_sender(self):
        context = multiprocessing.get_context("fork")
        # put() returns when it is sent
        queue = context.SimpleQueue()
        process = context.Process(target=workers.send_and_die, args=(queue, list(range(1000))))
        process.start()
        process.join()
        self.assertEqual(process.exitcode, -9)
        gc.collect()
        self.assertEqual(queue.get().tolist(), list(range(1000)))
        queue.close()

    def test_a_child_sends_what_it_has_inherited(self):
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        a = memclient.array(numbers(100))
        process = context.Process(target=lambda: queue.put(a[10:20]))
        process.start()
        b = queue.get()
        process.join()
        self.assertEqual((process.exitcode, b.ctypes.data), (0, a[10:].ctypes.data))
        b[0] = 77
        self.assertEqual(a[10], 77)
        queue.close()

    def test_a_pipe_within_a_process(self):
        ours, theirs = multiprocessing.Pipe()
        a = memclient.array(numbers(10))
        ours.send({"a": a, "more": [a[2:4], 1]})
        got = theirs.recv()
        self.assertEqual(got["a"].ctypes.data, a.ctypes.data)
        got["more"][0][0] = 77
        self.assertEqual(a[2], 77)
        ours.close()
        theirs.close()

    def test_joblib_and_cloudpickle(self):
        try:
            import joblib
            from joblib.externals import cloudpickle
        except ImportError as error:
            self.skipTest(str(error))
        a = memclient.array(numbers(10))
        b = cloudpickle.loads(cloudpickle.dumps(lambda: a))()
        self.assertEqual(b.ctypes.data, a.ctypes.data)
        # it leaves pipes to the end of the interpreter, which would warn of them
        done = subprocess.run([sys.executable, "-c", JOBLIB], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout, "[1, 1, 2, 3, 4, 5, 6, 7, 8, 10]\n")


JOBLIB = """if True:
    import joblib, memclient, workers
    a = memclient.array(range(10))
    joblib.Parallel(2)(joblib.delayed(workers.add_one)(part) for part in (a[:1], a[9:]))
    print(a.tolist())
"""


if __name__ == "__main__":
    main()
