#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Completion: a bash and a zsh at a terminal are typed into, and what memctl would be given is looked at. So quoting is
# right if, and only if, the shell finds it right.
set -u

. "${srcdir:?}/tests/support/broker.sh"
PATH=$builddir/client/memctl:$PATH

python3=$(command -v /usr/bin/python3 python3 | head -n 1)
[ -n "$python3" ] || {
    echo "memctl-complete.sh: skipped: no python3, which would type" >&2
    exit 77
}
begin_test_broker
for name in 'with blank' "it's" 'quo"ted' 'col:on/b' '-dash' '日本語' '12' 'do$llar`' 'a=b@c' 'plain/x' '[*]'; do
    memctl alloc --size 4K --name="$name" >/dev/null 2>&1 || exit 1
done
memctl open plain/x sleep 1000 &
holder=$!
trap 'kill "$holder"; wait "$holder"; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT
for _ in $(seq 1200); do memctl --json sessions | jq -e "any(.[]; .pid == $holder)" >/dev/null && break; sleep 0.05; done
id=$(memctl --json open '日本語' | jq '.[0].id')

# what is typed, then TAB, and what memctl gets
cat >"$dir/cases" <<EOF
memctl stat|[status]
memctl hel|[help]
memctl help upg|[help][upgrade]
memctl relo|[reload]
memctl --json cat pl|[--json][cat][plain/x]
FOO=1 memctl cat pl|[cat][plain/x]
memctl cat wi|[cat][with blank]
memctl cat with\\ |[cat][with blank]
memctl cat 'wi|[cat][with blank]
memctl cat it|[cat][it's]
memctl cat it\\'|[cat][it's]
memctl cat "it'|[cat][it's]
memctl cat quo|[cat][quo"ted]
memctl cat "quo|[cat][quo"ted]
memctl cat col|[cat][col:on/b]
memctl cat col:|[cat][col:on/b]
memctl cat col:on|[cat][col:on/b]
memctl cat "col:o|[cat][col:on/b]
memctl cat 'col|[cat][col:on/b]
memctl cat name:-|[cat][name:-dash]
memctl cat name:1|[cat][name:12]
memctl cat 日|[cat][日本語]
memctl cat id:$id|[cat][id:$id]
memctl cat do|[cat][do\$llar\`]
memctl cat "do|[cat][do\$llar\`]
memctl cat a|[cat][a=b@c]
memctl cat a=|[cat][a=b@c]
memctl cat [|[cat][[*]]
memctl alloc --publ|[alloc][--publishable]
memctl alloc --pool node0-4|[alloc][--pool][node0-4k]
memctl alloc --pool=node0-4|[alloc][--pool=node0-4k]
memctl alloc --placement sp|[alloc][--placement][split]
memctl open --claim sh|[open][--claim][shared]
memctl events --kind publ|[events][--kind][published]
memctl events --kind=refu|[events][--kind=refused]
memctl events --follow pl|[events][--follow][plain/x]
memctl holders pi|[holders][pid:$holder]
memctl holders pid:|[holders][pid:$holder]
memctl holders uid:|[holders][uid:$(id -u)]
memctl holders plai|[holders][plain/x]
memctl doctor o|[doctor][opencl]
memctl --socket $MEMORYD_SOCKET cat pl|[--socket][$MEMORYD_SOCKET][cat][plain/x]
memctl --socket /nowhere cat pl|[--socket][/nowhere][cat][pl]
EOF
cut -d '|' -f 1 "$dir/cases" >"$dir/typed"
# complete SHELL SCRIPT: does it complete all of them?
complete() {
    LC_ALL=C.UTF-8 TERM=dumb timeout 100 "$python3" "$srcdir/tests/integration/complete.py" "$@" \
        <"$dir/typed" >"$dir/got" || exit 1
    if ! paste -d '|' "$dir/typed" "$dir/got" | diff "$dir/cases" -; then
        echo "memctl-complete.sh: > is not what $1 is to complete" >&2
        exit 1
    fi
}
complete bash "$srcdir/client/memctl/memctl.bash"
command -v zsh >/dev/null || {
    echo "memctl-complete.sh: skipped: no zsh; bash completes as promised" >&2
    exit 77
}
# there, a [ that is not quoted begins a pattern
sed -i 's/^memctl cat \[/memctl cat \\[/' "$dir/cases" "$dir/typed"
complete zsh "$srcdir/client/memctl/memctl.zsh"
echo "memctl-complete.sh: everything as promised"
