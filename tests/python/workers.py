# SPDX-License-Identifier: Apache-2.0
"""What the other processes of tests do, wherever they are spawned. Each has what it got, and where it is."""

import os
import signal


def add_one(array):
    """In the memory that it has got, and back with it."""
    array += 1
    return array, array.ctypes.data


def try_to_write(array):
    try:
        array[0] = 1
    except ValueError as error:
        return str(error)
    return "written"


def serve(queue, answers):
    """Until None."""
    while (array := queue.get()) is not None:
        answers.put(add_one(array))


def send_and_die(queue, values):
    import memclient

    queue.put(memclient.array(values))
    os.kill(os.getpid(), signal.SIGKILL)


def add_one_to_tensor(tensor):
    tensor += 1
    return tensor, tensor.data_ptr()


def pass_on(pool, pipe, errors):
    """Adds one to each array, and sends it back, until None. Nothing is to be said of it."""
    os.dup2(errors, 2)
    while (array := pipe.recv()) is not None:
        array += 1
        pipe.send(array)
