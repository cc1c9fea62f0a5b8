#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The packages that make deb left, in a container with a real systemd: they are installed, their own tests pass, the next
# version takes the place of this one under programs that live, and what is purged leaves nothing behind.
# usage: PACKAGES=FOLDER packages.sh
set -eu

# shellcheck source=tests/support/container.sh
. "${srcdir:?}/tests/support/container.sh"
command -v dpkg-deb >/dev/null || skip "dpkg is not installed"
[ -e "$(echo "${PACKAGES:=$builddir/packages}"/memoryd_*.deb)" ] || skip "no packages in $PACKAGES: make deb"
container_enter "$@"

# what make install or a package of this machine left
rm -rf "$root"/usr/local/lib/libmemclient* "$root"/usr/local/*bin/mem{oryd,ctl} "$root"/usr/local/lib/systemd
rm -rf "$root"/usr/local/lib/python3*/*-packages/memclient "$root"/usr/local/include/memclient
mkdir -p "$tmp"/io/{first,next,tests}
for package in "$PACKAGES"/*.deb; do
    case $package in *-dbgsym_*) continue ;; esac
    cp "$package" "$tmp/io/first"
done
# the next version has the same files
dpkg-deb -R "$PACKAGES"/memoryd_*.deb "$tmp/memoryd"
sed -i 's/^Version: .*/&+next/' "$tmp/memoryd/DEBIAN/control"
dpkg-deb -b "$tmp/memoryd" "$tmp/io/next" >/dev/null
cp "$srcdir"/debian/tests/{installed,without-service} "$tmp/io/tests"
cp "$srcdir/tests/integration/survive.sh" "$tmp/io"
for program in writer heedless; do
    built=$builddir/tests/integration/.libs/$program
    [ -e "$built" ] || built=$builddir/tests/integration/$program
    cp "$built" "$tmp/io"
done

cat >"$tmp/io/command" <<'INSIDE'
set -u
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
value() { systemctl show -P "$2" "$1"; }
ctl() { systemctl "$@"; }
journal() { journalctl -u memoryd.service --no-pager -o cat; }
programs=/io work=/tmp memoryd=/usr/sbin/memoryd
. /io/survive.sh
export DEBIAN_FRONTEND=noninteractive

# a machine with a source tree below /var or /usr has files of that name before
traces() {
    find /etc /run /usr /var \( -name '*memoryd' -o -name '*memoryd.*' -o -name '*memclient*' \) ! -name 'memoryd-test*' | sort
}
traces >/tmp/traces
packages=$(for file in /io/first/*.deb; do dpkg-deb -f "$file" Package; done)
dpkg -i /io/first/*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
for unit in memoryd.socket memoryd.service; do
    [ "$(systemctl is-enabled $unit)/$(systemctl is-active $unit)" = enabled/active ] ||
        fail "after installation $unit is $(systemctl is-enabled $unit), $(systemctl is-active $unit)"
done
memctl check || fail "memctl check"
# each file that was packaged, to look for when they are gone
for package in $packages; do dpkg -L "$package"; done | sort -u >/tmp/files

# as debian/tests/control says; the second one as a user that the first one's service does not serve
/io/tests/installed >/tmp/log 2>&1 || { cat /tmp/log; fail "debian/tests/installed"; }
systemctl stop memoryd.socket memoryd.service
install -d -o daemon /tmp/own
runuser -u daemon -- env AUTOPKGTEST_TMP=/tmp/own /io/tests/without-service >/tmp/log 2>&1 ||
    { cat /tmp/log; fail "debian/tests/without-service"; }
systemctl start memoryd.socket memoryd.service

socket=$(stat -c %i /run/memoryd/memoryd.sock)
begin_clients
event "the next version is installed" both dpkg -i /io/next/memoryd_*.deb
[ "$(stat -c %i /run/memoryd/memoryd.sock)" = "$socket" ] || fail "there is another socket"
end_clients

# shellcheck disable=SC2086
dpkg --purge $packages >/tmp/log 2>&1 || { cat /tmp/log; fail "dpkg --purge"; }
for unit in memoryd.socket memoryd.service; do
    [ "$(systemctl is-active $unit)" = inactive ] || fail "purged, but $unit is $(systemctl is-active $unit)"
done
pgrep -x -u memoryd memoryd && fail "a broker is left"
while read -r path; do
    [ ! -f "$path" ] || echo "$path"
done </tmp/files | grep . && fail "files are left"
traces | comm -13 /tmp/traces - | grep . && fail "traces are left"
exit $failures
INSIDE
container_run 110
echo "the packages install, upgrade under programs that live, and leave nothing"
