#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals while a call waits: handlers run, and what they raise ends the wait."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

import memclient
import support
from support import BrokerTest, main, memctl, start_broker, wait_until

MIB = 1 << 20


class Alarm(Exception):
    pass


def ring(number, frame):
    raise Alarm


class Signals(BrokerTest):
    def setUp(self):
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, ring))
        # the pool of this test's broker has no more
        self.full = memclient.alloc(64 * MIB, pool="small")

    def tearDown(self):
        self.full.close()
        self.assert_nothing_left()

    @contextlib.contextmanager
    def stopped_broker(self, doors=False):
        """Nobody answers, also no door if these are to stop. The keeper is stopped first: it would end a broker that is."""
        pids = [memctl("status")[0][key] for key in ("keeper_pid", "broker_pid")]
        if doors:
            pids += [pid for pid in support.children(pids[1]) if support.name_of(pid) == "memoryd-door"]
            self.assertEqual(len(pids), 3)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)

    def test_an_exception_ends_a_wait_for_room(self):
        with self.assertRaises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            memclient.alloc(MIB, pool="small", timeout=None)
        # what it would have got is given back
        self.full.close()
        with memclient.alloc(64 * MIB, pool="small", timeout=60) as other:
            self.assertEqual(other.size, 64 * MIB)

    def test_a_handler_that_returns_ends_nothing(self):
        rings = []
        signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        try:
            with self.assertRaises(memclient.TimedOut):
                memclient.alloc(MIB, pool="small", timeout=0.5)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertTrue(rings)

    def test_a_broker_that_does_not_answer(self):
        with self.stopped_broker():
            for call in (memclient.broker, self.full.share, lambda: memclient.open("a name"), memclient.buffers):
                with self.assertRaises(Alarm):
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    call()

    def test_a_thread_that_waits_for_another_one(self):
        """The other one receives for both."""
        with self.stopped_broker():
            thread = threading.Thread(target=memclient.broker)
            thread.start()
            with self.assertRaises(Alarm):
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                memclient.broker()
        thread.join()

    def test_a_handler_may_call(self):
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(memclient.broker().broker_pid))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with self.assertRaises(memclient.TimedOut):
            memclient.alloc(MIB, pool="small", timeout=0.4)
        self.assertEqual(len(seen), 1)

    def test_control_c(self):
        program = """if True:
            import memclient, signal
            # who begins this may ignore it, as shells do for what runs in the background
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                print("begin", flush=True)
                memclient.alloc(1 << 20, pool="small", timeout=None)
            except KeyboardInterrupt:
                print("ended", flush=True)
        """
        child = subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "error", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.assertEqual(child.stdout.readline(), b"begin\n")
        # it is in the call; before that it would end as well
        wait_until(lambda: any(row["pid"] == child.pid for row in memctl("sessions")))
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.communicate(), (b"ended\n", b""))
        self.assertEqual(child.returncode, 0)

    def test_control_c_while_a_descriptor_is_opened(self):
        """It is shown to a door, and what that says of it to the broker. Either may not answer."""
        program = """if True:
            import memclient, signal, sys
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with memclient.alloc(4096) as buffer, memclient.alloc(4096) as other:
                # the door has answered once
                memclient.open(other.fileno()).close()
                fd = buffer.fileno()
                print("begin", flush=True)
                sys.stdin.readline()
                try:
                    print("opens", flush=True)
                    memclient.open(fd)
                except KeyboardInterrupt:
                    print("ended", flush=True)
                sys.stdin.readline()
                memclient.open(fd).close()
        """
        for doors in (False, True):
            child = subprocess.Popen(
                [sys.executable, "-X", "dev", "-W", "error", "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self.assertEqual(child.stdout.readline(), b"begin\n")
            with self.stopped_broker(doors):
                child.stdin.write(b"\n")
                child.stdin.flush()
                self.assertEqual(child.stdout.readline(), b"opens\n")
                # earlier it would end as well
                wait_until(lambda: support.state_of(child.pid) == "S")
                child.send_signal(signal.SIGINT)
                self.assertEqual(child.stdout.readline(), b"ended\n")
            # and the next call is served
            self.assertEqual(child.communicate(b"\n"), (b"", b""))
            self.assertEqual(child.returncode, 0)

    def test_no_broker_at_all(self):
        """A socket that nobody accepts connections from is waited for."""
        import socket

        path = os.path.join(os.environ["PYTHON_TEST_FOLDER"], "deaf")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as deaf, contextlib.ExitStack() as others:
            deaf.bind(path)
            deaf.listen(0)
            for _ in range(3):
                other = others.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
                with contextlib.suppress(BlockingIOError):
                    other.connect(path)
            program = """if True:
                import memclient, signal
                def ring(*_): raise ZeroDivisionError
                signal.signal(signal.SIGALRM, ring)
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.2)
                    memclient.alloc(4096)
                except ZeroDivisionError:
                    print("ended")
            """
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            done = support.python(program, env={**os.environ, "MEMORYD_SOCKET": path})
            self.assertEqual((done.stdout, done.stderr), ("ended\n", ""))


if __name__ == "__main__":
    start_broker("[pools]\npages = base\n\n[pool small]\nnodes = 0\npages = base\ncapacity = 64M\nstock = 0\n")
    main()
