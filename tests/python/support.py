# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: a broker of their own, and programs that use it."""

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import memclient

BUILD = os.environ["builddir"]

# a child that multiprocessing has spawned imports this as well
_folder = os.environ.get("PYTHON_TEST_FOLDER") or tempfile.mkdtemp(prefix="python.")
os.environ["PYTHON_TEST_FOLDER"] = _folder
os.environ["MEMORYD_SOCKET"] = os.path.join(_folder, "memoryd.sock")
os.environ["MEMORYD_AUTOSTART"] = "0"
_broker: subprocess.Popen | None = None


def start_broker(config: str = "") -> subprocess.Popen:
    """Returns when it serves. It ends with the test."""
    global _broker
    file = os.path.join(_folder, "config")
    with open(file, "w") as f:
        # huge pages that are there for a moment are another test's
        f.write(config or "[pools]\npages = base\n")
    with open(os.path.join(_folder, "log"), "a") as log:
        _broker = subprocess.Popen(
            [os.path.join(BUILD, "daemon/memoryd"), "--config", file, "--socket", os.environ["MEMORYD_SOCKET"]],
            stdout=log,
            stderr=log,
        )
    wait_until(lambda: not memctl_status() or _broker.poll() is not None)
    if _broker.poll() is not None:
        with open(os.path.join(_folder, "log")) as log:
            sys.exit("memoryd did not start: " + log.read())
    return _broker


def _has_ended(pid: int) -> bool:
    """It is no child of this process, and whoever has it may not wait for it."""
    try:
        return state_of(pid) == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@atexit.register
def _end_broker() -> None:
    if not _broker or os.getpid() != _main:
        return
    if _broker.poll() is None:
        _broker.terminate()
        _broker.wait()
    elif not memctl_status():
        # a test has killed the keeper, whose broker has taken its place
        keeper = memctl("status")[0]["keeper_pid"]
        os.kill(keeper, signal.SIGTERM)
        wait_until(lambda: _has_ended(keeper))


_main = os.getpid()


def memctl(*words: str) -> list:
    """What memctl lists, from another process than this one."""
    command = [os.path.join(BUILD, "client/memctl/memctl"), "--json", *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def memctl_status() -> int:
    return subprocess.run([os.path.join(BUILD, "client/memctl/memctl"), "status"], capture_output=True).returncode


def wait_until(condition, seconds: float = 60) -> None:
    """As soon as it holds. However loaded the machine is, it does in the end."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not come to be")
        time.sleep(0.01)


def _stat(pid: int) -> tuple:
    """The name of a process, its state, and its parent's pid."""
    with open(f"/proc/{pid}/stat") as file:
        name, _, rest = file.read().rpartition(") ")
    return name.partition(" (")[2], *rest.split()[:2]


def name_of(pid: int) -> str:
    return _stat(pid)[0]


def state_of(pid: int) -> str:
    """S: it waits."""
    return _stat(pid)[1]


def children(pid: int) -> list:
    found = []
    for folder in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if _stat(int(folder))[2] == str(pid):
                found.append(int(folder))
    return found


def python(program: str, *args: str, **options) -> subprocess.CompletedProcess:
    """Runs a program of its own, to its end."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program, *args], capture_output=True, text=True, **options
    )


class BrokerTest(unittest.TestCase):
    """With a broker. After each test nothing of it is left there."""

    @classmethod
    def setUpClass(cls) -> None:
        if _broker is None:
            start_broker()

    def assert_nothing_left(self) -> None:
        wait_until(lambda: not memctl("buffers"))


class PickleTest(BrokerTest):
    """What pickles keep is given back after each test, before they expire."""

    def tearDown(self) -> None:
        memclient.set_pickling()
        gc.collect()
        for token in memclient.tokens():
            with contextlib.suppress(memclient.Error):
                with memclient._memclient.open_id(memclient.Buffer, token.buffer, 0) as buffer:
                    buffer.revoke_tokens()
        self.assert_nothing_left()


def skip_without(name: str):
    """A package of somebody else's, or the end of a test that is about it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(error)
        sys.exit(77)


def main() -> None:
    unittest.main(module="__main__", verbosity=2)
