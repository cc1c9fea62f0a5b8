# SPDX-License-Identifier: Apache-2.0
"""Types into a bash at a terminal: complete.py SCRIPT, with a line of standard input for each line that is typed.

Each line is typed, TAB is pressed, and the line is entered. Written is what the command gets then: its words, each in
brackets.
"""
import os
import pty
import select
import sys

PREPARE = r"""
PS1=; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
memctl() {
    if [[ " $* " == *" __complete "* ]]; then command memctl "$@"
    else printf 'got:'; printf '[%%s]' "$@"; printf ':got\n'; fi
}
. '%s'; stty -echo; printf 'rea%%s\n' dy
"""


def wait_for(fd, end):
    seen = b''
    while end not in seen:
        if not select.select([fd], [], [], 60)[0]:
            sys.exit('nothing more came than: %r' % seen)
        seen += os.read(fd, 4096)
    return seen


def main():
    pid, fd = pty.fork()
    if not pid:
        os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])
    os.write(fd, (PREPARE % sys.argv[1]).encode())
    wait_for(fd, b'ready\r\n')
    for line in sys.stdin.buffer.read().splitlines():
        os.write(fd, line + b'\t\n')
        seen = wait_for(fd, b':got\r\n')
        sys.stdout.buffer.write(seen[seen.rindex(b'got:[') + 4:seen.rindex(b':got')] + b'\n')
    os.write(fd, b'exit\n')
    os.waitpid(pid, 0)


main()
