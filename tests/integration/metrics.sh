#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Metrics of a real broker, as a scraper gets them: on a socket that a service manager passes, and on those of the
# configuration. Neither the broker's death nor an upgrade resets them.
set -u

. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH
# one that any user may run
python3=$(PATH=/usr/bin:$PATH command -v python3) || { echo "python3 is missing"; exit 77; }

python() { "$python3" -B "$srcdir/tests/integration/scrape.py" "$@"; }
scrape() { expect 0 python get "$@"; }
# value SAMPLE: its value in what was scraped last; 0 if it is not there
value() { awk -v sample="$1" '$1 == sample { v = $2 } END { print v + 0 }' "$dir/out"; }
is() { [ "$(value "$1")" = "$2" ] || fail "$1 is $(value "$1") instead of $2"; }
serves_again() {
    for _ in $(seq 1200); do
        pid=$(memctl --json status 2>/dev/null | jq '.[0].broker_pid') && [ "${pid:-$1}" != "$1" ] && return
        sleep 0.05
    done
    fail "no other broker than $1 serves"
}
broker_pid() { memctl --json status | jq '.[0].broker_pid'; }
uid=$(id -u)

# ---- what may be configured ----
for listen in 0.0.0.0:9753 192.168.0.1:9753 '[::]:9753' localhost:9753 127.0.0.1 127.0.0.1:0 127.0.0.1:65536 metrics.sock \
    "/$(printf '%0120d' 0)"; do
    printf '[metrics]\nlisten = %s\n' "$listen" >"$dir/config"
    expect 3 "$builddir/daemon/memoryd" --check-config --config "$dir/config"
    said 'listen.*off, 127.0.0.1:PORT, \[::1\]:PORT or the absolute path of a socket'
done
for listen in off 127.0.0.1:9753 127.1.2.3:1 '[::1]:65535' /run/memoryd/metrics.sock; do
    printf '[metrics]\nlisten = %s\n' "$listen" >"$dir/config"
    expect 0 "$builddir/daemon/memoryd" --check-config --config "$dir/config"
done

# ---- a page, on both sockets ----
configure() { printf '[pools]\npages = base\ncapacity = 16M\nstock = 0\n[metrics]\nlisten = %s\n' "$1" >"$dir/config"; }
configure "$dir/metrics.sock"
begin_broker "$python3" -B "$srcdir/tests/integration/scrape.py" pass "$dir/where" tcp "$builddir/daemon/memoryd" --config "$dir/config"
tcp=$(cat "$dir/where")
unix=$dir/metrics.sock
expect 0 memctl alloc --size 12M --name big
expect 1 memctl alloc --size 8M
scrape "$tcp"
shows '^200 OK$'; shows '^Content-Type: text/plain; version=0.0.4; charset=utf-8$'
is 'memoryd_pool_capacity_bytes{pool="node0-4k",pages="base"}' 16777216
is 'memoryd_pool_used_bytes{pool="node0-4k",pages="base"}' 12582912
is 'memoryd_pool_free_bytes{pool="node0-4k",pages="base"}' 4194304
is 'memoryd_buffers' 1
is 'memoryd_names' 1
is 'memoryd_refusals_total{status="POOL_FULL"}' 1
is 'memoryd_request_duration_seconds_count{method="alloc"}' 2
is 'memoryd_request_duration_seconds_bucket{method="alloc",le="+Inf"}' 2
[ "$(value 'memoryd_sessions_ended_total{cause="goodbye"}')" -ge 2 ] || fail "no session ended"
grep -q 'uid=' "$dir/out" && fail "TCP shows users"

scrape "$tcp" GET /metrics 'Accept: application/openmetrics-text; version=1.0.0'
shows '^Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8$'
sed '1,/^$/d' "$dir/out" >"$dir/page"
python check <"$dir/page" >"$dir/families" 2>"$dir/err" || fail "not OpenMetrics"
[ "$(cat "$dir/families")" -ge 20 ] || fail "only $(cat "$dir/families") families"

# its owner is an administrator
scrape "$unix"
is "memoryd_user_bytes{uid=\"$uid\"}" 12582912
is "memoryd_user_buffers{uid=\"$uid\"}" 1
[ "$(stat -c %a "$unix")" = 600 ] || fail "others may connect to $unix"

# ---- what is refused ----
scrape "$tcp" GET /metrics 'Host: evil.example'; shows '^403 '
scrape "$tcp" POST; shows '^405 '; shows '^Allow: GET, HEAD'
scrape "$tcp" GET /; shows '^404 '
scrape "$tcp" HEAD; shows '^200 '; shows '^Content-Length: [1-9]'
grep -q memoryd_ "$dir/out" && fail "HEAD has a body"

# ---- neither death nor upgrade is a reset ----
first=$(broker_pid)
kill -KILL "$first"
serves_again "$first"
expect 1 memctl alloc --size 8M
scrape "$tcp"
is 'memoryd_recoveries_total{after="death"}' 1
is 'memoryd_recoveries_total{after="exit"}' 0
is 'memoryd_refusals_total{status="POOL_FULL"}' 2
is 'memoryd_request_duration_seconds_count{method="alloc"}' 3
second=$(broker_pid)
expect 0 memctl upgrade
serves_again "$second"
expect 1 memctl alloc --size 8M
for address in "$tcp" "$unix"; do
    scrape "$address"
    is 'memoryd_recoveries_total{after="death"}' 1
    is 'memoryd_recoveries_total{after="exit"}' 1
    is 'memoryd_refusals_total{status="POOL_FULL"}' 3
    is 'memoryd_request_duration_seconds_count{method="alloc"}' 4
done

# ---- a request that waits ----
memctl alloc --size 8M --wait 100s --name late >"$dir/late" 2>&1 &
late=$!
for _ in $(seq 1200); do memctl --json sessions | jq -e "any(.[]; .pid == $late)" >/dev/null && break; sleep 0.05; done
expect 0 memctl rm big
wait "$late" || fail "it was not served: $(cat "$dir/late")"
scrape "$tcp"
is memoryd_waits_total 1
[ "$(value memoryd_wait_seconds_total)" != 0 ] || fail "it did not wait"

# ---- another place takes a restart ----
configure "$dir/other.sock"
expect 0 memctl reload; shows '\[metrics\] listen'
scrape "$unix"
third=$(broker_pid)
expect 0 memctl upgrade
serves_again "$third"
scrape "$dir/other.sock"
is memoryd_waits_total 1
[ ! -e "$unix" ] || fail "the old socket is still there"

# ---- the file goes with the service ----
kill "$broker" && wait "$broker"
broker=
[ ! -e "$dir/other.sock" ] || fail "the socket is still there"

# ---- on TCP, by the configuration: another program may take the port meanwhile ----
for _ in 1 2 3 4 5; do
    port=$("$python3" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    configure "127.0.0.1:$port"
    begin_broker "$builddir/daemon/memoryd" --config "$dir/config"
    grep -q "metrics are served at 127.0.0.1:$port" "$dir/log" && break
    kill "$broker" && wait "$broker"
    broker=
done
scrape "127.0.0.1:$port"; shows '^200 OK$'; is memoryd_waits_total 0
kill "$broker" && wait "$broker"
broker=

# ---- others on a Unix socket that lets them in see sums ----
if [ "$uid" = 0 ] && command -v setpriv >/dev/null; then
    chmod 711 "$dir"
    printf '%s\n' "$ordinary_pages" >"$dir/config"
    begin_broker "$python3" -B "$srcdir/tests/integration/scrape.py" pass "$dir/where" "$dir/open.sock" \
        "$builddir/daemon/memoryd" --config "$dir/config"
    expect 0 memctl alloc --size 4M --name mine
    scrape "$dir/open.sock"
    is 'memoryd_user_bytes{uid="0"}' 4194304
    cp "$srcdir/tests/integration/scrape.py" "$dir/client.py"
    chmod 644 "$dir/client.py"
    expect 0 setpriv --reuid=12345 --regid=12345 --clear-groups "$python3" -B "$dir/client.py" get "$dir/open.sock"
    shows '^200 OK$'
    is memoryd_buffers_bytes 4194304
    grep -q 'uid=' "$dir/out" && fail "everybody sees users"
fi
echo "the metrics are there, and stay"
