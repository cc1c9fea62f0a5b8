#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every kind of packet has a seed in corpus/fuzz-packet.
set -eu

mkdir "$TMPDIR/seeds"
"$builddir/tests/fuzz/make-seeds" "$TMPDIR/seeds"
rc=0
for seed in "$TMPDIR"/seeds/*; do
    if [ ! -e "$srcdir/tests/fuzz/corpus/fuzz-packet/${seed##*/}" ]; then
        echo "no seed ${seed##*/}: run tests/fuzz/make-seeds tests/fuzz/corpus/fuzz-packet"
        rc=1
    fi
done
[ $rc != 0 ] || echo "every kind of packet has a seed"
exit $rc
