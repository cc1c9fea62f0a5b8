# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# For the scripts with a systemd: what clients must not notice. Whoever sources this has defined ctl (systemctl of the
# manager), journal (what the service said), memctl, value UNIT PROPERTY, fail SENTENCE; and $programs with writer,
# heedless and survivor, $work to write in, $memoryd, the file that the service runs.
#
#   begin_clients               programs that write and prove without an end, and buffers that nobody touches
#   event WHAT WHO COMMAND...   does something to the service: COMMAND; WHO is the processes that are others after it:
#                               none, broker, both, or program (the keeper is executed anew in place)
#   end_clients                 they must have seen no error
#   lose_everything             a stop that nothing outlives: it is said, and a client goes on with the next start
#   mistakes_while_it_serves FILE, mistakes_at_a_first_start FILE   of the configuration
#
# After each event: the clients have got on, ids, names, sessions, holds and bytes are what they were, and the books
# agree.

# within WHAT SECONDS COMMAND...: the command succeeds before the time is over
within() {
    local what=$1 end=$((SECONDS + $2))
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { fail "$what: not in time"; return; }
        sleep 0.02
    done
}

pid_of() { memctl status --json | jq -r ".[0].$1_pid"; }

# The first word of a client's buffer, as anybody sees it: how many turns it has done.
turns_of() { memctl cat "live/$1" 2>/dev/null | od -An -tu8 -N8 | tr -d ' '; }

begin_clients() {
    local i
    for i in 1 2 3; do
        head -c $((i * 1048576)) /dev/urandom >"$work/bytes.$i"
        memctl alloc --size "${i}M" --name "kept/$i" >/dev/null || fail "memctl alloc"
        memctl fill "kept/$i" <"$work/bytes.$i" || fail "memctl fill"
    done
    "$programs/writer" live/writer >"$work/writer" 2>&1 &
    writer=$!
    "$programs/heedless" live/heedless >"$work/heedless" 2>&1 &
    heedless=$!
    within "the writer" 60 gets_on writer 0
    within "the heedless client" 60 gets_on heedless 0
}

gets_on() { [ "$(turns_of "$1")" -gt "$2" ]; }

# What lasts: the clients' sessions, buffers that have a name and what those sessions may do with them, and names.
books() {
    local sessions
    sessions=$(memctl sessions --json | jq -c 'map(select(.program != "memctl") | {id, uid, pid, program}) | sort')
    echo "$sessions"
    memctl buffers --json | jq -c --argjson sessions "$sessions" 'map(select(.name) |
        {id, name, state, size, inode, address, names,
         holders: .holders | map(select(.session as $id | any($sessions[]; .id == $id)) | del(.since_ms))}) | sort'
    memctl names --json | jq -c 'map({name, uid, buffer, session}) | sort'
}

event() {
    local what=$1 who=$2 before after keeper broker program writer_turns heedless_turns i begin
    shift 2
    before=$(books)
    keeper=$(pid_of keeper) broker=$(pid_of broker) program=$(stat -L -c %i "/proc/$(pid_of keeper)/exe")
    writer_turns=$(turns_of writer) heedless_turns=$(turns_of heedless)
    begin=${EPOCHREALTIME/[.,]/}
    "$@" || fail "$what: exit status $?"
    case $who in
        none) ;;
        broker) within "$what: the next broker" 60 differs broker "$broker" ;;
        both) within "$what: the next keeper" 60 differs keeper "$keeper" ;;
        program) within "$what: the next program" 60 runs_other "$program" ;;
    esac
    printf '%-44s %6d ms\n' "$what" $(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
    kill -0 "$writer" 2>/dev/null || { fail "$what: the writer has ended: $(cat "$work/writer")"; return; }
    kill -0 "$heedless" 2>/dev/null || { fail "$what: the heedless client has ended"; return; }
    within "$what: the writer gets on" 60 gets_on writer $((writer_turns + 1))
    within "$what: the heedless client gets on" 60 gets_on heedless $((heedless_turns + 1))
    who_changed "$what" "$who" "$keeper" "$broker"
    after=$(books)
    [ "$before" = "$after" ] || fail "$what: the books were, and are: $(diff <(echo "$before") <(echo "$after"))"
    for i in 1 2 3; do
        memctl cat "kept/$i" | cmp - "$work/bytes.$i" || fail "$what: kept/$i has other bytes"
    done
    memctl check >"$work/check" || fail "$what: memctl check: $(cat "$work/check")"
}

differs() { [ "$(pid_of "$1")" != "$2" ]; }

runs_other() { [ "$(stat -L -c %i "/proc/$(pid_of keeper)/exe")" != "$1" ]; }

# who_changed WHAT WHO KEEPER BROKER: just those
who_changed() {
    local keeper broker
    keeper=$(pid_of keeper) broker=$(pid_of broker)
    [ "$keeper" = "$(value memoryd.service MainPID)" ] || fail "$1: the keeper is not the service's main process"
    case $2 in
        none) [ "$keeper $broker" = "$3 $4" ] ;;
        broker | program) [ "$keeper" = "$3" ] && [ "$broker" != "$4" ] ;;
        both) [ "$keeper" != "$3" ] && [ "$broker" != "$4" ] ;;
    esac || fail "$1: keeper and broker were $3 and $4, and are $keeper and $broker"
}

end_clients() {
    local i
    kill "$writer" "$heedless"
    wait "$writer" || fail "the writer ended with status $?"
    wait "$heedless" || fail "the heedless client ended with status $?"
    cat "$work/writer"
    for i in kept/1 kept/2 kept/3 live/writer live/heedless; do memctl rm $i || fail "memctl rm $i"; done
}

# ---- the events that both managers are put through ---------------------------------------------------------------

kill_broker() { kill -KILL "$(pid_of broker)"; }

kill_keeper() { kill -KILL "$(pid_of keeper)"; }

# kill_often keeper|broker
kill_often() {
    local i pid
    for i in 1 2 3 4 5; do
        pid=$(pid_of "$1")
        kill -KILL "$pid"
        within "a $1 after kill $i" 60 differs "$1" "$pid"
    done
}

# Another file in its place, as packages do; the program is the same.
replace_program() {
    cp -p "$memoryd" "$memoryd.new"
    mv -f "$memoryd.new" "$memoryd"
}

upgrade() { replace_program && memctl upgrade; }
upgrade_by_restart() { replace_program && ctl restart memoryd.service; }

stop_and_start() { ctl stop memoryd.service && ctl start memoryd.service; }

stop_keeps() { [ "$(ctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')" -ge 254 ]; }

lose_everything() {
    local survivor kept="across a restart only; with a stop it is lost"
    "$programs/survivor" live/survivor >"$work/survivor" 2>&1 &
    survivor=$!
    within "the survivor" 60 grep -q waits "$work/survivor"
    ctl stop memoryd.service || fail "stop"
    if stop_keeps; then
        kept="across a stop if FileDescriptorStorePreserve=yes"
        ctl clean --what=fdstore memoryd.service || fail "clean"
    fi
    journal | grep -q "$kept.*: 1 buffer with 1048576 bytes, 1 name, 1 session$" ||
        fail "a stop does not say what it loses: $(journal | tail -n 5)"
    ctl start memoryd.service || fail "start"
    memctl cat live/survivor >/dev/null 2>&1 && fail "what was to be lost is there"
    kill -USR1 "$survivor"
    wait "$survivor" || fail "the survivor: status $?: $(cat "$work/survivor")"
    memctl check >"$work/check" || fail "memctl check: $(cat "$work/check")"
}

all_events() {
    event "kill -9 of the broker" broker kill_broker
    event "five kills of the broker" broker kill_often broker
    event "kill -9 of the keeper" both kill_keeper
    event "five kills of the keeper" both kill_often keeper
    event "kill -9 of the broker once more" broker kill_broker
    event "systemctl restart" both ctl restart memoryd.service
    event "systemctl reload" none ctl reload memoryd.service
    event "another program, memctl upgrade" program upgrade
    event "another program, systemctl restart" both upgrade_by_restart
    # the store of older ones does not outlive a stop
    if stop_keeps; then
        event "systemctl stop, and start" both stop_and_start
        event "systemctl stop, and the socket starts it" both ctl stop memoryd.service
    else
        echo "not tried: stop and start (systemd $(ctl --version | sed -n '1s/^systemd //p') keeps no descriptors; 254 does)"
    fi
}

# ---- mistakes in the configuration -------------------------------------------------------------------------------

write_mistake() { mkdir -p "${1%/*}" && printf '[limits]\n\nuid_bites = 5\n' >"$1"; }

# With file and line, as an error.
told() {
    journalctl --sync
    journalctl _COMM=memoryd --no-pager -o cat -p err | grep -q "$1:3: \[limits\] uid_bites: no such key" || fail "$2: the journal does not tell the mistake"
}

limit_is() { [ "$(memctl alloc --size 64M 2>&1 | grep -c uid_bytes)" = "$1" ]; }

mistakes_while_it_serves() {
    local broker

    within "a broker" 60 memctl status
    mkdir -p "${1%/*}"
    printf '[limits]\nuid_bytes = 32M\n' >"$1"
    ctl reload memoryd.service || fail "systemctl reload"
    limit_is 1 || fail "systemctl reload came back before the limit was in force"
    write_mistake "$1"
    ctl reload memoryd.service 2>/dev/null && fail "systemctl reload with a mistake did not fail"
    told "$1" "systemctl reload"
    broker=$(pid_of broker)
    memctl upgrade 2>"$work/out" && fail "an upgrade with a mistake"
    grep -q uid_bites "$work/out" || fail "memctl upgrade: $(cat "$work/out")"
    [ "$(pid_of broker)" = "$broker" ] || fail "after a refused upgrade another broker serves"
    ctl restart memoryd.service || fail "systemctl restart with a mistake"
    [ "$(pid_of broker)" != "$broker" ] || fail "systemctl restart did not"
    limit_is 1 || fail "after systemctl restart the last good configuration is not in force"
    kill -KILL "$(pid_of keeper)"
    within "a broker" 60 memctl status
    limit_is 1 || fail "after a keeper's death the last good configuration is not in force"
    : >"$1"
    ctl reload memoryd.service || fail "systemctl reload of what was mended"
    limit_is 0 || fail "what was mended is not in force"
    memctl status --json | jq -e '.[0].config_stale == false' >/dev/null || fail "the status says it is not mended"
}

# Nothing is there to go on with. Whoever connects makes the socket start the service again and again, but neither of
# them gives up, and nothing has to be reset.
mistakes_at_a_first_start() {
    local n waiting

    ctl stop memoryd.service memoryd.socket || fail stop
    ctl clean --what=fdstore memoryd.service 2>/dev/null || : # older ones keep nothing
    write_mistake "$1"
    ctl start memoryd.socket || fail "the socket does not start"
    ctl start memoryd.service 2>/dev/null && fail "a first start with a mistake did not fail"
    told "$1" "a first start"
    memctl status >/dev/null 2>&1 & # asks, and gives up one day
    waiting=$!
    n=$(value memoryd.service NRestarts)
    within "restarts" 60 restarted $((n + 3))
    [ "$(value memoryd.socket ActiveState)" = active ] || fail "the socket is $(value memoryd.socket Result)"
    : >"$1"
    within "a broker, by itself" 60 memctl status
    wait "$waiting" || :
    [ "$(value memoryd.service ActiveState)" = active ] || fail "the service is $(value memoryd.service ActiveState)"

    ctl stop memoryd.service memoryd.socket || fail stop
    ctl clean --what=fdstore memoryd.service 2>/dev/null || : # older ones keep nothing
    write_mistake "$1"
    ctl start memoryd.service 2>/dev/null && fail "a first start with a mistake did not fail"
    : >"$1"
    ctl start memoryd.service || fail "systemctl start of what was mended"
    memctl status >/dev/null || fail "it does not serve"
}

restarted() { [ "$(value memoryd.service NRestarts)" -ge "$1" ]; }
