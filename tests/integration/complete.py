# SPDX-License-Identifier: Apache-2.0
"""Types into a shell at a terminal: complete.py bash|zsh SCRIPT, with a line of standard input for each that is typed.

Each line is typed, TAB is pressed, and the line is entered. Written is what the command gets then: its words, each in
brackets.
"""
import os
import pty
import select
import sys

COMMAND = r"""
memctl() {
    if [[ " $* " == *" __complete "* ]]; then command memctl "$@"
    else printf 'got:'; printf '[%%s]' "$@"; printf ':got\n'; fi
}
"""

SHELLS = {
    'bash': (['bash', '--norc', '--noprofile', '-i'], r"""
PS1=; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
""" + COMMAND + r"""
. '%s'; stty -echo; printf 'rea%%s\n' dy
"""),
    # its line editor draws what is typed by itself
    'zsh': (['zsh', '-f', '-i'], r"""
PS1= PROMPT_EOL_MARK=; unsetopt beep zle_bracketed_paste; autoload -Uz compinit; compinit -u -D
""" + COMMAND + r"""
typing=%s; autoload -Uz $typing; compdef ${typing:t} memctl; printf 'rea%%s\n' dy
"""),
}


def wait_for(fd, end):
    seen = b''
    while end not in seen:
        if not select.select([fd], [], [], 60)[0]:
            sys.exit('nothing more came than: %r' % seen)
        seen += os.read(fd, 4096)
    return seen


def main():
    arguments, prepare = SHELLS[sys.argv[1]]
    pid, fd = pty.fork()
    if not pid:
        os.execvp(arguments[0], arguments)
    os.write(fd, (prepare % sys.argv[2]).encode())
    wait_for(fd, b'ready\r\n')
    for line in sys.stdin.buffer.read().splitlines():
        os.write(fd, line + b'\t\n')
        seen = wait_for(fd, b':got\r\n')
        sys.stdout.buffer.write(seen[seen.rindex(b'got:[') + 4:seen.rindex(b':got')] + b'\n')
    os.write(fd, b'exit\n')
    os.waitpid(pid, 0)


main()
