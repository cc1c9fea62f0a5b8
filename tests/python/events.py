#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Events: of one buffer and one name, by `for` and by `async for`, and after the death of a broker."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys

import memclient
from memclient import EventKind
from support import BrokerTest, main, memctl, start_broker

PAGE = 4096

# opens what its argument names, and waits for a line
HOLDER = """
import sys, memclient
with memclient.open(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.readline()
"""


# says what is discarded of the buffer that its argument names
WATCHER = """
import sys, memclient
events = memclient.events(buffer=int(sys.argv[1]))
print("subscribed", flush=True)
event = next(events)
print(event.kind.name, event.buffer, flush=True)
"""


class Alarm(Exception):
    pass


def ring(number, frame):
    raise Alarm


class Events(BrokerTest):
    def hold(self, name):
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.assertEqual(holder.stdout.readline(), "open\n")
        return holder

    def end(self, holder):
        if holder.stdin:
            holder.stdin.close()
        holder.stdout.close()
        holder.wait()

    def test_holders_come_and_die(self):
        with memclient.alloc(PAGE, name="tests/watched") as b:
            events = memclient.events(buffer=b.id, timeout=60)
            holder = self.hold("tests/watched")
            event = next(events)
            self.assertEqual((event.kind, event.buffer, event.pid), (EventKind.HELD, b.id, holder.pid))
            self.assertEqual(event.uid, os.getuid())
            os.kill(holder.pid, signal.SIGKILL)
            self.assertEqual(next(events).kind, EventKind.DIED)
            self.end(holder)
            death = next(events)
            self.assertEqual((death.kind, death.session), (EventKind.DEATH, event.session))
            # before Linux 6.15 the kernel does not tell
            self.assertIn((death.end, death.exit_status), [(4, signal.SIGKILL), (5, 0)])
            memclient.events(EventKind(0), buffer=b.id)
            b.unbind("tests/watched")

    def test_what_is_discarded_is_told(self):
        """To who holds nothing, too: here, and by memctl."""
        command = [os.path.join(os.environ["builddir"], "client/memctl/memctl"), "--json", "events", "--follow", "--kind"]
        with memclient.alloc(PAGE) as b:
            follower = subprocess.Popen([*command, "discarded", str(b.id)], stdout=subprocess.PIPE, text=True)
            watcher = subprocess.Popen(
                [sys.executable, "-c", WATCHER, str(b.id)], stdout=subprocess.PIPE, text=True
            )
            self.assertEqual(watcher.stdout.readline(), "subscribed\n")
            # that memctl has subscribed shows only in what it says
            while not select.select([follower.stdout], [], [], 0.05)[0]:
                b.discard()
            row = json.loads(follower.stdout.readline())
            self.assertEqual((row["kind"], row["buffer"]), ("discarded", b.id))
            self.assertIn("reads as zeros", row["detail"])
            self.assertEqual(watcher.stdout.readline(), f"DISCARDED {b.id}\n")
            self.end(watcher)
        # it has ended with the buffer
        self.assertEqual(follower.wait(), 0)
        follower.stdout.close()

    def test_a_name_is_awaited_by_asyncio(self):
        async def wait():
            async for event in memclient.events(name="tests/soon", timeout=60):
                return event

        async def work():
            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0)
            with memclient.alloc(PAGE, name="tests/soon") as b:
                event = await waiting
                self.assertEqual((event.kind, event.name, event.bound), (EventKind.NAME, "tests/soon", True))
                b.unbind("tests/soon")

        asyncio.run(work())
        memclient.events(EventKind(0), name="tests/soon")
        self.drain()

    def test_asyncio_has_patience_and_can_be_cancelled(self):
        async def work():
            got = [event async for event in memclient.events(EventKind.NAME, timeout=0.01)]
            self.assertEqual(got, [])
            waiting = asyncio.create_task(anext(memclient.events(EventKind.NAME)))
            await asyncio.sleep(0)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting

        asyncio.run(work())
        memclient.events(EventKind(0))

    def test_a_signal_ends_the_wait(self):
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, ring))
        with self.assertRaises(Alarm):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            next(memclient.events(EventKind.SHUTDOWN))
        memclient.events(EventKind(0))

    def test_what_cannot_be(self):
        with self.assertRaises(TypeError):
            memclient.events(buffer=1, name="a")
        with self.assertRaises(memclient.Error):
            memclient.events(buffer=1 << 40)
        with self.assertRaises(memclient.Error):
            memclient.events(EventKind.HELD, name="a")
        with self.assertRaises(OverflowError):
            memclient.events(buffer=-1)

    def test_another_broker_goes_on(self):
        with memclient.alloc(PAGE, name="tests/outlives") as b:
            events = memclient.events(EventKind.HELD, buffer=b.id, timeout=60)
            os.kill(memctl("status")[0]["broker_pid"], signal.SIGKILL)
            self.assertEqual(next(events).kind, EventKind.LOST)
            # until there is another connection it may miss some
            self.assertTrue(memclient.broker())
            holder = self.hold("tests/outlives")
            self.assertEqual(next(e for e in events if e.kind != EventKind.LOST).kind, EventKind.HELD)
            self.end(holder)
            memclient.events(EventKind(0), buffer=b.id)
            b.unbind("tests/outlives")
        self.drain()

    def drain(self):
        for _ in memclient.events(EventKind(0), timeout=0):
            pass


if __name__ == "__main__":
    start_broker()
    main()
