#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make installcheck: a program is built against the installed library by what its pkg-config file says, and runs; the
# installed programs start. make distcheck comes by here.
# usage: installed.sh DESTDIR LIBDIR BINDIR SBINDIR MAN8DIR
set -eu

dest=$1 libdir=$2 bindir=$3 sbindir=$4 man8dir=$5
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/user.c" <<'C'
#include <memclient/memclient.h>
#include <stdio.h>
int main(void)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *context;
    options.socket = "/nonexistent/memoryd.sock";
    /* there is no broker at this address, and that is an answer too */
    int r = memclient_context_open(&options, &context);

    printf("memclient_context_open: %d, %s\n", r, memclient_error());
    return r < 0 ? 0 : 1;
}
C
export PKG_CONFIG_PATH=$dest$libdir/pkgconfig
[ -z "$dest" ] || export PKG_CONFIG_SYSROOT_DIR=$dest

# try NAME FLAGS: makes $tmp/NAME of $tmp/NAME.c, and starts it. The flags are lists of words.
try() {
    # shellcheck disable=SC2086
    $CC $CFLAGS -Wall -Werror -o "$tmp/$1" "$tmp/$1.c" $2 "-Wl,-rpath-link,$dest$libdir"
    start "$1"
}
start() {
    # the loader's cache may know another installation
    MEMORYD_AUTOSTART=0 MEMORYD_SOCKET=/nonexistent/memoryd.sock LD_LIBRARY_PATH=$dest$libdir "$tmp/$1"
}
try user "$(pkg-config --cflags --libs memclient)"

# the same in C++
cat >"$tmp/owner.cpp" <<'C'
#include <memclient/heap.hpp>
#include <cstdio>
int main()
{
    memclient::context_options options;
    std::error_code code;
    options.socket = "/nonexistent/memoryd.sock";
    if (memclient::context::try_open(options, code) || code != std::errc::no_such_file_or_directory)
        return 1;
    std::puts(memclient::sentence());
}
C
if [ -n "${TEST_CXX-}" ] && [ "${SANITIZERS:-no}" = no ]; then
    # shellcheck disable=SC2086,SC2046
    $TEST_CXX -std=c++17 -Wall -Wextra -Wshadow -Werror -o "$tmp/owner" "$tmp/owner.cpp" \
        $(pkg-config --cflags --libs memclient) "-Wl,-rpath-link,$dest$libdir"
    start owner
fi

cat >"$tmp/hsa.c" <<'C'
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
int main(void)
{
    hsa_amd_vmem_alloc_handle_t none = {0};
    const char *text = "?";
    hsa_status_t status = hsa_init();

    hsa_status_string(status, &text);
    printf("hsa_init: %s\n", text);
    /* as above: no broker is there */
    return status == HSA_STATUS_ERROR_OUT_OF_RESOURCES &&
           hsa_amd_vmem_handle_release(none) == HSA_STATUS_ERROR_NOT_INITIALIZED ? 0 : 1;
}
C
try hsa "$(pkg-config --cflags --libs memclient-hsa)"
if [ -e "$dest$libdir/libhsa-runtime64.so.1" ]; then
    cp "$tmp/hsa.c" "$tmp/alias.c"
    try alias "$(pkg-config --cflags memclient-hsa) -L$dest$libdir -lhsa-runtime64"
    readelf -d "$tmp/alias" | grep -q 'NEEDED.*libhsa-runtime64\.so\.1'
fi

cat >"$tmp/umf.c" <<'C'
#include <stdio.h>
#include <umf.h>
#include <umf/pools/pool_proxy.h>
#include <umf/providers/provider_os_memory.h>
int main(void)
{
    umf_os_memory_provider_params_t params = umfOsMemoryProviderParamsDefault();
    umf_memory_provider_handle_t provider;
    umf_memory_pool_handle_t pool;
    void *ptr;

    /* private memory needs no broker */
    if (umfMemoryProviderCreate(umfOsMemoryProviderOps(), &params, &provider) != UMF_RESULT_SUCCESS ||
        umfPoolCreate(umfProxyPoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool) != UMF_RESULT_SUCCESS)
        return 1;
    ptr = umfPoolMalloc(pool, 100);
    printf("%s gave %p\n", umfMemoryProviderGetName(provider), ptr);
    if (!ptr || umfPoolByPtr(ptr) != pool || umfFree(ptr) != UMF_RESULT_SUCCESS)
        return 1;
    umfPoolDestroy(pool);
    return 0;
}
C
try umf "$(pkg-config --cflags --libs memclient-umf)"

cat >"$tmp/nbla.c" <<'C'
#include <memclient/nbla.h>
#include <stdio.h>
int main(void)
{
    nbla_memory *memory = nbla_memory_new(NULL, 100, "");

    /* nothing is asked of a broker yet */
    if (!memory || nbla_memory_bytes(memory) != 100 || !nbla_memory_disabled(memory) ||
        nbla_memory_bind(memory) != NBLA_ERROR_MEMORY)
        return 1;
    puts(nbla_error());
    return nbla_memory_destroy(memory);
}
C
try nbla "$(pkg-config --cflags --libs memclient-nbla)"

# nnabla's classes, in C++: with a stand-in for nnabla's headers
cat >"$tmp/adaptor.cpp" <<'C'
#include <memclient/nbla_memory.hpp>
#include <cstdio>
int main()
{
    nbla_memoryd::MemorydMemory memory(100, "");

    try {
        memory.alloc();
    } catch (const nbla::Exception &e) {
        /* as above: no broker is there */
        std::puts(e.what());
        return memory.disabled() && memory.bytes() == 100 ? 0 : 1;
    }
    return 1;
}
C
if [ -n "${TEST_CXX-}" ] && [ "${SANITIZERS:-no}" = no ]; then
    # shellcheck disable=SC2086,SC2046
    $TEST_CXX -std=c++14 -Wall -Wextra -Wshadow -Werror -I"${srcdir:?}/tests/unit/nbla/stand-in" -o "$tmp/adaptor" \
        "$tmp/adaptor.cpp" $(pkg-config --cflags --libs memclient-nbla) "-Wl,-rpath-link,$dest$libdir"
    start adaptor
fi

cat >"$tmp/svm.c" <<'C'
#include <memclient/cl_svm_memoryd.h>
#include <memclient/svm.h>
#include <stdio.h>
int main(void)
{
    struct memclient_svm *svm;
    void *ptr;
    int r = memclient_svm_create(NULL, &svm);

    if (r)
        return 1;
    /* as above: no broker is there */
    r = memclient_svm_alloc(svm, MEMCLIENT_SVM_READ_WRITE, 100, 0, &ptr);
    printf("memclient_svm_alloc: %d, %s\n", r, memclient_svm_error());
    memclient_svm_destroy(svm);
    return r < 0 ? 0 : 1;
}
C
try svm "$(pkg-config --cflags --libs memclient-opencl)"

# The same by CMake, which needs no more than find_package().
if command -v cmake >/dev/null && [ "${SANITIZERS:-no}" = no ]; then
    cat >"$tmp/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.13)
project(users C)
find_package(memclient 0.2 REQUIRED)
foreach(pair IN ITEMS user:memclient hsa:hsa umf:umf nbla:nbla svm:opencl)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 program)
    list(GET pair 1 target)
    add_executable(cmake-${program} ${program}.c)
    target_link_libraries(cmake-${program} PRIVATE memclient::${target})
endforeach()
C
    cmake -S "$tmp" -B "$tmp/cmake" -Dmemclient_DIR="$dest$libdir/cmake/memclient" >"$tmp/log" 2>&1 &&
        cmake --build "$tmp/cmake" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
    for program in user hsa umf nbla svm; do
        start "cmake/cmake-$program"
    done
fi

# A program may have headers with these names from somewhere else, and then gets those, whatever it asks pkg-config for,
# but for the one facade that stands in for them. Somewhere else is last in the search, as /usr/include is.
mkdir -p "$tmp/vendor/hsa" "$tmp/vendor/umf"
for header in hsa.h hsa/hsa.h umf.h umf/base.h svm.h nbla.h umf_provider.h memclient.h; do
    echo "typedef int vendors;" >"$tmp/vendor/$header"
done
# vendors MODULE: which of them are the vendor's
vendors() {
    local header
    for header in hsa.h hsa/hsa.h umf.h umf/base.h svm.h nbla.h umf_provider.h memclient.h; do
        # shellcheck disable=SC2046
        echo "#include <$header>" | $CC -M -x c $(pkg-config --cflags "$1") -idirafter "$tmp/vendor" - |
            grep -qF "$tmp/vendor/$header" && printf '%s ' "$header"
    done
}
expect() { [ "$2" = "$3" ] || { echo "$1: \"$2\", not \"$3\""; exit 1; }; }
ours='svm.h nbla.h umf_provider.h memclient.h '
for module in memclient memclient-nbla memclient-opencl memclient-umf-provider; do
    expect "the vendors' headers with $module" "$(vendors $module)" "hsa.h hsa/hsa.h umf.h umf/base.h $ours"
done
expect "the vendors' headers with memclient-hsa" "$(vendors memclient-hsa)" "hsa.h umf.h umf/base.h $ours"
expect "the vendors' headers with memclient-umf" "$(vendors memclient-umf)" "hsa.h hsa/hsa.h $ours"

# Programs are linked with what they call, not with what that stands on.
for library in hsa nbla opencl umf umf-provider; do
    libraries=$(pkg-config --libs-only-l "memclient-$library")
    expect "the libraries of memclient-$library" "${libraries% }" "-lmemclient-$library"
done

for program in "$dest$bindir/memctl" "$dest$sbindir/memoryd"; do
    LD_LIBRARY_PATH=$dest$libdir "$program" --version
done
[ -e "$dest$man8dir/memoryd.8" ] && [ -e "$dest${man8dir%8}7/memclient.7" ] || { command -v scdoc >/dev/null && { echo "no manual"; exit 1; }; }
# man finds each function's page by its name
if [ -e "$dest$man8dir/memoryd.8" ]; then
    man3=$dest${man8dir%8}3
    for name in $(readelf -W --dyn-syms "$dest$libdir/libmemclient.so" | grep -o '\<memclient_[a-z_]*@@' | tr -d @); do
        [ -e "$man3/$name.3" ] || { echo "no manual of $name"; exit 1; }
        page=$(sed -n 's|^\.so man3/||p' "$man3/$name.3")
        grep -q "$name" "$man3/${page:-$name.3}" || { echo "$page, the manual of $name, does not have it"; exit 1; }
    done
fi
