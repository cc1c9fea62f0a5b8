#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The tarball holds every file that git tracks, and nothing that git does not know and a build did not make.
set -eu

git -C "$srcdir" rev-parse --show-toplevel >/dev/null 2>&1 &&
    [ "$(git -C "$srcdir" rev-parse --show-toplevel)" -ef "$srcdir" ] || {
    echo "not a git checkout"
    exit 77
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s --no-print-directory -C "$builddir" print-distfiles |
    while read -r name; do
        if [ -d "$srcdir/$name" ]; then git -C "$srcdir" ls-files -- "$name"; else echo "$name"; fi
    done | sort -u >"$tmp/dist"
# what only a checkout needs
git -C "$srcdir" ls-files | grep -vxE '\.gitignore|\.gitattributes' | sort -u >"$tmp/git"

rc=0
if comm -13 "$tmp/dist" "$tmp/git" | grep .; then
    echo "^ tracked by git, but missing in the tarball: add them to the list of their module, or to EXTRA_DIST"
    rc=1
fi
made='^(aclocal\.m4|configure|config\.h\.in|Makefile\.in|build-aux/.*|m4/(libtool|lt.*)\.m4)$'
git -C "$srcdir" ls-files --cached --others --exclude-standard | sort -u >"$tmp/ours"
if comm -23 "$tmp/dist" "$tmp/ours" | grep -vE "$made"; then
    echo "^ in the tarball, but ignored by git: a generated source wants nodist_"
    rc=1
fi
[ $rc != 0 ] || echo "the tarball is complete"
exit $rc
