#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows coverage.pl damaged copies of what it looks at: a check that cannot fail is worth nothing.
set -eu

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/tree
failures=0

fresh() {
    rm -rf "$tree"
    mkdir -p "$tree/tests/unit/hsa" "$tree/include/memclient/hsa"
    cp "$srcdir"/tests/unit/hsa/*.c "$srcdir/tests/unit/hsa/COVERAGE" "$tree/tests/unit/hsa"
    cp "$srcdir"/include/memclient/hsa/*.h "$tree/include/memclient/hsa"
    chmod -R u+w "$tree"
}

run() { perl "$srcdir/tests/unit/hsa/coverage.pl" "$tree" >"$tmp/out" 2>&1; }

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
    fresh
}

fresh
if ! run; then
    echo "a good tree is not good enough:"
    cat "$tmp/out"
    failures=$((failures + 1))
fi

coverage=tests/unit/hsa/COVERAGE
memory=tests/unit/hsa/test-document-memory.c
header=include/memclient/hsa/hsa.h

# lines that are missing
damage $coverage '/^core \| hsa_memory_copy \| src /d'               'the document has it, and there is no line: hsa_memory_copy | src'
damage $coverage '/^core \| hsa_memory_copy \| 4:/d'                 'the document has it, and there is no line: hsa_memory_copy | 4'
damage $coverage '/^core .*\| HSA_REGION_SEGMENT_GROUP /d'           'hsa_region_segment_t | HSA_REGION_SEGMENT_GROUP'
damage $coverage '/^vmem .*_map \| HSA_STATUS_ERROR_OUT_OF_RES/d'    'hsa_amd_vmem_map | HSA_STATUS_ERROR_OUT_OF_RESOURCES'
damage $coverage '/^header .*_fill \| count /d'                      'the header has it, and there is no line: hsa_amd_memory_fill | count'
damage $coverage '/^header .*_UUID /d'                               'the header has it, and there is no line: HSA_AMD_AGENT_INFO_UUID'
damage $coverage 's/^(core \| hsa_memory_free \|) ptr .*/\1/'         'a line is: document | function | what | test'

# lines that are wrong
damage $coverage 's/(hsa_memory_copy \| size \| ).*/\1/'             'names no test: hsa_memory_copy | size'
damage $coverage 's/(hsa_memory_copy \| size \| ).*/\1nowhere:x/'    'there is no tests/unit/hsa/nowhere.c'
damage $coverage 's/:copy_bytes$/:copy_bites/'                       'does not run a test copy_bites'
damage $coverage 's/(hsa_memory_copy \| size \| .*):.*/\1:free_ptr/' 'test-document-memory:free_ptr does not name hsa_memory_copy'
damage $coverage 's/^(core \| hsa_memory_copy \| size .*)/\1\n\1/'   'twice: hsa_memory_copy | size'

# tests that are not run, or do not say what they are about
damage $memory 's/^ *TEST\(copy_bytes\),//'                          'does not run a test copy_bytes'
damage $memory 's/HSA_STATUS_ERROR_INVALID_REGION/0/'                'does not name HSA_STATUS_ERROR_INVALID_REGION'

# a header that promises more
damage $header 's/^(HSA_API hsa_status_t hsa_memory_copy\()/\1int much, /' \
                                                                     'the header has it, and there is no line: hsa_memory_copy | much'
damage $header 's/^( \*     )INVALID_REGION/\1INVALID_REGIONS/'      'hsa_region_get_info | HSA_STATUS_ERROR_INVALID_REGIONS'
damage $header 's/^(HSA_API hsa_status_t) hsa_init\(/\1 hsa_exit(int x);\n&/' 'hsa_exit | x'
damage $header 's/^( *)HSA_REGION_INFO_SIZE = 2/\1HSA_REGION_INFO_WIDTH = 9,\n&/' 'HSA_REGION_INFO_WIDTH'

[ $failures = 0 ] && echo "the check of coverage can fail"
exit $((failures != 0))
