# SPDX-License-Identifier: Apache-2.0
"""For metrics.sh and prometheus.sh: a client, and what a service manager does.

scrape.py get ADDRESS [METHOD [PATH [HEADER: VALUE]...]]   prints status, headers, and after an empty line the body
scrape.py pass FILE tcp|PATH PROGRAM [ARGUMENT...]         listens, says in FILE where, and runs the program with that
scrape.py check                                            is what comes from standard input OpenMetrics?
"""

import os
import re
import socket
import sys


def connect(address):
    if address.startswith("/"):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.connect(address)
        return client
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)))


def get(address, method="GET", path="/metrics", *headers):
    if not any(header.lower().startswith("host:") for header in headers):
        headers += ("Host: " + (address if ":" in address else "localhost"),)
    with connect(address) as client:
        client.settimeout(60)
        client.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode())
        reply = b""
        while part := client.recv(1 << 16):
            reply += part
    head, _, body = reply.decode().partition("\r\n\r\n")
    print(head.replace("\r\n", "\n").partition(" ")[2], body, sep="\n\n", end="")


def pass_on(file, where, *program):
    if where == "tcp":
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        where = "127.0.0.1:%d" % listener.getsockname()[1]
    else:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(where)
        os.chmod(where, 0o666)
    listener.listen(16)
    with open(file, "w") as out:
        out.write(where)
    if listener.fileno() != 3:
        os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)
    os.environ.update(LISTEN_FDS="1", LISTEN_FDNAMES="metrics", LISTEN_PID=str(os.getpid()))
    os.execv(program[0], program)


SUFFIXES = {"counter": ["_total"], "gauge": [""], "info": ["_info"], "histogram": ["_bucket", "_count", "_sum"]}
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\d+(?:\.\d+)?)')


def check():
    """What the specification demands of the order of lines, names, labels and values."""
    text = sys.stdin.read()
    assert text.endswith("\n# EOF\n"), "no end"
    families, kind, name, seen = set(), None, None, set()
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families, f"{name} is there twice"
            families.add(name)
            seen = set()
            continue
        if line.startswith("#"):
            what, of, rest = line[2:].split(" ", 2)
            assert what in ("UNIT", "HELP") and of == name and not seen, line
            assert what != "UNIT" or name.endswith("_" + rest), line
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        assert sample[1] in [name + suffix for suffix in SUFFIXES[kind]], line
        key = (sample[1], sample[2])
        assert key not in seen, line
        seen.add(key)
    print(len(families))


if __name__ == "__main__":
    {"get": get, "pass": pass_on, "check": check}[sys.argv[1]](*sys.argv[2:])
