#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The system units under a real systemd as process 1: a container over a throw-away overlay of this machine's own /,
# with memoryd installed into it by what README.md says, so that a program that pkg-config's words have compiled runs.
# The account is made by sysusers, the broker runs confined, and somebody else's account gets memory from it, and loses
# none of it whatever happens to the service (survive.sh).
set -eu

. "${srcdir:?}/tests/support/container.sh"
case $SANITIZERS in no) ;; *) skip "the sanitizers need more than the units allow" ;; esac
container_enter "$@"

unset MAKEFLAGS MFLAGS MAKELEVEL
prefix=$(sed -n 's|^ExecStart=\(.*\)/sbin/memoryd$|\1|p' "$builddir/systemd/memoryd.service")
[ -n "$prefix" ] || skip "the broker is not below PREFIX/sbin"
case $prefix in
    /usr|/usr/local)
        # As README.md says: root's make install, and nothing else. The copied cache of the loader may know an installation
        # of this machine.
        for folder in "$srcdir" "$builddir"; do
            mkdir -p "$root$folder"
            mount --bind "$folder" "$root$folder"
        done
        rm -f "$root$prefix"/lib/libmemclient*
        chroot "$root" ldconfig
        rc=0
        chroot "$root" make -s -C "$builddir" install >"$tmp/install.log" 2>&1 || rc=1
        umount "$root$builddir" "$root$srcdir"
        sed -n '/^As a service of the machine/,/^Settings/ { /^```/,/^```/p }' "$srcdir/README.md" |
            grep -v -e '^```' -e '^make install$' >"$tmp/io/readme"
        ;;
    *)
        # A prefix of its own becomes /usr/local, except for the configuration, whose place the broker knows.
        rc=0
        make -s -C "$builddir" install DESTDIR="$root" >"$tmp/install.log" 2>&1 || rc=1
        mkdir -p "$root/usr/local"
        cp -a "$root$prefix/." "$root/usr/local/"
        sed -i "s|^\(Exec[A-Z][a-z]*\)=$prefix|\1=/usr/local|" "$root/usr/local/lib/systemd/system/memoryd.service"
        echo /usr/local/lib >"$root/etc/ld.so.conf.d/memoryd-test.conf"
        chroot "$root" ldconfig
        ;;
esac
[ $rc = 0 ] || { tail -n 20 "$tmp/install.log"; echo "make install failed"; exit 1; }

cat >"$tmp/io/user.c" <<'C'
#include <memclient/memclient.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    struct memclient_buffer *buf;
    void *p;

    if (memclient_alloc(NULL, 1 << 20, NULL, &buf) || memclient_map(buf, NULL, &p)) {
        puts(memclient_error());
        return 1;
    }
    memset(p, 1, 1 << 20);
    memclient_buffer_unref(buf);
    return 0;
}
C

for program in writer heedless survivor; do
    built=$builddir/tests/integration/.libs/$program
    [ -e "$built" ] || built=$builddir/tests/integration/$program
    cp "$built" "$tmp/io"
done
cp "$srcdir"/tests/integration/{survive.sh,scrape.py} "$tmp/io"

[ -z "${MEMORYD_MACHINE-}" ] || cp "$srcdir/tests/vm/machine.sh" "$tmp/io"

cat >"$tmp/io/command" <<'INSIDE'
set -u
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
value() { systemctl show -P "$2" "$1"; }
as_stranger() { setpriv --reuid=60001 --regid=60001 --clear-groups "$@"; }
ctl() { systemctl "$@"; }
# journalctl --sync: on a busy machine journald may not have read yet what was written before
journal() { journalctl --sync; journalctl -u memoryd.service --no-pager -o cat; }
programs=/io work=/tmp memoryd=$(systemctl cat memoryd.service | sed -n 's/^ExecStart=//p')
. /io/survive.sh
config=$(memoryd --help | sed -n 's|.*memoryd/memoryd.conf in \(/[^ ]*\).*|\1|p')/memoryd/memoryd.conf
if [ -e /io/machine.sh ]; then
    . /io/machine.sh
    prepare_machine
fi

# ---- as README.md says
if [ -e /io/readme ]; then
    grep -q systemctl /io/readme || fail "README.md has no commands"
    while read -r command; do
        $command || fail "README.md: $command"
    done </io/readme
    for unit in memoryd.socket memoryd.service; do
        [ "$(systemctl is-enabled $unit)/$(systemctl is-active $unit)" = enabled/active ] ||
            fail "$unit is $(systemctl is-enabled $unit), $(systemctl is-active $unit)"
    done
    # shellcheck disable=SC2046
    cc -Wall -Werror -o /tmp/user /io/user.c $(pkg-config --cflags --libs memclient) || fail "a program cannot be compiled"
    as_stranger env MEMORYD_AUTOSTART=0 /tmp/user || fail "a program cannot be run"
    systemctl --global enable memoryd.socket || fail "users' units are not where systemd looks"
    systemctl stop memoryd.socket memoryd.service || fail stop
else
    systemd-sysusers || fail sysusers
    # below /tmp, as make distcheck has it, or /home the unit sees only what it is shown
    mkdir -p "${config%/*}" /etc/systemd/system/memoryd.service.d
    printf '[Service]\nBindReadOnlyPaths=%s\n' "${config%/*}" >/etc/systemd/system/memoryd.service.d/test.conf
    systemctl daemon-reload
fi
id memoryd >/dev/null || fail "no account"
systemctl start memoryd.socket || fail "the socket does not start"
[ "$(stat -c '%a %U' /run/memoryd/memoryd.sock)" = '666 root' ] || fail "socket: $(stat -c '%a %U' /run/memoryd/memoryd.sock)"
[ "$(stat -c '%a %U' /run/memoryd)" = '755 root' ] || fail "folder: $(stat -c '%a %U' /run/memoryd)"

as_stranger memctl status || fail "memctl status as a stranger"
# the keeper tells systemd while the broker serves already
for _ in $(seq 600); do [ "$(value memoryd.service ActiveState)" = activating ] || break; sleep 0.05; done
[ "$(value memoryd.service ActiveState)/$(value memoryd.service SubState)" = active/running ] || fail "not ready"
pid=$(value memoryd.service MainPID)
[ "${pid:-0}" != 0 ] || { journalctl -u memoryd.service --no-pager -o cat | tail -n 40; exit 1; }
[ "$(stat -c %U "/proc/$pid")" = memoryd ] || fail "runs as $(stat -c %U "/proc/$pid")"
grep -E '^(CapEff|NoNewPrivs|Seccomp):' "/proc/$pid/status" | tr '\n\t' '  '; echo
grep -q '^CapEff:.*0000000000000000' "/proc/$pid/status" || fail "it has capabilities"
grep -q '^Seccomp:.*2' "/proc/$pid/status" || fail "no system call filter"
grep 'Max open files' "/proc/$pid/limits"

as_stranger memctl nodes || fail "memctl nodes"
as_stranger memctl pools || fail "memctl pools"
as_stranger memctl alloc --pages base --publishable --size 16M --name a/b || fail "memctl alloc"
head -c 16777216 /dev/urandom >/tmp/bytes
as_stranger memctl fill a/b </tmp/bytes || fail "memctl fill"
as_stranger memctl cat a/b | cmp - /tmp/bytes || fail "memctl cat gives other bytes"
as_stranger memctl publish a/b || fail "memctl publish"
as_stranger memctl rm a/b || fail "memctl rm"
if memctl pools | grep -q thp; then
    as_stranger memctl alloc --pages thp --size 8M --name a/b && as_stranger memctl rm a/b || fail "memctl alloc, huge pages"
fi
memctl check || fail "memctl check"
[ ! -e /io/machine.sh ] || look_at_machine

# ---- the line of memctl doctor mends
if command -v jq >/dev/null; then
    few=/etc/systemd/system/memoryd.service.d/override.conf mended=/etc/systemd/system/memoryd.service.d/zz-memoryd-doctor.conf
    mkdir -p "${few%/*}"
    printf '[Service]\nLimitNOFILE=4096\n' >$few
    systemctl daemon-reload && systemctl restart memoryd || fail "no restart with few descriptors"
    mend=$(memctl --json doctor | jq -r '.[] | select(.check == "broker\u0027s descriptors") | .mend // empty')
    echo "memctl doctor: $mend"
    bash -c "$mend" || fail "the line of memctl doctor: $mend"
    [ "$(value memoryd.service LimitNOFILE)" = 524288 ] || fail "LimitNOFILE is $(value memoryd.service LimitNOFILE)"
    systemd-analyze verify /lib/systemd/system/memoryd.service 2>&1 | grep zz-memoryd-doctor && fail "the drop-in is wrong"
    rm -f $few $mended
    systemctl daemon-reload && systemctl restart memoryd || fail "no restart without the drop-in"
else
    echo "not tried: the line of memctl doctor (no jq)"
fi

# ---- metrics, as memoryd(8) says
scrape() { python3 -B /io/scrape.py get "$1" >/tmp/page 2>&1; }
served_at() { scrape "$1" && grep -q '^200 OK' /tmp/page && grep -q '^memoryd_names 1$' /tmp/page || fail "$2: no metrics at $1: $(head /tmp/page)"; }
refused_at() { ! scrape "$1" || fail "$2: metrics at $1"; }
# put_on LINES: what is in [Socket] of the drop-in, and is in force
put_on() {
    mkdir -p "$drop_in"
    printf '[Socket]\n%b\n' "$1" >"$drop_in/override.conf"
    systemctl daemon-reload
    journalctl --sync
    mark=$(journalctl -n 0 --show-cursor --no-pager -q | sed -n 's/^-- cursor: //p')
    systemctl stop memoryd-metrics.socket && systemctl restart memoryd || fail "$1: restart"
    memctl cat metrics/kept >/dev/null || fail "$1: a buffer is lost"
}
# mistaken LINES SENTENCE: the journal says it, and the service serves
mistaken() {
    put_on "$1"
    journalctl --sync
    journalctl --after-cursor "$mark" --no-pager -o cat | grep -q "$2" || {
        fail "$1: the journal does not say '$2'"
        journalctl --after-cursor "$mark" --no-pager -o cat
    }
}
if command -v python3 >/dev/null; then
    drop_in=/etc/systemd/system/memoryd-metrics.socket.d unix=/run/memoryd/metrics.sock tcp=127.0.0.1:9753
    memctl alloc --size 4K --name metrics/kept || fail "memctl alloc"
    refused_at $unix "not enabled"
    systemctl enable memoryd-metrics.socket && systemctl restart memoryd || fail "memoryd-metrics.socket cannot be enabled"
    served_at $unix enabled
    grep -q '^memoryd_user_buffers{uid="0"} 1$' /tmp/page || fail "root does not see users"
    as_stranger python3 -B /io/scrape.py get $unix >/dev/null 2>&1 && fail "anybody gets metrics at $unix"

    put_on "ListenStream=\nListenStream=$tcp"
    served_at $tcp "on TCP"
    grep -q 'uid=' /tmp/page && fail "TCP shows users"
    refused_at $unix "on TCP"
    kill_broker
    served_at $tcp "after the broker's death"

    mistaken "ListenStream=$tcp" "several sockets for metrics, and only the last one is served"
    served_at $tcp "one too many"
    mistaken "ListenStream=\nListenDatagram=$tcp" "the socket for metrics .* is not one of ListenStream="
    mistaken "FileDescriptorName=other" '"other" .* one for metrics needs FileDescriptorName=metrics'
    mistaken "ListenStream=\nListenStream=192.0.2.1:9753" "listen.*192.0.2.1:9753.*: Cannot assign"

    rm -r "$drop_in"
    systemctl daemon-reload
    systemctl disable --now memoryd-metrics.socket && systemctl restart memoryd || fail "memoryd-metrics.socket cannot be disabled"
    refused_at $unix disabled
    memctl rm metrics/kept || fail "memctl rm"
else
    echo "not tried: metrics (no python3)"
fi

begin_clients
all_events
end_clients
lose_everything

mistakes_while_it_serves "$config"
mistakes_at_a_first_start "$config"

systemctl stop memoryd.service memoryd.socket || fail stop
[ "$(value memoryd.service Result)" = success ] || fail "stop: $(value memoryd.service Result)"
[ ! -e /run/memoryd/memoryd.sock ] || fail "the socket is left behind"

if command -v jq >/dev/null; then
    mend=$(memctl --json doctor | jq -r '.[] | select(.check == "broker") | .mend // empty')
    bash -c "$mend" && memctl status >/dev/null || fail "no broker after: $mend"
    # a socket that was removed, of a broker that serves
    memctl alloc --size 4K --name doctor/kept >/dev/null
    rm /run/memoryd/memoryd.sock
    mend=$(memctl --json doctor | jq -r '.[] | select(.check == "broker") | .mend // empty')
    bash -c "$mend" && memctl rm doctor/kept || fail "no broker with its buffers after a removed socket: $mend"
    systemctl stop memoryd.service memoryd.socket || fail stop
fi
[ $failures = 0 ] || journalctl -u memoryd.service --no-pager -o cat | tail -n 40
exit $failures
INSIDE
container_run 100
echo "the system units activate, serve other accounts, lose nothing, and stop"
