#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The rows of make bench have the names that $BENCH_JSON's readers know them by, and each has one. Measures nothing.
set -eu

expect() {
    local program=$1
    shift
    diff <(printf '%s\n' "$@") <("${builddir:?}/tests/bench/$program" --list) || {
        echo "^ rows of $program: < is what readers know, > is what it has"
        failed=1
    }
}

failed=0
expect roundtrip rpc_null import_fd adopt_fd
expect clients rpc_8_clients rpc_8_clients_depth_8
expect allocate alloc_64k_map alloc_64k_again alloc_batched_buffers
expect large write_256m_vs_malloc write_256m_vs_rewrite stock_1g_ready
expect death death_reclaim_1g
expect neighbours {,echo_}quiet_vs_busy_p99 {,echo_}small_vs_flood_p99 alloc_32m_vs_sealing
expect hostile ping_vs_{500,4000}_callers{,_depth_1}_p99 ping_vs_{2000,4000}_listers_p99 \
    ping_vs_{4000_who_ask,2000_unread,batches,destroys,watchers,deaths,storm,half_open,crowd,garbage}_p99 \
    connect_vs_{storm,half_open,crowd,garbage}_p99
expect footprint bytes_per_buffer
expect copy {copy,fill}_1m {copy,fill}_4m {copy,fill}_8m {copy,fill}_16m {copy,fill}_64m {copy,fill}_256m
expect umf_pools \
    malloc_pair_vs_jemalloc pairs_disjoint_{2,4} mixed_disjoint_{1,2,4} alloc_batched \
    {pairs,mixed}_jemalloc_{1,2,4} batches_jemalloc_1 {pairs,mixed}_scalable_{1,2,4} batches_scalable_1 \
    {pairs,mixed}_glibc_{1,2,4} batches_glibc_1 {pairs,mixed}_tbb_{1,2,4} batches_tbb_1
expect umf_handles ipc_get_cached ipc_open_cached import_batch_256
expect recovery recovery_100{,_anew} recovery_1k{,_anew} recovery_10k{,_anew}
expect svm svm_again_{256k,1m,16m}
expect small write_256m_small_vs_malloc map_64g
expect heap pool_pair_{1,2,4} pool_pair_vs_disjoint pool_hand_over_{64k,1m} pool_hand_over_{64k,1m}_vs_iceoryx pool_recover
expect umf_live umf_live_{os,proxy,disjoint,jemalloc}_{1,2,4}
expect umf_ipc ipc_open_unpooled{,_vs_upstream} ipc_get_unpooled_vs_upstream
expect nbla nbla_cold_{1k,2m} nbla_grow_flat
expect python python_64m_{first,again,reopened,pool}_vs_shm python_64m_{dumps,loads}_vs_shm python_64m_first_vs_pickle
expect rivals {hand_over_64k,hand_over_16m,loan_64k}_vs_{memfd,shm,iceoryx,mmap,mmap_thp,malloc,jemalloc,tbb}
[ $failed != 0 ] || echo "all rows have their names"
exit $failed
