#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memclient.shared_memory: CPython's own tests with its classes replaced, and what only ours promises."""

import contextlib
import gc
import io
import multiprocessing.shared_memory
import os
import unittest
import unittest.mock
import warnings

import memclient
from memclient import shared_memory
from support import BrokerTest, main, python, skip_without

np = skip_without("numpy")
suite = skip_without("test._test_multiprocessing")

# of the tracker, which there is none of, and of servers that it is started by
TRACKERS = {
    "test_shared_memory_tracking",
    "test_shared_memory_untracking",
    "test_shared_memory_cleaned_after_process_termination",
    "test_shared_memory_SharedMemoryManager_reuses_resource_tracker",
    "test_shared_memory_SharedMemoryServer_ignores_sigint",
}


class Own(BrokerTest):
    def tearDown(self):
        gc.collect()
        for name in memclient.names():
            memclient.unbind(name.name)
        self.assert_nothing_left()

    def test_a_segment_outlives_who_made_it_and_who_attached(self):
        for program in (
            "from memclient.shared_memory import *; SharedMemory('it', True, 100).buf[0] = 7",
            "from memclient.shared_memory import *; assert SharedMemory('it').buf[0] == 7",
        ):
            done = python(program)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        segment = shared_memory.SharedMemory("it")
        self.assertEqual((segment.size, segment.name, segment.buf[0]), (100, "it", 7))
        self.assertIsInstance(segment, multiprocessing.shared_memory.SharedMemory)
        segment.close()
        segment.close()
        self.assertIsNone(segment.buf)
        segment.unlink()

    def test_nothing_is_unmapped_under_an_array(self):
        segment = shared_memory.SharedMemory(create=True, size=4096)
        array = np.ndarray((4096,), np.uint8, buffer=segment.buf)
        array[:] = 5
        segment.close()
        segment.unlink()
        del segment
        gc.collect()
        self.assertEqual(array.sum(), 5 * 4096)

    def test_a_segment_with_views_ends_silently(self):
        done = python("""if True:
            from memclient.shared_memory import SharedMemory
            s = SharedMemory("it", create=True, size=10)
            v, w = s.buf[1:], memoryview(s.buf)
            s.close()
            v[0] = w[0] = 1
            s = SharedMemory("it")
            v = s.buf[1:]
            s.unlink()
            del s
            v[0] = 1
        """)
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_bad_names(self):
        for name in ("", "/", "a\0b", "x" * 5000, "\n"):
            with self.subTest(name=name), self.assertRaises((ValueError, OSError)):
                shared_memory.SharedMemory(name, create=True, size=1)


class CPython(BrokerTest):
    def test_its_own_tests_pass(self):
        case = type("Tests", (suite._TestSharedMemory, unittest.TestCase), {"TYPE": "processes"})
        case.Process = suite.multiprocessing.Process
        names = [name for name in unittest.defaultTestLoader.getTestCaseNames(case) if name not in TRACKERS]
        self.assertGreater(len(names), 8)
        with contextlib.ExitStack() as stack:
            for name in shared_memory.__all__:
                stack.enter_context(
                    unittest.mock.patch.object(multiprocessing.shared_memory, name, getattr(shared_memory, name))
                )
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            before = set(os.listdir("/dev/shm"))
            text = io.StringIO()
            result = unittest.TextTestRunner(text, verbosity=2).run(unittest.TestSuite(map(case, names)))
        self.assertTrue(result.wasSuccessful(), text.getvalue())
        self.assertEqual(result.testsRun, len(names))
        self.assertFalse({name for name in set(os.listdir("/dev/shm")) - before if name.startswith("psm_")})
        gc.collect()
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
