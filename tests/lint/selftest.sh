#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows each check of this folder a small tree with one mistake: a check that cannot fail is worth nothing.
set -eu

lint=$srcdir/tests/lint
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/tree
failures=0

fresh() {
    rm -rf "$tree"
    mkdir -p "$tree"/{include/base,include/memclient,proto,daemon/{sys,va,net,log},client/{rpc,core},tests/unit/va}
    local spdx='# SPDX-License-Identifier: Apache-2.0'
    printf '%s\n#\n# Uses: nothing\n' "$spdx" >"$tree/include/local.am"
    printf '%s\n#\n# Uses: base\n' "$spdx" >"$tree/proto/local.am"
    printf '%s\n#\n# Uses: base log\n' "$spdx" >"$tree/daemon/sys/local.am"
    printf '%s\n#\n# Uses: base proto/status.h log sys\n' "$spdx" >"$tree/daemon/va/local.am"
    printf '%s\n#\n# Uses: base proto sys\n' "$spdx" >"$tree/daemon/net/local.am"
    printf '%s\n#\n# Uses: base\n' "$spdx" >"$tree/daemon/log/local.am"
    printf '%s\n#\n# Uses: base proto memclient\n' "$spdx" >"$tree/client/rpc/local.am"
    printf '%s\n#\n# Uses: base rpc\n' "$spdx" >"$tree/client/core/local.am"
    for h in include/base/checked proto/status proto/frame daemon/sys/sys daemon/va/arena daemon/net/inbox client/rpc/call; do
        c "$h.h" '#pragma once'
    done
    c daemon/va/arena.c '#include "va/arena.h"
#include "base/checked.h"
#include "proto/status.h"
#include "sys/sys.h"
#include <sys/types.h>

int arena(int (*send_it)(int))
{
    /* sprintf() in a comment, "and" mmap() in one */
    return send_it(sys->mmap("strcpy(x)", arena_mmap(1)));
}'
    c daemon/sys/real.c 'void *real(void) { return mmap(0); }'
    c client/core/fds.c '#include "rpc/call.h"
int fds(void) { return open("x", O_RDONLY | O_CLOEXEC) + open("y", flags); }'
    c tests/unit/va/test-arena.c '#include "va/arena.h"'
    cat >"$tree/include/memclient/memclient.h" <<'H'
/* SPDX-License-Identifier: Apache-2.0 */
/* The API. */
#ifndef MEMCLIENT_H
#define MEMCLIENT_H
extern "C"
#endif
H
    map '' ''
    mkdir -p "$tree/debian" "$tree/tests/lint"
    news '1.2.0 (2026-12-03)' '`memclient_old` is `memclient_new`. Heaps: `memclient_heap_...`.'
    printf 'dnl SPDX-License-Identifier: Apache-2.0\nAC_INIT([memoryd], [1.2.0])\n' >"$tree/configure.ac"
    printf 'memoryd (1.2.0) unstable\n\n  * x\n\n -- me <me@x>  Thu, 3 Dec 2026 00:00:00 +0000\n' >"$tree/debian/changelog"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n{\n    memclient_new;\n    memclient_heap_open;\n    memclient_kept;\n};\n' >"$tree/client/libmemclient.sym"
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n' >"$tree/client/libmemclient-nbla.sym"
    cp "$tree/client/libmemclient-nbla.sym" "$tree/client/libmemclient-opencl.sym"
    printf 'memclient_old\nmemclient_kept\n' >"$tree/tests/lint/names-0.1"
}

# news RELEASE TEXT: what has changed in it, and in one before it
news() {
    printf '# News\n\n## %s\n\n%s\n\n## 1.1.0 (2025-01-01)\n\n`memclient_lost` `memclient_young`\n' "$1" "$2" >"$tree/NEWS.md"
}

# map ARCHITECTURE CONTRIBUTING: both, with these lines more
map() {
    printf '* **I1 No mistakes.** And `daemon/sys`, `daemon/va`, `daemon/net`, `daemon/log`, `client/rpc`,\n`client/core`: `daemon/va/arena.c:\narena`.\n%s\n' "$1" >"$tree/ARCHITECTURE.md"
    printf 'How to work on it.\n%s\n' "$2" >"$tree/CONTRIBUTING.md"
}

# c FILE TEXT: a source file with a proper head
c() {
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n/* What it is for. */\n%s\n' "$2" >"$tree/$1"
}

run() {
    perl "$lint/$1.pl" "$tree" >"$tmp/out" 2>&1
}

# expect CHECK WORDS: the check must fail, and say so in these words
expect() {
    if run "$1"; then
        echo "$1 did not notice: $2"
        failures=$((failures + 1))
    elif ! grep -qF -- "$2" "$tmp/out"; then
        echo "$1 failed, but did not say \"$2\":"
        cat "$tmp/out"
        failures=$((failures + 1))
    fi
    fresh
}

fresh
for check in layers circles calls style map release; do
    if ! run $check; then
        echo "$check is unhappy about a good tree:"
        cat "$tmp/out"
        failures=$((failures + 1))
    fi
done

# layers
c daemon/sys/up.c '#include "va/arena.h"';                  expect layers 'daemon/sys may not use daemon/va'
c daemon/va/frame.c '#include "proto/frame.h"';             expect layers 'daemon/va may not use proto'
c daemon/net/va.c '#  include "va/arena.h"';                expect layers 'daemon/net may not use daemon/va'
c client/core/x.c '#include "net/inbox.h"';                 expect layers 'client/core may not use daemon/net'
c client/core/x.c '#include "memclient/memclient.h"';       expect layers 'client/core may not use include/memclient'
c client/core/x.c '#include <memclient/memclient.h>';       expect layers 'client/core may not use include/memclient'
c proto/x.c '#include "sys/sys.h"';                         expect layers 'proto may not use daemon/sys'
c include/base/x.h '#include "proto/status.h"';             expect layers 'include/base may not use proto'
c tests/unit/va/test-x.c '#include "net/inbox.h"';          expect layers 'daemon/va may not use daemon/net'
c daemon/va/x.c '#include "arena.h"';                       expect layers 'name its folder'
c daemon/va/x.c '#include "daemon/va/arena.h"';             expect layers 'leave out the root'
c daemon/va/x.c '#include <event2/event.h>';                expect layers 'may include event2/event.h'
c daemon/net/x.c '#include "proto/memoryd.pb-c.h"';         expect layers 'may include proto/memoryd.pb-c.h'
c daemon/sys/x.c '#include <numa.h>';                       expect layers 'may include numa.h'
c daemon/va/x.c '#include <sys/socket.h>';                  expect layers 'may include sys/socket.h'
mkdir "$tree/daemon/rpc"; c daemon/rpc/call.h '#pragma once'; expect layers 'ambiguous'

# circles: each of n files of a folder calls the next
circle() {
    local folder=$1 n=$2 head=$3 i
    for ((i = 0; i < n; i++)); do
        c "$folder/c$i.c" "$head ring$i(int x)
{
    return x ? ring$(((i + 1) % n))(x) : 0;
}"
    done
}
circle daemon/va 5 int;                                     expect circles 'daemon/va: 5 files call each other'
circle daemon/va 5 int; run circles || true
grep -q 'daemon/va/c4.c calls daemon/va/c0.c: ring0' "$tmp/out" || { echo "circles does not say who calls"; failures=$((failures + 1)); }
circle daemon/va 5 'static int'; circle daemon/net 4 int
run circles || { echo "circles is unhappy about four files, or about static functions:"; cat "$tmp/out"; failures=$((failures + 1)); }
fresh
mkdir "$tree/client/api"; circle client/core 14 int; mv "$tree"/client/core/c{0,2}.c "$tree/client/api"; expect circles 'client/core: 14 files'

# calls
c daemon/va/x.c 'int f(void) { sprintf(a, "b"); }';         expect calls 'sprintf: unbounded'
c daemon/va/x.c 'int f(void) { return mmap(0); }';          expect calls 'mmap may be called in daemon/sys/ only'
c daemon/net/x.c 'int f(void) { return recvmsg (0); }';     expect calls 'recvmsg may be called in proto/sockio.c only'
c client/rpc/x.c 'int f(void) { return send(0); }';         expect calls 'send may be called in proto/sockio.c only'
c client/rpc/x.c 'int f(void) { return getenv("A"); }';     expect calls 'use secure_getenv'
c client/rpc/x.c 'int f(void) { return open("A", O_RDWR); }'; expect calls 'not close-on-exec'
c client/rpc/x.c 'int f(void) { return socket(AF_UNIX,
    SOCK_SEQPACKET, 0); }';                                 expect calls 'not close-on-exec'
c client/rpc/x.c 'int f(void) { return fcntl(1, F_DUPFD, 0); }'; expect calls 'F_DUPFD_CLOEXEC'
c client/rpc/x.c 'int f(void) { return fopen("x", "r"); }'; expect calls 'not close-on-exec'

# style
printf 'int x;\n' >"$tree/daemon/va/x.c";                   expect style 'no SPDX'
c daemon/va/x.c "$(printf '\tint x;')";                     expect style 'a tab'
c daemon/va/x.c 'int x; ';                                  expect style 'space at the end'
c daemon/va/x.c "/* TO""DO: more */";                       expect style 'leftover'
c daemon/va/x.h 'int x;';                                   expect style 'no #pragma once'
c daemon/va/x.c '#include <config.h>';                      expect style 'comes by itself'
c daemon/va/x.c '#define _GNU_SOURCE';                      expect style 'is in config.h'
c daemon/va/x.c "$(printf '/* %0140d */' 1)";               expect style 'wider than'
printf '/* SPDX-License-Identifier: Apache-2.0 */\nint x;\n' >"$tree/daemon/va/x.c"; expect style 'no comment at the head'
c include/memclient/x.h '#pragma once';                     expect style 'needs an #ifndef guard'
c include/memclient/x.h 'int x;';                           expect style 'needs extern "C"'
printf '# SPDX-License-Identifier: Apache-2.0\nx_LDFLAGS = -lfoo\n' >"$tree/daemon/va/local.am"; expect style 'leaves out $(AM_LDFLAGS)'
mkdir "$tree/stuff"; c stuff/x.c '';                        expect style 'no new top-level name'

c daemon/va/x.c '/* ---- short ---- */';                    expect style 'a banner is'
c daemon/va/x.c "$(printf '/* %0114d */' 0 | tr 0 -)";      expect style 'a banner is'
printf '/* SPDX-License-Identifier: Apache-2.0 */\n#pragma once\n/* What for. */\n' >"$tree/daemon/va/x.h"; expect style 'the essay comes first'

# format, where its program is
cp "$srcdir/.clang-format" "$tree"
if perl "$lint/format.pl" "$tree" | grep -q 'no clang-format'; then
    echo 'the check of the format is left out: no clang-format of version 14'
else
    c daemon/va/x.c 'int  x;';                              expect format 'would format this otherwise'
fi

# map
map '`daemon/va/nothing.c`' '';                             expect map 'there is no daemon/va/nothing.c'
map '' '`daemon/va/nothing.c`';                             expect map 'there is no daemon/va/nothing.c'
map '`daemon/va/arena.c: arena_mmap`' '';                   expect map 'daemon/va/arena.c has no function arena_mmap()'
map "$(printf '```\nfigure\n```\n`daemon/va/nothing.c`')" '';     expect map 'there is no daemon/va/nothing.c'
map '* **I1 Again.**' '';                                   expect map 'I1 is defined more than once'
c tests/unit/va/test-x.c '/* I2 */';                        expect map 'I2 is defined nowhere'
c tests/unit/va/test-x.c 'void I7_x(void);';                expect map 'I7 is defined nowhere'
mkdir "$tree/daemon/extra"; c daemon/extra/x.c '';          expect map 'does not name daemon/extra'

# release
said='`memclient_old` is `memclient_new`. `memclient_heap_open`.'
news '1.2.0 (not released yet)' "$said";                    expect release 'is no version with a date'
news '1.2.1 (2026-12-03)' "$said";                          expect release 'configure.ac: has version 1.2.0, and NEWS.md 1.2.1'
news '1.2.0 (2026-12-04)' "$said";                          expect release 'has 1.2.0 of 2026-12-03, and NEWS.md 1.2.0 of 2026-12-04'
news '1.2.0 (2026-12-03)' '`memclient_new` `memclient_heap_open`'; expect release 'what became of memclient_old'
news '1.2.0 (2026-12-03)' '`memclient_old` `memclient_new`'; expect release 'does not name memclient_heap_open'
printf '    memclient_young;\n' >>"$tree/client/libmemclient.sym"; expect release 'does not name memclient_young'
echo memclient_lost >>"$tree/tests/lint/names-0.1";         expect release 'what became of memclient_lost'

[ $failures = 0 ] && echo "every check can fail"
exit $((failures != 0))
