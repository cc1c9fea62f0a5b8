#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The version before this one, built from git: its clients with today's broker, today's clients with its broker, and an
# upgrade from its broker to today's under clients of both. For make check-long, since it builds that version; OLD_BUILD
# names a folder in which it is built already.
set -eu

old_version=e78b7bb
# Tests that say what any two versions must do together. Those about the words of a log, or about what only one version
# has, are not among them.
tests=(test-client test-client-lost test-client-fork test-commit test-identity test-rights test-ending test-claims
    test-foreign test-fencing test-limits test-map-many test-mappings test-pages test-room test-sums test-death
    test-recover test-once test-repeat test-giving-back test-addresses)
# What these do an old client cannot do with this broker: import or adopt, since it knows of no door (proto/PROTOCOL.md,
# section 14), also for a handle after fork() or after another broker. The last one kills a broker where only its own
# version opens descriptors.
not_of_old_clients=" test-client test-client-fork test-client-lost test-ending test-foreign test-map-many test-once
    test-rights test-sums test-repeat "
# And these show a descriptor at a door, count requests to it, or configure who pays, with a broker that has neither.
not_of_old_broker=" test-commit test-map-many test-once "

skip() { echo "$*"; exit 77; }

[ "${SANITIZERS:-no}" = no ] || skip "libraries with and without sanitizers are not for one process"
command -v git >/dev/null || skip "git is not installed"
# shellcheck source=tests/support/broker.sh
. "${srcdir:?}/tests/support/broker.sh"
export PATH=$builddir/client/memctl:$PATH

# some tests begin brokers as another user, who is to be let in
chmod 711 "$dir"

# ---- the old version ------------------------------------------------------------------------------------
old=${OLD_BUILD-}
if [ -z "$old" ]; then
    git -C "$srcdir" cat-file -e $old_version 2>/dev/null || skip "no git with $old_version: a tarball, or a shallow clone"
    old=$dir/old
    mkdir "$old"
    git -C "$srcdir" archive $old_version | tar -x -C "$old"
    (
        cd "$old"
        # its tests are to wait for what this broker says
        sed -i 's/"serves at"/"is listening on"/' tests/integration/broker.c
        autoreconf -fi >/dev/null 2>&1
        ./configure -q CC="$CC" CFLAGS='-O1 -g' >/dev/null
        make -s -j"$(nproc)"
        make -s -j"$(nproc)" "${tests[@]/#/tests/integration/}" tests/integration/writer tests/integration/heedless
    ) >"$dir/build" 2>&1 || { cat "$dir/build"; echo "$old_version was not built"; exit 1; }
fi

# what fails is to do so before the night is over, whatever the time for all of this is
export TEST_TIMEOUT=120
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

# both CLIENTS BROKER WHAT BUT: the tests of one build, which find their broker by $MEMORYD
both() {
    local test n=0
    for test in "${tests[@]}"; do
        [[ $4 != *[[:space:]]$test[[:space:]]* ]] || continue
        n=$((n + 1))
        (cd "$1" && builddir=$1 MEMORYD=$2/daemon/memoryd "tests/integration/$test") >"$dir/out" 2>&1 ||
            { fail "$3: $test: exit status $?"; cat "$dir/out"; }
    done
    echo "$3: $n tests"
}
both "$old" "$builddir" "old clients, this broker" "$not_of_old_clients"
MEMORYD_READY='serves at' both "$builddir" "$old" "these clients, old broker" "$not_of_old_broker"

# ---- an upgrade under living clients --------------------------------------------------------------------
# what survive.sh wants of a service manager
value() { pid_of keeper; }
memoryd=$dir/memoryd work=$dir programs=$builddir/tests/integration
# shellcheck source=tests/integration/survive.sh
. "$srcdir/tests/integration/survive.sh"

install_program() { cp "$1/daemon/memoryd" "$memoryd.new" && mv "$memoryd.new" "$memoryd"; }
upgrade_to_this() { install_program "$builddir" && memctl upgrade; }

# upgraded_under BUILD: whose writer and heedless client must not notice
upgraded_under() {
    programs=$1/tests/integration
    install_program "$old"
    begin_broker "$memoryd"
    begin_clients
    event "the broker is replaced by this version" program upgrade_to_this
    cmp -s "/proc/$(pid_of broker)/exe" "$builddir/daemon/memoryd" || fail "another broker serves"
    "$old/client/memctl/memctl" status >"$dir/out" || fail "the old memctl: $(cat "$dir/out")"
    event "kill -9 of the broker" broker kill_broker
    event "kill -9 of the keeper" both kill_keeper
    broker=$(pid_of keeper)
    event "and once more" program upgrade_to_this
    end_clients
    kill "$broker"
    within "the end" 60 gone
}
gone() { ! kill -0 "$broker" 2>/dev/null; }

upgraded_under "$old"
upgraded_under "$builddir"
broker=

[ $failures = 0 ] || { cat "$dir/log"; exit 1; }
echo "$old_version and this version work together, and one replaces the other"
