#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What memctl prints: that every command prints JSON, with one convention for what is absent; that memctl(1) has every
# column and every key; that columns are those of a terminal; and that messages are in the words of the command line.
set -u

. "${srcdir:?}/tests/support/broker.sh"
PATH=$builddir/client/memctl:$PATH
manual=$srcdir/client/memctl/memctl.1.scd

fail() {
    echo "memctl-output.sh: line ${BASH_LINENO[0]}: $*" >&2
    echo "--- stdout"; head -c 3000 "$dir/out" | cat -v; echo "--- stderr"; cat -v "$dir/err"
    exit 1
}

python3=$(command -v /usr/bin/python3 python3 | head -n 1)
# a reader of JSON that has nothing to do with ours
is_json() { if [ -n "$python3" ]; then "$python3" -m json.tool >/dev/null; else jq -e . >/dev/null; fi; }

# expect STATUS ARGUMENTS...: memctl; all that it ever says of a refusal is in $dir/said
expect() {
    local want=$1 got
    shift
    memctl "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    cat "$dir/err" >>"$dir/said"
    [ $got = "$want" ] || fail "memctl $*: exit status $got instead of $want"
}
said() { grep -qF -- "$1" "$dir/err" || fail "stderr lacks: $1"; }

begin_test_broker
: >"$dir/out" >"$dir/err" >"$dir/said"

# ---- names are any text ----
expect 0 alloc --size 8M --name plain --publishable
plain=$(cat "$dir/out")
like_token=$(printf '%064d' 7)
odd=("$plain" "id:$plain" "$like_token" 'name:x' 'token:x' '#5' '--help' '-x' '日本語' $'u\u0308ber' 'with blank' '"quoted\\' 0 007 \
    99999999999999999999)
for name in "${odd[@]}"; do
    expect 0 alloc --size 4K --name="$name"
    id=$(cat "$dir/out")
    [[ $id =~ ^[0-9]+$ ]] || fail "no id"
    given=$name
    if [ -s "$dir/err" ]; then
        given=$(sed -n "s/^memctl: alloc: give this name as \`\\(.*\\)'$/\\1/p" "$dir/err")
        [ "$given" = "name:$name" ] || fail "$name is to be given as ${given:-?}"
    fi
    for reference in "$given" "name:$name" "id:$id" "$id"; do
        expect 0 --json open -- "$reference"
        jq -e --arg name "$name" --argjson id "$id" '.[0] | .name == $name and .id == $id and .ref == "id:\($id)"' \
            "$dir/out" >/dev/null || fail "$reference is not $name"
    done
done
expect 0 --json open "$plain"
jq -e '.[0].name == "plain"' "$dir/out" >/dev/null || fail "what is written as an id is none"
expect 0 --json open "#$plain"
jq -e '.[0].name == "plain"' "$dir/out" >/dev/null || fail "what is written as an id is none"
expect 2 open id:x; said 'put name: before it'
expect 2 open token:x; said 'put name: before it'
expect 2 open name:; said 'no name'
expect 1 open "$like_token"

# ---- an outcome of each kind to list: a reservation, a token, a leak ----
mkfifo "$dir/end"
"$builddir/tests/integration/crowd" 1 <"$dir/end" >"$dir/crowd" &
exec 3>"$dir/end"
expect 0 share --keeping --uses 2 --expires 1h --uid "$(id -u)" --rights r plain
reader=$(cat "$dir/out")
expect 0 share plain
expect 0 alloc --size 3M --name leaky
expect 0 open leaky sh -c 'sleep 100 <&"$MEMORYD_FD" 3>&- & echo $!'
holder=$(cat "$dir/out")
trap 'kill "$holder"; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT
expect 0 rm leaky
for _ in $(seq 600); do [ -s "$dir/crowd" ] && memctl --json leaks | jq -e 'length == 1' >/dev/null && break; sleep 0.05; done

# ---- every command prints an array, and a key that has no value is there ----
declare -A arguments=([alloc]='--size 4K' [share]=plain [open]=plain [cat]=plain [fill]=plain [publish]=plain
    [move]='--node 0 name:0' [rm]=name:007 [holders]=plain [doctor]="opencl $$")
keys_of() { # what memctl(1) says of a command, without what is in parentheses
    sed -n '/^# KEYS/,/^# EXIT/p' "$manual" |
        awk -v command="*$1*" '/^\*/ { at = index($0 ",", command ",") || index($0 " ", command " ") } /^\t/ && at' |
        tr '\n' ' ' | sed 's/([^)]*)//g; s/;.*//' | tr -c 'a-z_0-9' '\n' | sed '/^$/d' | sort -u
}
for command in $(memctl --json help | jq -r '.[].command'); do
    # shellcheck disable=SC2086
    memctl --json "$command" ${arguments[$command]-} </dev/null >"$dir/out" 2>"$dir/err"
    is_json <"$dir/out" || fail "memctl --json $command prints no JSON"
    jq -e 'type == "array" and length > 0 and all(type == "object")' "$dir/out" >/dev/null || fail "$command: no array"
    jq -e '[.. | select(. == "" or . == "-")] == []' "$dir/out" >/dev/null || fail "$command: what is absent is not null"
    jq -r 'map(keys[]) | unique[]' "$dir/out" >"$dir/keys"
    [ "$command" = alloc ] || diff <(keys_of "$command") "$dir/keys" || fail "$command: memctl(1) has other keys"
done
expect 0 --json names
jq -e 'map(select(.name == "plain"))[0] | .keep_ms == null and .group_rights == null and .gid == null
       and .other_rights == null and .session == null' "$dir/out" >/dev/null || fail "names: not null"
expect 0 --json tokens
jq -e 'any(.uses_left == null and .expires_ms == null and .for_uid == null)' "$dir/out" >/dev/null || fail "tokens: not null"
expect 0 --json pools
jq -e 'all(.placement == "interleave" or .part_size == null)' "$dir/out" >/dev/null || fail "pools: not null"
printf 'ab\0\377c' >"$dir/bytes"
expect 0 alloc --size 5 --name bytes
memctl fill bytes <"$dir/bytes" || fail "fill"
expect 0 --json cat bytes
jq -r '.[0].base64' "$dir/out" | base64 -d | cmp - "$dir/bytes" || fail "base64 of other bytes"
expect 125 --json open plain true

# ---- memctl(1) has every column, and no other ----
columns_of() {
    sed -n '/^# COLUMNS/,/^# KEYS/p' "$manual" |
        awk -v command="*$1*" '/^\*/ { at = index($0 ",", command ",") } /^\t/ && at' |
        grep -oE '\*[A-Za-z-]+\*' | tr -d '*' | grep -vxF "$2" | sort -u
}
for command in nodes pools buffers leaks sessions reservations names tokens why events holders limits check doctor; do
    # shellcheck disable=SC2086
    memctl "$command" ${arguments[$command]-} >"$dir/out" 2>"$dir/err"
    diff <(columns_of "$command" buffers) <(head -n 1 "$dir/out" | tr -s ' ' '\n' | sed '/^$/d' | sort -u) ||
        fail "$command: memctl(1) has other columns"
done
expect 0 status
diff <(columns_of status leaks | grep -vx memctl) <(sed 's/:.*//' "$dir/out" | sort -u) || fail "status: memctl(1) has other lines"
[ "$(awk '!/^(socket|configuration):/ { print length }' "$dir/out" | sort -n | tail -n 1)" -le 80 ] || fail "status is wider than 80 columns"
for line in "configuration: .*$dir/config" 'capacity: .*[0-9.][KMGTP]$' 'refused: *[0-9]*$'; do
    grep -q "^$line" "$dir/out" || fail "status lacks: $line"
done

# ---- columns are the terminal's; what controls it does not get there ----
expect 0 names
# OTHERS is after the name: where it begins shows how wide names were thought to be; a wide character takes 2 columns
"${python3:-python3}" - "$dir/out" <<'PY' || fail "columns are not in line"
import sys, unicodedata
lines = open(sys.argv[1], encoding='utf-8').read().splitlines()
def columns(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in text)
at = lines[0].index('POLICY')
sys.exit(any(columns(line[:line.index('  keep')]) != at - 2 for line in lines[1:]))
PY
LC_ALL=C memctl names >"$dir/plain"
cmp "$dir/out" "$dir/plain" || fail "another table in another locale"
LC_ALL=C memctl cat $'a\e[31mb\x80' >"$dir/out" 2>"$dir/err"
OPENCL_LAYERS=$'/x\e[31m\xff.so' memctl doctor opencl >>"$dir/out" 2>>"$dir/err"
memctl $'\e]0;x\a' 2>>"$dir/err"
memctl --socket $'/no/\e[1msocket' status 2>>"$dir/err"
LC_ALL=C grep -q $'[\001-\011\013-\037\177\200-\377]' "$dir/out" "$dir/err" && fail "control characters, or no UTF-8"
grep -qF '/x\x1b[31m\xff.so' "$dir/out" || fail "no escapes"
OPENCL_LAYERS=$'/x\xff.so' memctl --json doctor opencl >"$dir/out"
is_json <"$dir/out" || fail "no JSON for what is no UTF-8"

# that a broker cannot be asked is not that there is none
long=$dir/$(printf '%0200d' 0)
for command in status 'doctor opencl'; do
    memctl --socket "$dir/nobody" $command >"$dir/out" 2>"$dir/err"
    [ $? = 3 ] || fail "memctl $command: another exit status than 3 without a broker"
    memctl --socket "$long" $command >"$dir/out" 2>"$dir/err"
    [ $? = 1 ] || fail "memctl $command: another exit status than 1 with an address that none can have"
done

# ---- refusals, as many as there are easily: in the words of the command line ----
expect 1 alloc --size 15E
expect 1 alloc --size 900T; grep -q '900T' "$dir/err" || fail "no human size"
expect 1 alloc --size 1M --name plain
expect 1 alloc --size 1M --name 'a//b'
expect 1 alloc --size 1M --pages hugetlb --pool node0-4k
expect 1 alloc --size 1M --page-size 2M
expect 1 alloc --size 1M --align 3
expect 1 alloc --size 1M --placement interleave --part-size 5000
expect 1 alloc --size 1M --node 63
expect 1 fill "$reader"
expect 1 publish "$reader"
expect 1 share --rights rw "$reader"
expect 1 cat nothing-like-that
expect 1 cat 999999
expect 1 fill plain
expect 1 move --node 63 plain
expect 1 publish with\ blank; said '--publishable'
expect 125 open nothing-like-that true
expect 125 open --claim exclusive "$plain" true
expect 127 open plain /no/such/program; said /no/such/program
expect 126 open plain /; said /
expect 7 open plain sh -c 'exit 7'
expect 143 open plain sh -c 'kill -TERM $$'
expect 2 open plain -- sh -c 'exit 2'
[ -s "$dir/err" ] && fail "the program's status is taken for wrong usage"
grep -nE 'memclient_|MEMCLIENT|\b(READ|WRITE|SHARE|MANAGE|PUBLISHABLE|HELLO|NULL)\b|PAGES_|[0-9]{5,} bytes|buffer #' \
    "$dir/said" && fail "words of the library, or sizes for machines"
# but names are other people's words
for name in '#12' 'log #12' 'my WRITE log' 'a 8388608 bytes b'; do
    memctl cat "name:$name" 2>"$dir/err" >"$dir/out" && fail "there is one of the name $name"
    said "no buffer has the name $name; another user"
done
grep -vE '^(memctl: |usage: memctl |`memctl help)' "$dir/said" && fail "a message that is not memctl's"
kill "$broker" && wait "$broker"
broker=
trap 'kill "$holder"; rm -rf "$dir"' EXIT

# ---- no broker: the same sentence, by each way to look for one ----
sentence="no broker answers at"
expect 3 status; said "memctl: $sentence $MEMORYD_SOCKET: "
expect 3 cat plain; said "memctl: $sentence $MEMORYD_SOCKET: "
expect 3 --socket "$dir/none" status; said "memctl: $sentence $dir/none: "
expect 3 --socket "$dir/out/none" status; said "memctl: $sentence $dir/out/none: "
expect 125 open plain true; said "memctl: $sentence $MEMORYD_SOCKET: "
mkdir "$dir/home"
(unset MEMORYD_SOCKET; XDG_RUNTIME_DIR=$dir/home expect 3 status; said "memctl: $sentence $dir/home/memoryd/memoryd.sock or /run/memoryd/memoryd.sock: ") ||
    exit 1
echo "memctl-output.sh: everything as promised"
