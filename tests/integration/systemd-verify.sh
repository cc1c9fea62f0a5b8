#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What systemd's own tools say about our units, sysusers and tmpfiles files, without starting anything.
set -eu

for tool in systemd-analyze systemd-sysusers systemd-tmpfiles; do
    command -v $tool >/dev/null || { echo "$tool is missing (Debian: systemd)"; exit 77; }
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
rc=0
fail() { echo "FAIL: $*"; rc=1; }

# The programs are not installed: let the units name one that is there. The manual is neither.
units() { # FOLDER FILES...
    local to=$1
    shift
    mkdir -p "$to"
    for file; do
        sed -e 's|^\(Exec[A-Z][a-z]*\)=[^ ]*|\1=/bin/true|' -e '/^Documentation=/d' "${newer[@]}" "$file" >"$to/${file##*/}"
    done
}
# What this systemd does not know yet, and skips with a warning.
newer=()
[ "$(systemctl --version | sed -n 's/^systemd \([0-9]*\).*/\1/p')" -ge 254 ] || newer=(-e '/^FileDescriptorStorePreserve=/d')
units "$tmp/system" "$builddir/systemd/memoryd.service" "$srcdir/systemd/memoryd.socket" \
    "$srcdir/systemd/memoryd-metrics.socket"
units "$tmp/user" "$builddir/systemd/user/memoryd.service" "$srcdir/systemd/user/memoryd.socket"
grep -q '^ExecStart=/.*/memoryd$' "$builddir/systemd/memoryd.service" || fail "no path in ExecStart="

for kind in system user; do
    XDG_RUNTIME_DIR=$tmp SYSTEMD_LOG_TARGET=console systemd-analyze --$kind --recursive-errors=yes verify \
        "$tmp/$kind/memoryd.service" "$tmp/$kind/memoryd.socket" >"$tmp/out" 2>&1 || fail "verify, $kind: exit status $?"
    # it speaks of other units of the machine as well; only ours are our business
    ! grep -n memoryd "$tmp/out" || fail "verify, $kind: complaints (above)"
done
XDG_RUNTIME_DIR=$tmp SYSTEMD_LOG_TARGET=console systemd-analyze --system --recursive-errors=yes verify \
    "$tmp/system/memoryd-metrics.socket" "$tmp/system/memoryd.service" >"$tmp/out" 2>&1 || fail "verify, metrics: exit status $?"
! grep -n memoryd "$tmp/out" || fail "verify, metrics: complaints (above)"

# 10 means an exposure of 1.0 of 10
if systemd-analyze --help | grep -q -- --offline; then
    systemd-analyze security --offline=true --threshold=10 "$tmp/system/memoryd.service" >"$tmp/out" 2>&1 ||
        { tail -n 3 "$tmp/out"; fail "the service is less confined than it was"; }
fi

mkdir -p "$tmp/root/etc"
systemd-sysusers --root="$tmp/root" "$srcdir/systemd/memoryd.sysusers.conf" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail sysusers; }
grep -q '^memoryd:' "$tmp/root/etc/passwd" || fail "sysusers made no account"

thp=$tmp/root/sys/kernel/mm/transparent_hugepage
mkdir -p "$thp"
echo never >"$thp/shmem_enabled"
systemd-tmpfiles --root="$tmp/root" --create "$srcdir/systemd/memoryd.tmpfiles.conf" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail tmpfiles; }
[ "$(cat "$thp/shmem_enabled")" = advise ] || fail "tmpfiles did not write shmem_enabled"

# User units go where a user's systemd looks, be it below /usr/local or the user's own folder.
if grep -q '^systemduserunitdir = ${prefix}/' "$builddir/Makefile"; then
    export HOME=$tmp/home
    for prefix in /usr/local "$HOME/.local"; do
        rm -rf "$tmp/dest"
        env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$builddir" prefix="$prefix" DESTDIR="$tmp/dest" \
            install-systemduserunitDATA >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "make install-systemduserunitDATA"; }
        folder=$(cd "$tmp/dest" && find . -name memoryd.socket -printf '/%P\n')
        env -u XDG_CONFIG_HOME -u XDG_DATA_HOME -u XDG_DATA_DIRS systemd-analyze --user unit-paths >"$tmp/out"
        grep -qxF "${folder%/*}" "$tmp/out" || fail "a user's systemd does not look into ${folder%/*}"
    done
fi

[ $rc != 0 ] || echo "systemd's tools have nothing to say"
exit $rc
