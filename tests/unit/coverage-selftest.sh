#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows coverage.pl damaged copies of what it looks at: a check that cannot fail is worth nothing.
set -eu

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/tree
failures=0

mkdir -p "$tree/include"
cp -r "$srcdir/include/memclient" "$tree/include"
for file in "$srcdir"/tests/unit/*/COVERAGE; do
    file=tests/unit/$(basename "$(dirname "$file")")
    mkdir -p "$tree/$file"
    cp "$srcdir/$file"/*.c "$srcdir/$file/local.am" "$srcdir/$file/COVERAGE" "$tree/$file"
done
chmod -R u+w "$tree"

run() { perl "$srcdir/tests/unit/coverage.pl" "$tree" >"$tmp/out" 2>&1; }

# damage FILE EXPRESSION WORDS: edits the file, and then the check must fail and say so in these words
damage() {
    local before
    before=$(cksum <"$tree/$1")
    sed -i -E "$2" "$tree/$1"
    if [ "$before" = "$(cksum <"$tree/$1")" ]; then
        echo "nothing to damage in $1: $2"
        failures=$((failures + 1))
    elif run; then
        echo "not noticed: $3"
        failures=$((failures + 1))
    elif ! grep -qF -- "$3" "$tmp/out"; then
        echo "failed, but did not say \"$3\":"
        cat "$tmp/out"
        failures=$((failures + 1))
    fi
    cp "$srcdir/$1" "$tree/$1"
    chmod u+w "$tree/$1"
}

if ! run; then
    echo "a good tree is not good enough:"
    cat "$tmp/out"
    failures=$((failures + 1))
fi

hsa=tests/unit/hsa
umf=tests/unit/umf
core=include/memclient/hsa/hsa/hsa.h
headers=include/memclient/umf/umf
document='the document has it, and there is no line:'
header='the header has it, and there is no line:'

# lines that are missing
damage $hsa/COVERAGE '/^core \| hsa_memory_copy \| src /d'            "$document hsa_memory_copy | src"
damage $hsa/COVERAGE '/^core \| hsa_memory_copy \| 4:/d'              "$document hsa_memory_copy | 4"
damage $hsa/COVERAGE '/^core .*\| HSA_REGION_SEGMENT_GROUP /d'        'hsa_region_segment_t | HSA_REGION_SEGMENT_GROUP'
damage $hsa/COVERAGE '/^vmem .*_map \| HSA_STATUS_ERROR_OUT_OF_RES/d' 'hsa_amd_vmem_map | HSA_STATUS_ERROR_OUT_OF_RESOURCES'
damage $hsa/COVERAGE '/^header .*_fill \| count /d'                   "$header hsa_amd_memory_fill | count"
damage $hsa/COVERAGE '/^header .*_UUID /d'                            'HSA_AMD_AGENT_INFO_UUID'
damage $hsa/COVERAGE '/^header .*\| userData /d'                      "$header hsa_amd_pointer_info_t | userData"
damage $umf/COVERAGE '/^pools \| umfPoolCreate \| 3:/d'               "$document umfPoolCreate | 3"
damage $umf/COVERAGE '/^os .*_ADDRESS_NOT_ALIGNED:/d'                 'UMF_OS_RESULT_ERROR_ADDRESS_NOT_ALIGNED'
damage $umf/COVERAGE '/^header \| umf_memory_provider_ops_t \| ipc /d' "$header umf_memory_provider_ops_t | ipc"
damage $umf/COVERAGE '/^header \| memclient_umf_params \| wait_ms /d' "$header memclient_umf_params | wait_ms"
damage $umf/COVERAGE '/^header .*\| UMF_PROTECTION_MAX/d'             "$header umf_mem_protection_flags_t | UMF_PROTECTION_MAX"
damage $umf/COVERAGE '/ umf_const_memspace_handle_t /d'               "$header umf_const_memspace_handle_t"
damage $umf/COVERAGE '/^header \| UMF_OS_RESULTS_START_FROM /d'       "$header UMF_OS_RESULTS_START_FROM"
damage $umf/COVERAGE '/^header \| umfGetCurrentVersion /d'            "$header umfGetCurrentVersion"
damage $umf/COVERAGE '/^header .*Ops \| - UMF_RESULT_ERROR_UNKNOWN/d' \
    "$header umfLevelZeroMemoryProviderOps | UMF_RESULT_ERROR_UNKNOWN"

# lines that are wrong
damage $hsa/COVERAGE 's/^(core \| hsa_memory_free \|) ptr .*/\1/'      'a line is: document | name | what | test'
damage $hsa/COVERAGE 's/^core (\| hsa_memory_free \| ptr .*)/cord \1/' 'a line is: document | name | what | test'
damage $hsa/COVERAGE 's/(hsa_memory_copy \| size \| ).*/\1/'           'names no test: hsa_memory_copy | size'
damage $hsa/COVERAGE 's/(hsa_memory_copy \| size \| ).*/\1nowhere:x/'  "there is no $hsa/nowhere.c"
damage $hsa/COVERAGE 's/:test_copy_offsets$/:copy_bites/'              'does not run a test copy_bites'
damage $hsa/COVERAGE 's/(hsa_memory_copy \| size \| .*):.*/\1:test_fill/' \
    'test-copy:test_fill does not name hsa_memory_copy'
damage $hsa/COVERAGE 's/^(core \| hsa_memory_copy \| size .*)/\1\n\1/' 'twice: hsa_memory_copy | size'
damage $umf/COVERAGE 's/^pools \| umfFree \| ptr .*/&\nheader | umfFree | size | test-tracking:free_fails/' \
    'neither a document nor a header has it: umfFree | size'
damage $umf/COVERAGE 's/^pools \| umfFree \| ptr .*/&\nheader | umfFree | - UMF_RESULT_ERROR_UNKNOWN: it knows/' \
    'nobody says that it can be: umfFree | UMF_RESULT_ERROR_UNKNOWN'
damage $umf/COVERAGE 's/^returns = /return = /'                        'there is no such setting: return'
damage $umf/COVERAGE 's/^headers = umf.umf.h/&, usm.h/'                'there are no headers usm.h'

# tests that are not built, not run, or do not say what they are about
damage $umf/local.am 's/test-tracking/test-trackings/g'              "nothing builds $umf/test-tracking"
damage $hsa/test-copy.c 's/cmocka_unit_test\(test_copy_offsets\),//' 'does not run a test test_copy_offsets'
damage $hsa/test-memory.c 's/(HSA_STATUS_ERROR_)?INVALID_REGION/0/g' 'does not name HSA_STATUS_ERROR_INVALID_REGION'
damage $umf/test-os-calls.c 's/TEST\(test_discovery_fails\),//'        'does not run a test test_discovery_fails'
damage $umf/test-memoryd.c 's/\bkeep_ms\b/keep/'                       'test-memoryd:test_keeping does not name keep_ms'

# a header that promises more
damage $core 's/^(HSA_API hsa_status_t hsa_memory_copy\()/\1int much, /' "$header hsa_memory_copy | much"
damage $core 's/^( \*     )INVALID_REGION/\1INVALID_ISA/'                'hsa_region_get_info | HSA_STATUS_ERROR_INVALID_ISA'
damage $core 's/^(HSA_API hsa_status_t) hsa_init\(/\1 hsa_exit(int x);\n&/' "$header hsa_exit | x"
damage $core 's/^( *)HSA_REGION_INFO_SIZE = 2/\1HSA_REGION_INFO_WIDTH = 9,\n&/' 'HSA_REGION_INFO_WIDTH'
damage $headers/memory_pool.h 's/^UMF_API void \*umfPoolMalloc/UMF_API void umfPoolTrim(void);\n&/' "$header umfPoolTrim"
damage $headers/mempolicy.h 's/^( *)unsigned target;/&\n\1unsigned first, last[2];/' \
    "$header umf_mempolicy_split_partition_t | last"
damage $headers/mempolicy.h 's/^( *)unsigned target;/&\n\1union { long high; };/' \
    "$header umf_mempolicy_split_partition_t | high"
damage $headers/memory_pool_ops.h 's/^ *void \(\*finalize\).*/&\numf_result_t (*trim)(void *pool, size_t size);/' \
    "$header umf_memory_pool_ops_t | trim"
damage $headers/base.h 's/^( *)UMF_RESULT_ERROR_UNKNOWN/\1UMF_RESULT_ERROR_BUSY = 9,\n&/' \
    "$header umf_result_t | UMF_RESULT_ERROR_BUSY"
damage $headers/ipc.h 's/^typedef struct umf_ipc_data_t/typedef unsigned umf_ipc_flags_t;\n&/' "$header umf_ipc_flags_t"
damage $headers/ipc.h 's/INVALID_ARGUMENT: nothing is open/INVALID_ALIGNMENT: nothing is open/' \
    "$header umfCloseIPCHandle | UMF_RESULT_ERROR_INVALID_ALIGNMENT"
damage $headers/pools/pool_proxy.h 's/^UMF_API umf_memory/static inline int umfProxyIs(int it)\n{\n}\n\n&/' \
    "$header umfProxyIs | it"
damage include/memclient/umf_provider.h 's/^( *)uint64_t keep_ms;/\1uint64_t spare_ms;\n&/' \
    "$header memclient_umf_params | spare_ms"

[ $failures = 0 ] && echo "the check of coverage can fail"
exit $((failures != 0))
