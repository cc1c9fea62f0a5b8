# SPDX-License-Identifier: Apache-2.0
#
# A container with a real systemd as process 1, over a throw-away overlay of this machine's own /. A test sources this
# file: container_enter ends the test, or has it start again within namespaces of its own, where the variables are set
#   root    the container's /
#   units   its /etc/systemd/system, where nothing of the machine's own is started
#   tmp     a folder for the test, of which tmp/io is /io in the container
# It puts into the container what it likes, and a script into tmp/io/command, which container_run runs there as root.
#
# With MEMORYD_MACHINE in the environment, the name of a machine in tests/vm/lib.sh, it is no container but that machine.

skip() { echo "$*"; exit 77; }

# container_enter "$@": with the arguments of the test
container_enter() {
    if [ "${1-}" != inside ]; then
        [ "$(id -u)" = 0 ] || skip "needs root, for a container"
        [ -x /lib/systemd/systemd ] || skip "systemd is missing"
        command -v systemd-nspawn >/dev/null || skip "systemd-nspawn is missing (Debian: systemd-container)"
        unshare --mount --propagation private true 2>/dev/null || skip "no permission to make namespaces"
        tmp=$(mktemp -d)
        trap 'rm -rf "$tmp"' EXIT
        export tmp
        unshare --mount --propagation private bash "$0" inside
        exit
    fi
    mount -t tmpfs -o mode=755 tmpfs "$tmp"
    mkdir -p "$tmp"/{upper,work,root,io}
    mount -t overlay -o "lowerdir=/,upperdir=$tmp/upper,workdir=$tmp/work" overlay "$tmp/root" 2>"$tmp/err" ||
        skip "no overlay over / here: $(tail -n 1 "$tmp/err")"
    root=$tmp/root
    units=$root/etc/systemd/system
    # nothing of the machine's own is started in there
    rm -f "$root/.dockerenv" "$root/etc/fstab" "$root/usr/sbin/policy-rc.d"
    : >"$root/etc/machine-id"
    mkdir -p "$units"
    rm -rf "$units"/*.wants
    for unit in systemd-timesyncd systemd-logind systemd-networkd systemd-resolved systemd-udevd systemd-udev-trigger \
        console-getty getty@ container-getty@ systemd-update-utmp systemd-sysctl systemd-modules-load; do
        ln -sf /dev/null "$units/$unit.service"
    done
}

# container_run SECONDS: runs /io/command there, prints what it did, and returns 0 if that did.
container_run() {
    cat >"$units/memoryd-test.service" <<'UNIT'
[Unit]
After=basic.target
DefaultDependencies=no
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=sh -c "bash /io/command </dev/null >/io/out 2>&1; echo $$? >/io/status"
UNIT
    printf '[Unit]\nRequires=basic.target memoryd-test.service\nAfter=basic.target memoryd-test.service\nAllowIsolate=yes\n' \
        >"$units/memoryd-test.target"

    if [ -n "${MEMORYD_MACHINE-}" ]; then
        container_boot
    else
        container_nspawn "$1"
    fi
    [ -s "$tmp/io/status" ] || [ -s "$tmp/io/out" ] || {
        tail -n 30 "$tmp/io/console"
        skip "the container did not boot"
    }
    cat "$tmp/io/out"
    [ "$(cat "$tmp/io/status" 2>/dev/null)" = 0 ]
}

container_nspawn() {
    local group=/sys/fs/cgroup/memoryd-test.$$.$RANDOM inaccessible=/run/systemd/inaccessible

    mount -t tmpfs tmpfs /run
    mount -t cgroup2 cgroup2 /sys/fs/cgroup || skip "no cgroup v2 here"
    mkdir "$group"
    echo $$ >"$group/cgroup.procs"
    mkdir -p $inaccessible
    mkdir -m 000 $inaccessible/dir
    install -m 000 /dev/null $inaccessible/reg
    mkfifo -m 000 $inaccessible/fifo
    timeout -k 5 "$1" systemd-nspawn --register=no --keep-unit --quiet -D "$root" --machine="memorydtest$$" \
        --bind="$tmp/io:/io" --private-network --console=pipe \
        /lib/systemd/systemd --unit=memoryd-test.target --log-target=journal --show-status=no \
        </dev/null >"$tmp/io/console" 2>&1 || :
    echo $$ >/sys/fs/cgroup/cgroup.procs
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
}

container_boot() {
    . "$srcdir/tests/vm/lib.sh"
    vm_machine "$MEMORYD_MACHINE"
    vm_boot "$root" "$tmp/io" memoryd-test.target
    [ -s "$tmp/io/status" ] || {
        cat "$vm_dir"/{qemu,root.log,io.log,console}
        cat "$tmp/io/out" 2>/dev/null || :
        echo "FAIL: the machine did not come to its end"
        exit 1
    }
}
