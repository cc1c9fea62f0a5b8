#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The configuration of a broker that serves: read again, by memctl and by signal, it changes what can be changed and
# names what takes a restart; a mistake changes nothing, is told with file and line, and takes nobody down: not at the
# next broker's death, not at the keeper's, and an upgrade is refused.
set -u

. "${srcdir:?}/tests/support/broker.sh"
export PATH=$builddir/client/memctl:$PATH

fail() {
    echo "config.sh: line ${BASH_LINENO[0]}: $*" >&2
    cat "$dir/log" >&2
    exit 1
}

# what the broker says of itself under this key
status() { timeout 60 memctl --json status | jq -r ".[0].$1"; }

# reload STATUS: by memctl; what it says on standard output is in $dir/out, on the other in $dir/err
reload() {
    memctl reload >"$dir/out" 2>"$dir/err"
    local got=$?
    [ $got = "$1" ] || { cat "$dir/out" "$dir/err"; fail "memctl reload: exit status $got instead of $1"; }
}

# doctor_says true|false: that the configuration is as it should be
doctor_says() {
    memctl --json doctor | jq -e "any(.[]; .check == \"configuration\" and .ok == $1 and (.mend == null) == .ok)" >/dev/null ||
        fail "memctl doctor does not say of the configuration that it is good: $1"
}
# shows LINE, and lacks LINE: on standard output of the last reload
shows() { grep -qxF -- "$1" "$dir/out" || { cat "$dir/out"; fail "it does not say: $1"; }; }
lacks() { ! grep -qF -- "$1" "$dir/out" || { cat "$dir/out"; fail "it says: $1"; }; }
# logged PATTERN: the log comes to say so
logged() {
    for _ in $(seq 600); do
        grep -q -- "$1" "$dir/log" && return
        sleep 0.05
    done
    fail "the log does not say: $1"
}
# a limit of one buffer for a user is in force, or none
limited() { memctl alloc --size 4K --name one >/dev/null && memctl rm one || fail "not one buffer";
    ! memctl alloc --size 2M --name two >/dev/null 2>"$dir/err" || fail "there is no limit"; grep -q "$1" "$dir/err" || fail "it says: $(cat "$dir/err")"; }
unlimited() { memctl alloc --size 2M --name two >/dev/null && memctl rm two || fail "there is a limit"; }

config() { printf '%s\n' "$ordinary_pages" "$@" >"$dir/config"; }
mistakes() { config '[limits]' 'uid_bites = 5'; }
mistake_at="$dir/config:4: \[limits\] uid_bites: no such key; did you mean uid_bytes?"

next_broker() { # KEEPER'S OR BROKER'S, WHICH IS KILLED
    local before=$2
    kill -KILL "$before" || fail "no $1 $before"
    for _ in $(seq 600); do
        [ "$(status "$1_pid")" = "$before" ] || return 0
        sleep 0.05
    done
    fail "there is no $1 after $before"
}

begin_test_broker
broker=$(status keeper_pid)

# ---- what can be changed is, and what cannot be is named ----
config '[limits]' 'uid_bytes = 1M' '[session]' 'grace = 5s' 'overflow_uid = serve' '[broker]' 'spin = off' 'idle_exit = 5s'
reload 0
shows "$dir/config was read"
for key in '[limits] uid_bytes' '[session] grace' '[session] overflow_uid' '[broker] spin' '[broker] idle_exit'; do shows "$key: changed"; done
lacks restart
limited uid_bytes
reload 0
shows "nothing has changed"

# ---- users and groups: one that does not exist is no mistake, and a number needs no look-up ----
config '[limits]' 'uid_bytes = none' "[user $(id -u)]" 'bytes = 1M' '[group no-such-group]' 'share = 10%'
reload 0
for key in "[user $(id -u)]" '[group no-such-group]' '[limits] uid_bytes'; do shows "$key: changed"; done
logged 'warning: .*:[0-9]*: \[group no-such-group\] has no effect: there is none of that name'
limited "bytes in \[user $(id -u)\]"
config '[pool fast]' 'nodes = 0' 'capacity = 64M' '[arena]' 'half = upper' '[broker]' 'worker_threads = 1'
printf '%s\n' '[topology]' 'simulate_nodes = 2' >>"$dir/config"
sed -i 's/^pages = base/pages = auto\ncapacity = 10%\nstock = 1M\ncharge = client/' "$dir/config"
for _ in 1 2; do # it stays so until a restart
    reload 0
    for key in '[pools] capacity' '[pools] stock' '[pools] charge' '[pool fast]' '[arena] half' '[broker] worker_threads' '[topology] simulate_nodes'; do
        shows "$key: takes effect after a restart (memctl upgrade)"
        logged "warning: ${key//[/\\[} .*restart"
    done
done
[ "$(memctl --json pools | jq '[.[] | select(.name == "fast")] | length')" = 0 ] || fail "the pool is there"
unlimited
config
reload 0
lacks restart
shows "[pools] pages: changed"

# ---- mistakes change nothing ----
config '[limits]' 'uid_bytes = 1M'
reload 0
mistakes
echo 'uid_buffers = -3' >>"$dir/config"
reload 1
grep -q "^$mistake_at" "$dir/err" && grep -q "^$dir/config:5: \[limits\] uid_buffers" "$dir/err" || fail "memctl does not name both: $(cat "$dir/err")"
logged "error: $mistake_at"
[ "$(status config_stale)" = true ] || fail "the status does not say so"
doctor_says false
mend=$(memctl --json doctor | jq -r '.[] | select(.check == "configuration") | .mend')
bash -c "$mend" >"$dir/out" 2>&1 && fail "the file is right after: $mend"
grep -q "^$mistake_at" "$dir/out" || fail "doctor's line names no mistake: $(cat "$dir/out")"
limited uid_bytes
config '[pool far]' 'nodes = 63'
reload 1
grep -q 63 "$dir/err" || fail "a pool that cannot be: $(cat "$dir/err")"
limited uid_bytes

# ---- and take nobody down: the next brokers, and the next keeper, go on with what was good ----
mistakes
for _ in 1 2; do
    : >"$dir/log"
    next_broker broker "$(status broker_pid)"
    logged "error: $mistake_at"
    limited uid_bytes
    [ "$(status config_stale)" = true ] || fail "the status does not say so"
done
next_broker keeper "$broker"
broker=$(status keeper_pid)
limited uid_bytes
config '[pool far]' 'nodes = 63'
next_broker broker "$(status broker_pid)"
limited uid_bytes
rm "$dir/config"
next_broker broker "$(status broker_pid)"
logged "error: $dir/config: cannot be read"
limited uid_bytes

# ---- an upgrade is refused ----
before=$(status broker_pid)
mistakes
memctl upgrade 2>"$dir/err" && fail "an upgrade with mistakes in the configuration"
grep -q "$mistake_at" "$dir/err" || fail "memctl upgrade says: $(cat "$dir/err")"
logged "no upgrade: .* mistakes in the configuration"
config '[pool far]' 'nodes = 63'
memctl upgrade 2>"$dir/err" && fail "an upgrade with a configuration that does not fit"
grep -q 63 "$dir/err" || fail "memctl upgrade says: $(cat "$dir/err")"
[ "$(status broker_pid)" = "$before" ] || fail "another broker serves"

# ---- mended, all of it is read ----
config '[pool fast]' 'nodes = 0'
: >"$dir/log"
kill -HUP "$broker"
logged "warning: \[pool fast\] .*restart"
logged "was read again"
unlimited
[ "$(status config_stale)" = false ] || fail "the status still says so"
doctor_says true
memctl upgrade >/dev/null || fail "no upgrade"
[ "$(memctl --json pools | jq '[.[] | select(.name == "fast")] | length')" = 1 ] || fail "the pool is not there"
# after the upgrade, too, there is something to go on with
mistakes
next_broker broker "$(status broker_pid)"
[ "$(memctl --json pools | jq '[.[] | select(.name == "fast")] | length')" = 1 ] || fail "the pool is not there any more"

# ---- not for everybody ----
if [ "$(id -u)" = 0 ]; then
    chmod 711 "$dir"
    setpriv --reuid=60001 --regid=60001 --clear-groups memctl reload >"$dir/out" 2>&1
    [ $? = 1 ] && grep -q "only root" "$dir/out" || fail "a stranger's reload: $(cat "$dir/out")"
fi
kill "$broker"
for _ in $(seq 600); do [ -e "$MEMORYD_SOCKET" ] || break; sleep 0.05; done
broker=

# ---- without a file at the start: it is looked for each time, and there is none ----
export XDG_CONFIG_HOME=$dir/home HOME=$dir
as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid=60001 --regid=60001 --clear-groups)
mkdir -p "$dir/home/memoryd" "$dir/user"
[ "$(id -u)" != 0 ] || chown 60001:60001 "$dir/user"
MEMORYD_SOCKET=$dir/user/memoryd.sock
begin_broker "${as_user[@]}" "$builddir/daemon/memoryd"
reload 0
shows "there is no configuration file; the defaults are in force"
shows "nothing has changed"
logged "there is no configuration file"
dir_config=$dir/home/memoryd/memoryd.conf
printf '[limits]\nuid_bytes = 1M\n' >"$dir_config"
reload 0
shows "$dir_config was read"
limited uid_bytes
[ "$(status config)" = "$dir_config" ] || fail "the status names $(status config)"
rm "$dir_config"
reload 0
shows "there is no configuration file; the defaults are in force"
unlimited
# and what is good without a file is good enough to go on with
printf '[limits]\nuid_bites = 1M\n' >"$dir_config"
kill -KILL "$(status broker_pid)"
logged "error: $dir_config:2: "
unlimited

echo "config.sh: everything as promised"
