#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# I8: whatever is in the place of the configuration, the broker says what is wrong with it, in few words and at once, and
# the last good one stays in force. A file that others may write is none.
set -u

# shellcheck source=tests/support/broker.sh
. "${srcdir:?}/tests/support/broker.sh"
export PATH=$builddir/client/memctl:$PATH

fail() {
    echo "configuration.sh: line ${BASH_LINENO[0]}: $*" >&2
    tail -n 30 "$dir/log" | cut -c 1-300 >&2
    exit 1
}

begin_test_broker
conf=$dir/config
mv "$conf" "$dir/good"

# refused WHAT PATTERN: by a check and by a reload; it says little, and the broker serves with what it had
refused() {
    timeout 20 "$builddir/daemon/memoryd" --check-config --config "$conf" >"$dir/said" 2>&1
    [ $? = 3 ] || fail "$1: not refused: $(head -c 300 "$dir/said")"
    grep -qa -- "$2" "$dir/said" || fail "$1: it says: $(head -c 300 "$dir/said")"
    [ "$(wc -l <"$dir/said")" -le 110 ] || fail "$1: $(wc -l <"$dir/said") lines"
    LC_ALL=C grep -q $'[\001-\011\013-\037\177\200-\377]' "$dir/said" && fail "$1: raw bytes in what it says"
    timeout 20 "$builddir/client/memctl/memctl" reload >/dev/null 2>&1 && fail "$1: a reload worked"
    memctl alloc --size 4K >/dev/null || fail "$1: the broker does not serve"
    rm -rf "$conf"
}

mkfifo "$conf"; refused 'a FIFO' 'not a file'
ln -s /dev/zero "$conf"; refused 'a device' 'not a file'
mkdir "$conf"; refused 'a folder' 'not a file'
ln -s "$conf" "$conf"; refused 'a link to itself' 'cannot be read'
head -c 2M /dev/zero >"$conf"; refused 'a large file' 'at most 1M'
head -c 1M /dev/zero | tr '\0' x >"$conf"; refused 'an endless line' 'line longer'
yes nonsense | head -c 1M >"$conf"; refused 'very many mistakes' 'further mistakes'
yes '[limits]
uid_bufers = 1' | head -c 1M >"$conf"; refused 'very many wrong keys' 'further mistakes'
head -c 1M /dev/zero | tr '\0' '[' >"$conf"; refused 'very many brackets' 'line longer'
printf '[limits]\nuid_buffers = 1\0 2\n\0\0[\0\n' >"$conf"; refused 'NUL bytes' "$conf:"
printf '[limits]\nuid_buffers = \e[2J\xe2\x80\xae\xff1\n' >"$conf"; refused 'what controls terminals' 'x1b'
cp "$dir/good" "$conf"; chmod 666 "$conf"; refused 'a file that everybody may write' 'can be written by others'
if [ "$(id -u)" = 0 ]; then
    cp "$dir/good" "$conf"; chown 61002 "$conf"; refused "another user's file" 'can be written by others'
fi
cp "$dir/good" "$conf"
memctl reload >/dev/null || fail "the good one is refused"

echo "configuration.sh: everything as promised"
