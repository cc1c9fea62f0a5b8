#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# After make install: lets programs find the libraries. The loader looks into a cache of what is in the folders of
# ld.so.conf, so root has that cache made anew. Where this cannot be done, or does not help, it says what does. It never
# fails, and writes nothing where the folder is not one of those (that of make distcheck, say).
# usage: after-install.sh LIBDIR
libdir=$1
PATH=$PATH:/usr/sbin:/sbin
command -v ldconfig >/dev/null || exit 0

# the loader's folders, without writing anything
for folder in $(ldconfig -N -X -v 2>/dev/null | sed -n 's|^\(/[^:]*\):.*|\1|p'); do
    # shellcheck disable=SC3013 # dash and busybox have it
    [ "$folder" -ef "$libdir" ] || continue
    [ "$(id -u)" = 0 ] && ldconfig && exit 0
    echo "memoryd: for programs to find the libraries in $libdir, run as root: ldconfig"
    exit 0
done
echo "memoryd: the loader does not look into $libdir: link programs with -Wl,-rpath,$libdir, or as root:" \
    "echo $libdir >/etc/ld.so.conf.d/memoryd.conf && ldconfig"
