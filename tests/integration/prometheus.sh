#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What Prometheus's own tools say about the metrics, the alerts and the dashboard, and a real Prometheus that scrapes.
set -u

for tool in promtool prometheus python3; do
    command -v $tool >/dev/null || { echo "$tool is missing (Debian: prometheus)"; exit 77; }
done
. "${srcdir:?}/tests/support/broker.sh"
. "$srcdir/tests/support/expect.sh"
PATH=$builddir/client/memctl:$PATH
python() { python3 -B "$srcdir/tests/integration/scrape.py" "$@"; }

expect 0 promtool check rules "$srcdir/systemd/memoryd.rules.yml"
expect 0 promtool test rules "$srcdir/tests/integration/prometheus-rules.yml"

printf '%s\n' "$ordinary_pages" >"$dir/config"
begin_broker python3 -B "$srcdir/tests/integration/scrape.py" pass "$dir/where" tcp "$builddir/daemon/memoryd" --config "$dir/config"
address=$(cat "$dir/where")
expect 0 memctl alloc --size 4M --name scraped

# ---- the page ----
expect 0 python get "$address"
sed '1,/^$/d' "$dir/out" >"$dir/page"
expect 0 promtool check metrics <"$dir/page"

# each metric that alerts and dashboard name is there; those of users are for administrators
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$dir/page" >"$dir/there"
grep -ohE 'memoryd_[a-z_]+' "$srcdir/systemd/memoryd.rules.yml" "$srcdir/systemd/memoryd.dashboard.json" |
    sed 's/_\(bucket\|count\|sum\)$//' | grep -v '^memoryd_user_' | sort -u >"$dir/named"
[ "$(wc -l <"$dir/named")" -ge 15 ] || fail "only $(wc -l <"$dir/named") metrics are named"
while read -r name; do
    grep -qx "$name" "$dir/there" || fail "there is no $name"
done <"$dir/named"

# ---- a dashboard that Grafana can read ----
expect 0 jq -e '.uid == "memoryd" and (.panels | length > 8)
    and ([.panels[] | .id] | length == (unique | length))
    and all(.panels[]; .title and .description and .gridPos and all(.targets[]; .expr and .legendFormat))' \
    "$srcdir/systemd/memoryd.dashboard.json"
jq -r '.panels[].targets[].expr' "$srcdir/systemd/memoryd.dashboard.json" | sed 's/\$__rate_interval/5m/' >"$dir/expressions"

# ---- a real Prometheus; another program may take its port before it does ----
cat >"$dir/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$(realpath "$srcdir")/systemd/memoryd.rules.yml"]
scrape_configs:
  - {job_name: memoryd, static_configs: [{targets: ["$address"]}]}
END
prometheus=
trap '[ -z "$prometheus" ] || { kill "$prometheus"; wait "$prometheus"; }; kill "$broker" && wait "$broker"; rm -rf "$dir"' EXIT
start_prometheus() {
    server=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" --web.listen-address="$server" \
        >"$dir/log" 2>&1 &
    prometheus=$!
    for _ in $(seq 1200); do
        promtool query instant "http://$server" 'vector(1)' >/dev/null 2>&1 && return
        kill -0 "$prometheus" 2>/dev/null || break
        sleep 0.05
    done
    wait "$prometheus"
    prometheus=
    return 1
}
start_prometheus || start_prometheus || start_prometheus || fail "prometheus does not start"

# query EXPRESSION VALUE: it gets that
query() {
    for _ in $(seq 1200); do
        promtool query instant "http://$server" "$1" >"$dir/out" 2>"$dir/err" && grep -qE "=> $2 @" "$dir/out" && return
        sleep 0.05
    done
    fail "$1 is not $2"
}
query 'up{job="memoryd"}' 1
query 'memoryd_buffers_bytes' 4194304
query 'memoryd_request_duration_seconds_count{method="alloc"}' 1
query 'count(memoryd_request_duration_seconds_bucket{method="alloc"})' 13
query 'count(memoryd_build_info)' 1
while read -r expression; do
    expression=${expression//\$job/memoryd}
    expect 0 promtool query instant "http://$server" "${expression//\$instance/$address}"
done <"$dir/expressions"

# a counter goes on, whatever happens to the broker
kill -KILL "$(memctl --json status | jq '.[0].broker_pid')"
query 'memoryd_recoveries_total{after="death"}' 1
query 'resets(memoryd_request_duration_seconds_count{method="alloc"}[1h])' 0
query 'ALERTS{alertname="MemorydBrokerDied", alertstate="firing"}' 1
echo "Prometheus has what it wants"
