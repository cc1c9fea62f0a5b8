#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# memctl top in a terminal, which is tmux's: what is on the screen after each key, in other sizes, without colours, and
# while a broker dies.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH

command -v tmux >/dev/null || { echo "there is no tmux"; exit 77; }
memctl top </dev/null >"$dir/out" 2>&1
! grep -q 'without curses' "$dir/out" || { echo "memctl was built without curses"; exit 77; }

# A server of our own, whose socket's path is short, and that reads nobody's configuration.
TMUX_TMPDIR=$(mktemp -d /tmp/top.XXXXXX)
export TMUX_TMPDIR
unset TMUX
in_tmux() { tmux -L top -f /dev/null "$@"; }
end_tmux() {
    local server
    server=$(in_tmux display-message -p '#{pid}' 2>/dev/null)
    in_tmux kill-server 2>/dev/null
    for _ in $(seq 1200); do { [ -n "$server" ] && kill -0 "$server" 2>/dev/null; } || break; sleep 0.05; done
    rm -rf "$TMUX_TMPDIR"
}
trap 'end_tmux; [ -z "$broker" ] || { kill "$broker" && wait "$broker"; } 2>/dev/null || :; rm -rf "$dir"' EXIT

# screen PATTERN: until a line of the screen matches
screen() {
    for _ in $(seq 1200); do
        in_tmux capture-pane -p -t top >"$dir/out" 2>"$dir/err" && grep -qE -- "$1" "$dir/out" && return
        sleep 0.05
    done
    fail "the screen never had: $1"
}
keys() { in_tmux send-keys -t top "$@" || fail "send-keys"; }
# begin COLUMNS LINES ENVIRONMENT COMMAND: what remains on the screen at its end stays there
begin() {
    in_tmux kill-session -t top 2>/dev/null
    in_tmux new-session -d -s top -x "$1" -y "$2" \
        "env $3 MEMORYD_SOCKET='$MEMORYD_SOCKET' MEMORYD_AUTOSTART=0 $4; echo ended with \$?; exec cat" || fail "tmux"
    in_tmux resize-window -t top -x "$1" -y "$2" 2>/dev/null
}
in_tmux new-session -d -s other -x 80 -y 24 cat || { echo "tmux does not work here"; exit 77; }

begin_test_broker
for n in 1 2 3; do expect 0 memctl alloc --size "${n}M" --name "top/$n"; done
memctl open top/3 sleep 1000 &
holder=$!
others=()
trap 'end_tmux; kill "$holder" "${others[@]}" 2>/dev/null; wait "$holder" "${others[@]}" 2>/dev/null
      [ -z "$broker" ] || { kill "$broker" && wait "$broker"; } 2>/dev/null || :; rm -rf "$dir"' EXIT

# ---- each view, from keys ----
begin 80 24 "NO_COLOR=1" "memctl top --interval 200ms"
screen '^memoryd .*6M of'
screen '^chosen: 3 buffers, 6M'
screen '^node0-4k +\[#+\.+\]'
screen '^> +[0-9]+ +3M .*top/3'
screen '^q quit.*Tab view'
[ "$(awk '{ print length }' "$dir/out" | sort -n | tail -n 1)" -le 80 ] || fail "wider than the terminal"
keys Down; screen '^> +[0-9]+ +2M .*top/2'
keys Up; screen '^> .*top/3'
keys s; screen '^buffers by holds'
keys s; screen '^buffers by oldest'; screen '^> .*top/1'
keys / ; screen '^filter:'
keys 'pid:x' Enter; screen 'that is no filter'
keys / ; keys 'pool:node0-4k' Enter; screen 'buffers by bytes, only pool:node0-4k'
keys Escape; screen '^buffers by bytes *$'

# ---- looking into a buffer ----
screen '^> .*top/3'
keys Enter; screen '^ +name +top/3'
screen '^ +RIGHTS +SINCE +CLAIM +UID +PID +SESSION +PROGRAM'
screen "^  rw*s*m* +[0-9]+[smh] -  +$(id -u) +$holder +[0-9]+ memctl"
screen 'kept by +1 session, 1 name, 0 tokens'
screen "open in .*[0-9]+"
screen '^buffer [0-9]+ *$'
keys Escape; screen '^buffers by bytes'

# ---- a process, and what it holds ----
keys Tab; screen '^processes by bytes'
screen '^> .* RATE +REQ/S +WAITING|^ +PID .* RATE +REQ/S +WAITING'; screen '/s +[1-9][0-9]* +0 +[0-9]+s memctl'
keys s; screen '^processes by holds'; screen "^> +$holder .* 1 .*memctl"
keys Enter; screen 'buffers by bytes, only session:[0-9]+ *$'; screen '^chosen: 1 buffer, 3M'
screen '^> +[0-9]+ +3M rw*s*m* +[0-9]+[smh] - +.* top/3'
keys Escape; screen '^processes by bytes'
keys Tab; screen "^users by bytes"; screen "^> +$(id -u) +6M"
keys Enter; screen "only uid:$(id -u)"

# ---- more than there is room for: of a buffer's holders, and of rows ----
keys Escape; screen '^users by bytes'
keys Tab; screen '^buffers by bytes'
for _ in $(seq 12); do memctl open --claim shared top/3 sleep 1000 & others+=($!); done
for _ in $(seq 1200); do
    [ "$(memctl --json buffers | jq '.[] | select(.name == "top/3").holds')" = 13 ] && break
    sleep 0.05
done
keys r; screen '^> .* 13 .*top/3'
keys Enter; screen '^buffer [0-9]+: 0 more lines above, [1-9][0-9]* below'
grep -qE '^  rw*s*m* +[0-9]+[smh] ' "$dir/out" || fail "no holder is seen"
keys Down; screen '^buffer [0-9]+: 1 more line above'
for _ in 1 2 3; do keys PageDown; done; screen '^buffer [0-9]+: [1-9][0-9]* more lines above, 0 below'
screen '^ +RIGHTS +SINCE +CLAIM'; screen '^q quit|^Esc back'
[ "$(grep -cE '^  rw*s*m* +[0-9]+[smh] (shared|-) ' "$dir/out")" -ge 5 ] || fail "the holders are not seen"
[ "$(awk '{ print length }' "$dir/out" | sort -n | tail -n 1)" -le 80 ] || fail "wider than the terminal"
for _ in 1 2 3; do keys PageUp; done; screen '^buffer [0-9]+: 0 more lines above'
in_tmux resize-window -t top -x 80 -y 8; screen '^buffer [0-9]+: 0 more lines above'
in_tmux resize-window -t top -x 80 -y 50; screen '^buffer [0-9]+ *$'
[ "$(grep -cE '^  rw*s*m* +[0-9]+[smh] (shared|-) ' "$dir/out")" = 13 ] || fail "not all holders are seen"
in_tmux resize-window -t top -x 80 -y 24
keys Escape; screen '^buffers by bytes *$'
kill "${others[@]}"; wait "${others[@]}" 2>/dev/null
others=()
for n in $(seq 30); do memctl alloc --size 4K --name "small/$n" >"$dir/out" || fail "alloc"; done
keys r; screen '^buffers by bytes: 1 to [1-9][0-9]? of 33 *$'
keys PageDown; keys PageDown; screen '^buffers by bytes: ([2-9]|[1-9][0-9]) to [1-9][0-9] of 33'
for n in $(seq 30); do memctl rm "small/$n" || fail "rm"; done
screen '^> .*top/'
keys PageUp; keys PageUp; keys PageUp; screen '^> .*top/3'

# ---- another size ----
in_tmux resize-window -t top -x 60 -y 12; screen '\+$'
[ "$(awk '{ print length }' "$dir/out" | sort -n | tail -n 1)" -le 60 ] || fail "wider than the terminal"
screen '^q quit'
in_tmux resize-window -t top -x 20 -y 4; screen '^memoryd'
in_tmux resize-window -t top -x 132 -y 40; screen '^> .*top/3'

# ---- the broker dies, and another one comes ----
pid=$(memctl --json status | jq '.[0].broker_pid')
kill -KILL "$pid"
for _ in $(seq 1200); do
    [ "$(memctl --json status 2>/dev/null | jq '.[0].broker_pid')" != "$pid" ] && break
    sleep 0.05
done
expect 0 memctl alloc --size 8M --name top/8
screen '^> .*top/8'
kill "$broker"; wait "$broker"
broker=
screen '^! .*what is shown is older'
begin_test_broker
expect 0 memctl alloc --size 9M --name top/9
screen '^> .*top/9'
keys q; screen 'ended with 0'

# ---- a terminal that can do little, and a record ----
expect 0 memctl --json top
cp "$dir/out" "$dir/record"
begin 80 24 "TERM=vt100" "memctl top --replay '$dir/record'"
screen '^> .*top/9'
keys q; screen 'ended with 0'
begin 80 24 "TERM=no-such-terminal" "memctl top"
screen 'TERM'; screen 'ended with 1'
