#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# After make install: where systemd does not look into the folder that units were put into, says how it gets to know
# them. It changes nothing, and never fails.
# usage: after-install.sh system|user FOLDER
kind=$1 folder=$2
command -v systemd-analyze >/dev/null || exit 0

# an ordinary user's business are that user's units
[ "$kind" = user ] || [ "$(id -u)" = 0 ] || exit 0
systemd-analyze --"$kind" unit-paths 2>/dev/null | {
    paths=
    while read -r path; do
        paths=yes
        # shellcheck disable=SC3013 # dash and busybox have it
        [ "$path" -ef "$folder" ] && exit 0
    done
    [ -z "$paths" ] || echo "memoryd: systemd does not look into $folder:" \
        "systemctl --$kind link $folder/memoryd.socket $folder/memoryd.service"
}
exit 0
