#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A camera, and three programs that look at each of its frames: without a copy, and read-only.

    camera.py FRAMES

The frames lie in a ring of buffers. A consumer says when it is done with one, and the camera takes it again when all
three are. One that dies holds nobody up: the camera goes on with the others.
"""

import multiprocessing
import sys
from multiprocessing import connection

import numpy as np

import memclient

SHAPE = (480, 640, 3)
RING = 4
CONSUMERS = ("brightness", "edges", "motion")


def consume(name: str, pipe: connection.Connection) -> None:
    """Computes something of each frame."""
    total, before = 0.0, None
    while (message := pipe.recv()) is not None:
        number, frame = message
        gray = frame.mean(axis=2)
        if name == "brightness":
            total += gray.mean()
        elif name == "edges":
            total += abs(np.diff(gray)).mean()
        else:
            total += 0 if before is None else abs(gray - before).mean()
            before = gray
        del frame, message
        pipe.send(number)
    pipe.send(f"{name}: {total:.1f}")


class Camera:
    def __init__(self) -> None:
        self.ring = [memclient.empty(SHAPE, "u1") for _ in range(RING)]
        self.users: list[set[connection.Connection]] = [set() for _ in range(RING)]
        self.pipes = []
        for name in CONSUMERS:
            ours, theirs = multiprocessing.Pipe()
            multiprocessing.Process(target=consume, args=(name, theirs), daemon=True).start()
            theirs.close()
            self.pipes.append(ours)

    def drop(self, pipe: connection.Connection) -> None:
        """Its process has died."""
        self.pipes.remove(pipe)
        for users in self.users:
            users.discard(pipe)

    def wait(self, number: int) -> None:
        """Until nobody uses a frame of the ring."""
        while self.users[number]:
            for pipe in self.users[number].intersection(connection.wait(list(self.users[number]))):
                try:
                    self.users[pipe.recv()].discard(pipe)
                except (EOFError, ConnectionError):
                    self.drop(pipe)

    def send(self, count: int) -> None:
        """Takes a picture, and sends it to all. What goes again in the same buffer needs no call of the broker."""
        number = count % RING
        self.wait(number)
        self.ring[number][:] = count
        for pipe in list(self.pipes):
            try:
                pipe.send((number, self.ring[number]))
                self.users[number].add(pipe)
            except ConnectionError:
                self.drop(pipe)

    def end(self) -> None:
        for number in range(RING):
            self.wait(number)
        for pipe in self.pipes:
            pipe.send(None)
            print(pipe.recv())
        for buffer in filter(None, (frame.buffer for frame in self.ring)):  # pickles would keep it for a minute
            buffer.revoke_tokens()


if __name__ == "__main__":
    memclient.set_pickling(readonly=True)
    camera = Camera()
    for count in range(int(sys.argv[1])):
        camera.send(count)
    camera.end()
