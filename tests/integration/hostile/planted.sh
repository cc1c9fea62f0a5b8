#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# I3: a socket that somebody planted, and a folder that somebody can clean or fill. A private broker starts only in a
# runtime folder that is its user's and nobody else's business; there is no way back to /tmp; and a client leaves a
# socket in its folder alone that another user serves.
set -u

memoryd=$builddir/daemon/memoryd
memctl=$builddir/client/memctl/memctl
dir=$(mktemp -d "$TMPDIR/planted.XXXXXX")
faults=0
other=
trap '[ -z "$other" ] || kill "$other"; rm -rf "$dir"' EXIT
unset MEMORYD_SOCKET
export MEMORYD_AUTOSTART=1 TMPDIR=$dir/tmp
mkdir -m 1777 "$TMPDIR"
chmod 711 "$dir"
printf '[arena]\nbase = 0x566000000000\nsize = 128G\n[broker]\nidle_exit = 1s\n' >"$dir/conf"

fail() {
    echo "FAILED: $*"
    faults=$((faults + 1))
}

# refused WHY FOLDER: no broker starts there, the sentence says why, and nothing is left behind
refused() {
    local said
    said=$(XDG_RUNTIME_DIR=$2 timeout 60 "$memoryd" --autostart --config "$dir/conf" 2>&1) && fail "$2: a broker has started"
    grep -q -- "$1" <<<"$said" || fail "$2: \"$1\" is not in: $said"
    [ ! -d "$2" ] || [ -z "$(ls -A "$2")" ] || fail "$2: there is something now: $(ls -A "$2")"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "there is something in the folder for temporary files: $(ls -A "$TMPDIR")"
}

for mode in 777 1777 755 750 701; do
    mkdir -m $mode "$dir/mode$mode"
    refused 'must be 0700' "$dir/mode$mode"
done
mkdir -m 700 "$dir/own"
ln -s own "$dir/link"
refused 'not a folder' "$dir/link"
echo x >"$dir/file"
refused 'not a folder' "$dir/file"
refused 'cannot look at' "$dir/absent"
refused 'XDG_RUNTIME_DIR is not set' ''
refused 'XDG_RUNTIME_DIR is not set' relative

if [ "$(id -u)" = 0 ]; then
    stranger=(setpriv --reuid=61002 --regid=61002 --clear-groups)
    mkdir -m 700 "$dir/theirs"
    chown 61002 "$dir/theirs"
    refused 'belongs to uid 61002' "$dir/theirs"
    # root's own folder is not another user's
    said=$(XDG_RUNTIME_DIR=$dir/own "${stranger[@]}" "$memoryd" --autostart --config "$dir/conf" 2>&1) && fail "in root's folder"
    # somebody serves a socket where a private one would be
    mkdir -m 777 "$dir/own/memoryd"
    chmod 711 "$dir/own"
    "${stranger[@]}" perl -MSocket -e 'socket(S, AF_UNIX, 5, 0) && bind(S, pack_sockaddr_un($ARGV[0])) && listen(S, 9) or
        die $!; chmod 0777, $ARGV[0]; sleep 60' "$dir/own/memoryd/memoryd.sock" &
    other=$!
    for _ in $(seq 600); do [ -S "$dir/own/memoryd/memoryd.sock" ] && break; sleep 0.05; done
    said=$(XDG_RUNTIME_DIR=$dir/own "$memctl" status 2>&1) && fail 'a planted socket was used'
    grep -q 'is served by user 61002' <<<"$said" || fail "a planted socket: $said"
    kill $other
    wait $other 2>/dev/null
    other=
    rm -rf "$dir/own/memoryd"
    chmod 700 "$dir/own"
fi

# where it may, it starts, in a folder that is closed to others, and again when somebody has cleaned that up
for _ in 1 2; do
    XDG_RUNTIME_DIR=$dir/own "$memoryd" --autostart --config "$dir/conf" || fail 'no private broker in the own folder'
    [ "$(stat -c %a "$dir/own/memoryd")" = 700 ] || fail "its folder has mode $(stat -c %a "$dir/own/memoryd")"
    MEMORYD_AUTOSTART=0 XDG_RUNTIME_DIR=$dir/own "$memctl" status >/dev/null || fail 'it does not serve'
    rm -rf "$dir/own/memoryd"
done
for _ in $(seq 600); do
    grep -qazs -- "$dir/conf" /proc/[0-9]*/cmdline || break
    sleep 0.05
done

exit $((faults != 0))
