# SPDX-License-Identifier: Apache-2.0
"""What python.c measures: reads the name of a way to send 64 MiB, sends it, and says how many us that took."""

import multiprocessing
import sys
import time
from multiprocessing import shared_memory
from multiprocessing.reduction import ForkingPickler

try:
    import numpy

    import memclient
except ImportError as error:
    sys.exit(f"{error}")

SIZE = 64 << 20
FRESH = 5
CONTEXT = multiprocessing.get_context("fork")


def load(data):
    """Seconds until both ends of what a pickle has were looked at."""
    begin = time.perf_counter()
    what = ForkingPickler.loads(data)
    array = numpy.frombuffer(what.buf, numpy.uint8) if isinstance(what, shared_memory.SharedMemory) else what
    good = array[0] == array[-1] == 1
    took = time.perf_counter() - begin
    del array
    if isinstance(what, shared_memory.SharedMemory):
        what.close()
    return took if good else None


def receive(queue, answers):
    """Looks at both ends of each, and gives it back; what comes in a list it has until the next list comes."""
    kept = None
    while (what := queue.get()) is not None:
        if isinstance(what, bytes):
            answers.put(load(what))
            continue
        if isinstance(what, str):
            segment = shared_memory.SharedMemory(what)
            array = numpy.frombuffer(segment.buf, numpy.uint8)
            seen = array[0], array[-1]
            del array
            segment.close()
        else:
            if isinstance(what, list):
                # that one goes now which came in the last list
                kept = what = what[0]
            seen = what[0], what[-1]
        what = None
        answers.put(seen == (1, 1))


def fill(array):
    array[:] = 1
    return array


class Sender:
    def __init__(self):
        self.fresh, self.sent = [], []
        self.pool = memclient.Pool(block_size=SIZE, slab_size=4 * SIZE)
        self.array, self.other = (fill(memclient.empty(SIZE, "u1")) for _ in range(2))
        self.plain = fill(numpy.empty(SIZE, "u1"))
        self.small = fill(numpy.empty(1, "u1"))
        self.segment = shared_memory.SharedMemory(create=True, size=SIZE)
        fill(numpy.frombuffer(self.segment.buf, numpy.uint8))
        self.queue, self.answers = CONTEXT.Queue(), CONTEXT.SimpleQueue()
        self.process = CONTEXT.Process(target=receive, args=(self.queue, self.answers))
        self.process.start()

    def send(self, what):
        begin = time.perf_counter()
        self.queue.put(what)
        good = self.answers.get()
        took = time.perf_counter() - begin
        if not good:
            sys.exit("what has come is something else")
        # the queue's thread has the last pickle until the next one, which would pay for freeing 64 MiB of bytes
        self.queue.put(self.small)
        self.answers.get()
        return took

    def fresh_array(self):
        """In a buffer that was never sent. Several are made at once: for a while the broker then makes room for more."""
        if not self.fresh:
            for array in self.sent:
                array.buffer.revoke_tokens()
            self.sent = []
            self.fresh = [memclient.empty(SIZE, "u1") for _ in range(FRESH)]
            for array in self.fresh:
                fill(array)
            time.sleep(0.2)
        array = fill(self.fresh.pop())
        self.sent.append(array)
        return array

    def first(self):
        return self.send(self.fresh_array())

    def dumps(self, what):
        begin = time.perf_counter()
        ForkingPickler.dumps(what)
        return time.perf_counter() - begin

    def loads(self, what):
        """As the other process says."""
        data = bytes(ForkingPickler.dumps(what))
        fill(self.plain)
        self.queue.put(data)
        if not (took := self.answers.get()):
            sys.exit("what has come is something else")
        return took

    def again(self):
        """The other process still has it when it comes again."""
        return self.send([fill(self.array)])

    def reopened(self):
        return self.send(fill(self.other))

    def pool_block(self):
        return self.send(fill(self.pool.empty(SIZE, "u1")))

    def written_segment(self):
        fill(numpy.frombuffer(self.segment.buf, numpy.uint8))
        return self.segment

    def shm(self):
        return self.send(self.written_segment().name)

    def pickle(self):
        return self.send(fill(self.plain))

    def end(self):
        self.queue.put(None)
        self.process.join()
        self.segment.close()
        self.segment.unlink()


def main():
    sender = Sender()
    ways = {
        "first": sender.first,
        "again": sender.again,
        "reopened": sender.reopened,
        "pool": sender.pool_block,
        "shm": sender.shm,
        "pickle": sender.pickle,
        "dumps": lambda: sender.dumps(sender.fresh_array()),
        "dumps_shm": lambda: sender.dumps(sender.written_segment()),
        "loads": lambda: sender.loads(sender.fresh_array()),
        "loads_shm": lambda: sender.loads(sender.written_segment()),
    }
    print("+", flush=True)
    for line in sys.stdin:
        print(ways[line.strip()]() * 1e6, flush=True)
    sender.end()


main()
