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
    struct memclient_options options = MEMCLIENT_OPTIONS_INIT;
    struct memclient *context;
    options.socket = "/nonexistent/memoryd.sock";
    /* there is no broker at this address, and that is an answer too */
    int r = memclient_open(&options, &context);

    printf("memclient_open: %d, %s\n", r, memclient_error());
    return r < 0 ? 0 : 1;
}
C
export PKG_CONFIG_PATH=$dest$libdir/pkgconfig
[ -z "$dest" ] || export PKG_CONFIG_SYSROOT_DIR=$dest
# lists of words
# shellcheck disable=SC2046,SC2086
$CC $CFLAGS -Wall -Werror -o "$tmp/user" "$tmp/user.c" $(pkg-config --cflags --libs memclient)
MEMORYD_AUTOSTART=0 LD_LIBRARY_PATH=$dest$libdir "$tmp/user"

for program in "$dest$bindir/memctl" "$dest$sbindir/memoryd"; do
    LD_LIBRARY_PATH=$dest$libdir "$program" --version
done
[ -e "$dest$man8dir/memoryd.8" ] || { command -v scdoc >/dev/null && { echo "no manual"; exit 1; }; }
