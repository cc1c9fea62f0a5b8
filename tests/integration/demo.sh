#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make demo: a private broker in a folder of its own, and the story of demo.c told with it.
set -eu

. "${srcdir:?}/tests/support/broker.sh"
# the story's stranger is another user, who must get to the socket
chmod 755 "$dir"
begin_test_broker

echo 'memoryd: processes share one buffer'
if ! "$builddir/tests/integration/demo"; then
    echo 'demo: the broker said:' >&2
    cat "$dir/log" >&2
    exit 1
fi
kill "$broker"
wait "$broker" || { echo "demo: the broker ended with status $?" >&2; cat "$dir/log" >&2; exit 1; }
broker=
echo 'All of it was true.'
