#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench: the programs of tests/bench, each against a private broker that has done nothing before. BENCH='WORD...'
# measures only the rows with one of these in their names; BENCH_JSON=FILE gets all rows as an array of objects. All
# programs run several times, one after the other (report.h says why): BENCH_VISITS=N times.
set -eu

. "${srcdir:?}/tests/support/broker.sh"
# other users connect, too
chmod 711 "$dir"

read -ra words <<<"${BENCH-}"
programs=()
for program in ${BENCH_PROGRAMS:?}; do
    for word in "${words[@]-}"; do
        if "${builddir:?}/$program" --list | grep -qF -- "$word"; then
            programs+=("$program")
            break
        fi
    done
done
[ ${#programs[@]} != 0 ] || { echo "no row has '${BENCH-}' in its name"; exit 2; }

# Pages of 2 MiB for the rows that are about them, where this user may set them aside: from the tests of huge pages' lock
# until the last process that was begun here has ended, by whatever it was.
set_huge_pages() {
    local pages=/sys/kernel/mm/hugepages/hugepages-2048kB had wanted room

    [ -w $pages/nr_hugepages ] || return 0
    exec {lock}</proc/sys/vm
    flock --timeout 60 $lock || return 0
    had=$(($(cat $pages/nr_hugepages) - $(cat $pages/surplus_hugepages)))
    room=$(awk '/^MemAvailable:/ { print int($2 / 2048 / 3) }' /proc/meminfo)
    wanted=$((room < 1664 ? room : 1664))
    [ $had -lt $wanted ] || return 0
    exec {guard}> >(exec setsid bash -c "trap '' INT TERM HUP; cat; echo $had >$pages/nr_hugepages" >/dev/null)
    guardian=$!
    echo $wanted >$pages/nr_hugepages
}

begin() {
    # the source may be another user's
    cat "$srcdir/tests/bench/memoryd.conf" >"$dir/config"
    printf '#!/bin/sh\nexec %q "$@" --config %q\n' "$builddir/daemon/memoryd" "$dir/config" >"$dir/memoryd"
    chmod +x "$dir/memoryd"
    begin_broker "$dir/memoryd"
}

end() {
    kill "$broker" && wait "$broker" || :
    broker=
}

# Each row has its object, also those that a program did not get to.
tell_of_failure() {
    local row word

    "$builddir/$1" --list | while read -r row; do
        grep -qF "{\"name\": \"$row\"," "$dir/rows" && continue
        for word in "${words[@]-}"; do
            case $row in
            *"$word"*)
                printf '{"name": "%s", "skipped": "%s failed"}\n' "$row" "$1" >>"$dir/rows"
                break
                ;;
            esac
        done
    done
}

head='%-30s %10s %10s %8s  %-15s %10s %-4s  %9s %9s %-5s  %-14s\n'
guardian=
: >"$dir/rows"
case " ${programs[*]} " in *" tests/bench/large "*) set_huge_pages ;; esac

failed=0
visits=${BENCH_VISITS:-3}
declare -A broken=() took=()
mkdir "$dir/rounds"
for number in $(seq "$visits"); do
    for program in "${programs[@]}"; do
        [ -z "${broken[$program]-}" ] || continue
        begun=${EPOCHREALTIME/[.,]/}
        begin
        case $program in */rivals) table=rivals ;; *) table=table ;; esac
        # shellcheck disable=SC2086 # words
        "$builddir/$program" --json "$dir/rows" --visit "$number" "$visits" "$dir/rounds" "${words[@]}" \
            >>"$dir/$table" 2>"$dir/said" || {
            broken[$program]=yes
            echo "$program failed" | tee -a "$dir/$table" >&2
            tell_of_failure "$program"
            failed=1
        }
        # what it has to say is the same each time
        if [ "$number" = "$visits" ] || [ -n "${broken[$program]-}" ]; then
            cat "$dir/said" >&2
        fi
        end
        took[$program]=$((${took[$program]-0} + (${EPOCHREALTIME/[.,]/} - begun) / 1000))
    done
done
for program in "${programs[@]}"; do
    echo "bench: $program: $(((${took[$program]} + 500) / 1000)) s" >&2
done

for table in table rivals; do
    [ -s "$dir/$table" ] || continue
    echo
    other=$([ $table = table ] && echo floor || echo rival)
    # word splitting is not wanted: the columns are those of report.c
    # shellcheck disable=SC2059
    printf "$head" row ours $other ratio '95 %' 'our p99' unit 'our cpu' "$other cpu" '' 'to hold'
    cat "$dir/$table"
done
if [ -n "${BENCH_JSON-}" ]; then
    { echo '['; sed '$!s/$/,/' "$dir/rows"; echo ']'; } >"$BENCH_JSON"
fi
if [ -n "$guardian" ]; then
    exec {guard}>&- {lock}<&-
    wait $guardian
fi
exit $failed
