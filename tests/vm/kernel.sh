#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# kernel.sh newest|current|old|floor: prints the path of a Linux kernel for the virtual machines, fetching it if need
# be:
#
#   newest    the newest of Debian 13 (backports): the kernels that are on their way to users; VM_NEWEST_KERNEL=PATH
#   current   the newest of Debian 12 (backports); VM_KERNEL=PATH in the environment takes another
#   old       the one that Debian 12 came with, 6.1; VM_OLD_KERNEL=PATH
#   floor     the oldest that memoryd claims to run on, 5.10, of Debian 11; VM_FLOOR_KERNEL=PATH
#
# Beside one that is fetched is fuse-WHICH.ko, its module for file systems in user space; empty if it needs none.
#
# It is downloaded by apt, with lists and cache of our own: nothing is installed and no source is added to the
# system. What was fetched stays below the build folder. Exit status 77, with the reason, when there is none.
set -eu

which=$1
cache=${builddir:-.}/tests/vm/kernels
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

cannot() {
    echo "no $which kernel for the virtual machine: $1" >&2
    exit 77
}

case $which in
    newest) given=${VM_NEWEST_KERNEL-} suite=trixie-backports ;;
    current) given=${VM_KERNEL-} suite=bookworm-backports ;;
    old) given=${VM_OLD_KERNEL-} suite=bookworm ;;
    floor) given=${VM_FLOOR_KERNEL-} suite=bullseye ;;
    *) echo "kernel.sh newest|current|old|floor" >&2; exit 2 ;;
esac
if [ -n "$given" ]; then
    [ -r "$given" ] || cannot "$given cannot be read"
    echo "$given"
    exit 0
fi

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
kernel=$cache/vmlinuz-$which
module=$cache/fuse-$which.ko
if [ -s "$kernel" ] && [ -e "$module" ]; then
    echo "$kernel"
    exit 0
fi

for tool in apt-get apt-cache dpkg-deb; do
    command -v $tool >/dev/null || cannot "it is fetched with $tool, which is not here (or give one, see tests/vm/kernel.sh)"
done
[ -r $keyring ] || cannot "$keyring is missing: install debian-archive-keyring"

# the mirror that this machine already uses, if it is a Debian
site=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 2>/dev/null | awk '$1 == "bookworm" { print $2; exit }')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
echo "deb [signed-by=$keyring] ${site:-http://deb.debian.org/debian/} $suite main" >"$work/sources.list"
options=(-qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root
    -o Acquire::Languages=none -o APT::Architecture=amd64 -o APT::Update::Error-Mode=any -o Acquire::http::Timeout=30)
cd "$work"
apt-get "${options[@]}" update >log 2>&1 || cannot "apt-get update: $(tail -n 1 log)"
package=$(apt-cache "${options[@]}" depends "linux-image-cloud-amd64/$suite" 2>>log |
    awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
[ -n "$package" ] || cannot "$suite has no linux-image-cloud-amd64"
# from Linux 7 on, the kernel, its settings and its modules are packages of their own
parts=$(apt-cache "${options[@]}" depends "$package" |
    awk '$1 == "Depends:" && $2 ~ /^linux-(base|binary|modules)-[0-9]/ { print $2 }')
for package in $package $parts; do
    apt-get "${options[@]}" download "$package" >>log 2>&1 || cannot "apt-get download $package: $(tail -n 1 log)"
    dpkg-deb -x "$package"_*.deb root
done
# where that is depends on the version
found() {
    find root \( "$@" \) -print -quit
}
fuse=$(found -path '*/kernel/fs/fuse/fuse.ko*')
case $fuse in
    '')
        settings=$(found -path 'root/boot/config-*' -o -path '*/modules/*/config')
        grep -qx 'CONFIG_FUSE_FS=y' "$settings" && : >"$module.new" ;;
    *.xz) xz -dc "$fuse" >"$module.new" ;;
    *) cp "$fuse" "$module.new" ;;
esac
cp "$(found -path 'root/boot/vmlinuz-*' -o -path '*/modules/*/vmlinuz')" "$kernel.new"
mv "$module.new" "$module"
mv "$kernel.new" "$kernel"
echo "$kernel"
