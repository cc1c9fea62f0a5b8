#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `memctl doctor opencl` where the layer, the loader and a driver are real, and where one thing after the other is
# taken away. Skipped where no OpenCL driver is that the layer serves.
set -u

. "${srcdir:?}/tests/support/broker.sh"
memctl=$builddir/client/memctl/memctl
layer=$builddir/client/.libs/libmemclient-opencl.so
export POCL_CACHE_DIR=$dir/pocl

case $SANITIZERS in
    *thread*) echo "the thread sanitizer does not see what a driver's threads wait for"; exit 77 ;;
esac
[ -e "$layer" ] || { echo "the layer is not built as a shared library"; exit 77; }
[ -r /etc/OpenCL/vendors/pocl.icd ] || { echo "PoCL is missing: install pocl-opencl-icd"; exit 77; }

# expect STATUS FILTER [NAME=VALUE...]: what memctl tells then as JSON, and that the filter finds it so.
expect() {
    local want=$1 filter=$2 got
    shift 2
    env "$@" "$memctl" --json doctor opencl >"$dir/out" 2>"$dir/err"
    got=$?
    if [ "$got" != "$want" ] || ! jq -e "def row(f): map(select(.check | f))[0]; $filter" "$dir/out" >"$dir/jq"; then
        echo "doctor.sh: $*: exit status $got, wanted $want and $filter" >&2
        cat "$dir/out" "$dir/err" >&2
        exit 1
    fi
}
answer='row(. == "broker")'
device='row(startswith("device "))'

begin_test_broker
if "$memctl" doctor opencl | grep -q "PoCL [6-9]\|PoCL [1-9][0-9]"; then
    echo "this PoCL takes no memory but its own"
    exit 77
fi
expect 0 "all(.[]; .ok) and ($answer.detail | endswith(\"memoryd.sock\")) and
          ($device.detail | endswith(\"gives memory of the broker\"))" OPENCL_LAYERS="$layer"
# what is ending is listed until its pages are free
for _ in $(seq 600); do [ "$("$memctl" --json buffers | jq length)" != 0 ] || break; sleep 0.05; done
[ "$("$memctl" --json buffers | jq length)" = 0 ] || { echo "doctor left a buffer" >&2; exit 1; }

# one thing is missing
expect 1 "$answer.ok and ($device.ok | not) and ($device.detail | contains(\"no layer of memoryd\"))" OPENCL_LAYERS=
mkdir "$dir/none"
expect 1 "$answer.ok and (row(. == \"drivers\") | .ok | not)" OPENCL_LAYERS="$layer" OCL_ICD_VENDORS="$dir/none/"
expect 3 "($answer.ok | not) and ($answer.detail | contains(\"$dir/nobody\")) and ($device.ok | not) and
          ($device.detail | contains(\"no broker answers the layer\"))" \
    OPENCL_LAYERS="$layer" MEMORYD_SOCKET="$dir/nobody" MEMORYD_AUTOSTART=1
expect 3 "($device.detail | contains(\"gives no shared virtual memory\"))" \
    OPENCL_LAYERS="$layer" MEMORYD_SOCKET="$dir/nobody" MEMORYD_OPENCL_FALLBACK=fail

# --socket is for the layer, too
OPENCL_LAYERS=$layer MEMORYD_SOCKET=$dir/nobody "$memctl" --socket "$dir/memoryd.sock" doctor opencl >"$dir/out" 2>&1 ||
    { echo "--socket is not the layer's" >&2; cat "$dir/out" >&2; exit 1; }
