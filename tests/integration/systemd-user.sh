#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The user units under a real `systemd --user`, in a mount and process namespace of its own, so that the machine's
# systemd, its /run and its cgroups stay as they are: activation by the socket, readiness, what clients must not notice
# (kills, hangs, restart, upgrade: survive.sh), and what is left after stop.
set -eu

skip() { echo "$*"; exit 77; }

if [ "${1-}" != inside ]; then
    [ "$(id -u)" = 0 ] || skip "needs root, for a namespace with a systemd of its own"
    [ -x /lib/systemd/systemd ] && [ -x /lib/systemd/systemd-journald ] || skip "systemd is missing"
    case $SANITIZERS in no) ;; *) skip "the sanitizers need more than the units allow" ;; esac
    unshare --mount --pid --fork --propagation private true 2>/dev/null || skip "no permission to make namespaces"
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    export tmp
    unshare --mount --pid --fork --kill-child --mount-proc --propagation private bash "$0" inside
    exit
fi

# ---- in the namespace -------------------------------------------------------------------------------
mount -t tmpfs -o mode=755 tmpfs /run
uid=$(id -u)
inaccessible=/run/systemd/inaccessible
mkdir -p /run/systemd/system /run/systemd/journal "/run/user/$uid" $inaccessible "$tmp/config/systemd/user"
chmod 700 "/run/user/$uid"
mkdir -m 000 $inaccessible/dir
install -m 000 /dev/null $inaccessible/reg
mkfifo -m 000 $inaccessible/fifo
export XDG_RUNTIME_DIR=/run/user/$uid XDG_CONFIG_HOME=$tmp/config
export DBUS_SESSION_BUS_ADDRESS=unix:path=$XDG_RUNTIME_DIR/bus
mount -t cgroup2 cgroup2 /sys/fs/cgroup || skip "no cgroup v2 here"
group=/sys/fs/cgroup/memoryd-test.$$.$RANDOM
mkdir "$group"
# neither the console nor the kernel's log may get what systemd has to say
mount --bind /dev/null /dev/console
mount --bind /dev/null /dev/kmsg

# a copy, which is exchanged for another
memoryd=$tmp/memoryd
cp "$builddir/daemon/memoryd" "$memoryd"
config=$tmp/memoryd.conf
: >"$config"
for unit in "$builddir/systemd/user/memoryd.service" "$srcdir/systemd/user/memoryd.socket"; do
    sed -e "s|^ExecStart=[^ ]*|ExecStart=$memoryd --config $config|" -e "s|^ExecReload=[^ ]*|ExecReload=$builddir/client/memctl/memctl|" "$unit" >"$XDG_CONFIG_HOME/systemd/user/${unit##*/}"
done

failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
ctl() { systemctl --user "$@"; }
# what a process of the service says is not found by the unit here
journal() { journalctl --sync; journalctl _COMM=memoryd --no-pager -o cat; }
value() { ctl show -P "$2" "$1"; }
memctl() { "$builddir/client/memctl/memctl" "$@"; }
export MEMORYD_SOCKET=$XDG_RUNTIME_DIR/memoryd/memoryd.sock
programs=$builddir/tests/integration work=$tmp
. "$srcdir/tests/integration/survive.sh"

finish() {
    ctl exit >/dev/null 2>&1 || :
    for _ in $(seq 600); do kill -0 "$manager" 2>/dev/null || break; sleep 0.05; done
    kill "$journal" 2>/dev/null || :
    wait 2>/dev/null || :
    echo $$ >/sys/fs/cgroup/cgroup.procs || :
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
}

/lib/systemd/systemd-journald >"$tmp/journald.log" 2>&1 &
journal=$!
within journald 60 test -S /run/systemd/journal/stdout
sh -c "echo 0 >$group/cgroup.procs; exec /lib/systemd/systemd --user --log-target=journal" >"$tmp/manager.log" 2>&1 &
manager=$!
trap finish EXIT
within "the user manager" 60 ctl is-system-running || { cat "$tmp/manager.log"; skip "systemd --user does not run here"; }

# ---- activation -------------------------------------------------------------------------------------
ctl start memoryd.socket || fail "the socket does not start"
socket=$MEMORYD_SOCKET
[ "$(stat -c %a "$socket")" = 600 ] || fail "the socket's mode is $(stat -c %a "$socket")"
[ "$(value memoryd.service ActiveState)" = inactive ] || fail "the service runs before anybody asked"
memctl status >"$tmp/out" || { fail "memctl status"; cat "$tmp/out"; journalctl --user-unit memoryd.service --no-pager -o cat | tail -20; }
# the keeper tells systemd while the broker serves already
for _ in $(seq 600); do [ "$(value memoryd.service ActiveState)" = activating ] || break; sleep 0.05; done
[ "$(value memoryd.service ActiveState)/$(value memoryd.service SubState)" = active/running ] || fail "not ready"
pid=$(value memoryd.service MainPID)
[ "$(ulimit -Hn)" = "$(awk '/Max open files/ { print $4 }' "/proc/$pid/limits")" ] ||
    [ "$(awk '/Max open files/ { print $4 }' "/proc/$pid/limits")" -ge 524288 ] || fail "the limit of descriptors was not raised"
grep -q '^Seccomp:.*2' "/proc/$pid/status" || fail "no system call filter"
grep -q '^NoNewPrivs:.*1' "/proc/$pid/status" || fail "new privileges are possible"

# ---- memory -----------------------------------------------------------------------------------------
memctl alloc --pages base --size 4M --name a/b >"$tmp/out" || { fail "memctl alloc"; cat "$tmp/out"; }
head -c 4194304 /dev/urandom >"$tmp/bytes"
memctl fill a/b <"$tmp/bytes" || fail "memctl fill"
memctl cat a/b | cmp - "$tmp/bytes" || fail "memctl cat gives other bytes"
memctl check >"$tmp/out" || { fail "memctl check"; cat "$tmp/out"; }

# ---- death, restart, upgrade ------------------------------------------------------------------------
begin_clients
all_events

# A hung keeper: systemd's watchdog, here set to five seconds: nobody may take a busy machine for a hung keeper.
mkdir -p "$XDG_CONFIG_HOME/systemd/user/memoryd.service.d"
printf '[Service]\nWatchdogSec=5s\n' >"$XDG_CONFIG_HOME/systemd/user/memoryd.service.d/watchdog.conf"
ctl daemon-reload
event "restart with a short watchdog" both ctl restart memoryd.service
event "a healthy keeper and the watchdog" none sleep 6
stop_keeper() { kill -STOP "$(value memoryd.service MainPID)"; }
event "SIGSTOP of the keeper" both stop_keeper

# A hung broker: frozen, which looks like sleep to everybody. Its keeper helps it after ten seconds.
freeze_broker() {
    local cell=$group/frozen
    mkdir "$cell" && echo 1 >"$cell/cgroup.freeze" && pid_of broker >"$cell/cgroup.procs"
}
event "a broker that hangs" broker freeze_broker
end_clients
memctl rm a/b || fail "memctl rm"
lose_everything

# ---- the configuration ------------------------------------------------------------------------------
mistakes_while_it_serves "$config"
mistakes_at_a_first_start "$config"

# ---- stop -------------------------------------------------------------------------------------------
ctl stop memoryd.service memoryd.socket
[ "$(value memoryd.service Result)" = success ] || fail "stop: $(value memoryd.service Result)"
[ ! -e "$socket" ] || fail "the socket is left behind"
journalctl --user-unit memoryd.service --no-pager -o cat -p warning >"$tmp/out" 2>&1 || :

[ $failures = 0 ] || { journalctl --user-unit memoryd.service --no-pager -o cat | tail -40; exit 1; }
echo "the user units activate, serve, lose nothing, and stop"
