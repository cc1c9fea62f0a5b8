# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For the scripts beside it, each of which is one virtual machine with what it runs. A script says
#
#   . "$srcdir/tests/vm/lib.sh"
#   vm_machine two-nodes                          which machine; see vm_shape below
#   vm_runs tests/kernel/test-placement           a program of the build tree, or a script of the source tree
#   vm_runs tests/integration/placement.sh
#   vm_go
#
# A program that skips fails here: the machine was made for it. Where a kernel lacks something for good,
# vm_runs_without 'REGEX' PROGRAM allows to skip for reasons that all match. vm_needs FILE... adds files of the build
# tree, such as the broker, and scripts and configurations of the source tree; vm_exports NAME=VALUE is in everybody's environment;
# vm_runs_everywhere adds what several machines run. Emulation is about five times slower than the machine it runs on:
# nothing here may judge by time. The whole test is skipped (77) when no machine can be made, with the reason.
#
# Or, instead of programs, a script that brings a systemd of its own: vm_boots SCRIPT runs it, and tests/support/container.sh
# has its systemd run on the machine (vm_boot) where it would else have a container.
set -eu

: "${srcdir:?}" "${builddir:?}"
vm_dir=$(mktemp -d)
trap 'rm -rf "$vm_dir"' EXIT
vm_kernel=current
vm_backend=memory-backend-ram
vm_label=${0##*/}
vm_label=${vm_label%.sh}
vm_seconds=${VM_SECONDS:-1500} # for the whole machine
vm_program_seconds=600         # for each of its programs
vm_programs=() # what it runs, and for each: the reasons for which it may skip, if any
vm_excuses=()
vm_files=()
vm_settings=()

vm_cannot() {
    echo "no virtual machine: $1"
    exit 77
}

vm_machine() { vm_name=$1; }
vm_kernel() { vm_kernel=$1; } # newest, current, old or floor, see kernel.sh
vm_needs() { vm_files+=("$@"); }
vm_runs() { vm_programs+=("$*") vm_excuses+=(''); }
vm_runs_without() { vm_excuses+=("$1"); shift; vm_programs+=("$*"); }
# before anything runs: vm_sets FILE VALUE
vm_sets() { vm_settings+=("echo $2 >$1"); }
vm_exports() { vm_settings+=("export '$1'"); }

# What holds on every kernel that we claim to run on, and wants two nodes at most.
vm_runs_everywhere() {
    local test
    for test in kernel/test-{addresses,charging,handover,identity,ledger,listening,rights,signals} \
        unit/sandbox/test-sandbox unit/mem/test-{commit,handle,nodes,migrate} \
        integration/hostile/test-{pool-allow,sandbox} \
        integration/test-{commit,rights,ending,death,identity,sums,pages,placement,move}; do
        vm_runs "tests/$test"
    done
    case $vm_kernel in
        newest)
            vm_runs tests/kernel/test-sockets
            vm_runs_without 'no leases on hugetlbfs' tests/kernel/test-ending ;;
        *)
            vm_runs_without 'before 6.16' tests/kernel/test-sockets
            vm_runs tests/kernel/test-ending ;;
    esac
    # from 6.9 on they have
    case $vm_kernel in
        newest|current) vm_runs tests/unit/sys/test-peer ;;
        *) vm_runs_without 'pidfds have no inodes of their own' tests/unit/sys/test-peer ;;
    esac
    vm_needs daemon/memoryd
}

# ---- the machine ------------------------------------------------------------------------------------------------

# node SIZE [OPTIONS]: the next node
vm_nodes=0
vm_node() {
    vm_hardware+=(-object "$vm_backend,id=m$vm_nodes,size=$1"
        -numa "node,nodeid=$vm_nodes,memdev=m$vm_nodes${2:+,$2}")
    vm_nodes=$((vm_nodes + 1))
}
vm_distance() { vm_hardware+=(-numa "dist,src=$1,dst=$2,val=$3"); }
# speed CPU-NODE MEMORY-NODE NANOSECONDS BANDWIDTH, as the firmware's HMAT tells it
vm_speed() {
    local common="hmat-lb,initiator=$1,target=$2,hierarchy=memory"
    vm_hardware+=(-numa "$common,data-type=access-latency,latency=$3"
        -numa "$common,data-type=access-bandwidth,bandwidth=$4")
}

vm_shape() {
    vm_hardware=() vm_board=q35 vm_cpus=2
    case $vm_name in
        two-nodes)
            vm_memory=2G
            vm_node 1G cpus=0; vm_node 1G cpus=1
            vm_distance 0 1 21 ;;
        four-nodes)
            vm_memory=2G vm_cpus=4
            for i in 0 1 2 3; do vm_node 512M cpus=$i; done
            vm_distance 0 1 16; vm_distance 0 2 28; vm_distance 0 3 22
            vm_distance 1 2 22; vm_distance 1 3 28; vm_distance 2 3 16 ;;
        four-large-nodes) # for a whole system
            vm_memory=4G vm_cpus=4
            for i in 0 1 2 3; do vm_node 1G cpus=$i; done
            vm_distance 0 1 16; vm_distance 0 2 28; vm_distance 0 3 22
            vm_distance 1 2 22; vm_distance 1 3 28; vm_distance 2 3 16 ;;
        tiers) # two nodes with CPUs, a fast and a large slow one without
            vm_memory=3G vm_board=q35,hmat=on
            vm_node 1G cpus=0; vm_node 1G cpus=1; vm_node 256M initiator=0; vm_node 768M initiator=1
            vm_distance 0 1 21; vm_distance 0 2 15; vm_distance 0 3 40
            vm_distance 1 2 30; vm_distance 1 3 30; vm_distance 2 3 50
            vm_speed 0 0 80 100G; vm_speed 0 1 140 50G; vm_speed 0 2 110 400G; vm_speed 0 3 300 20G
            vm_speed 1 0 140 50G; vm_speed 1 1 80 100G; vm_speed 1 2 170 200G; vm_speed 1 3 250 25G ;;
        big) # room for 1 GiB pages on both nodes, and for very many buffers
            vm_memory=8G
            vm_node 4G cpus=0; vm_node 4G cpus=1
            vm_distance 0 1 21 ;;
        *) echo "vm_machine: no machine is called $vm_name" >&2; exit 1 ;;
    esac
}

# ---- its files --------------------------------------------------------------------------------------------------

# install FILE AS: with the shared libraries that it needs, each where it looks for them
vm_install() {
    install -D "$1" "$vm_root$2"
    LD_LIBRARY_PATH=$builddir/client/.libs ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        case $library in
            "$builddir"/*) install -D "$library" "$vm_root/build${library#"$builddir"}" ;;
            *) [ -e "$vm_root$library" ] || install -D "$library" "$vm_root$library" ;;
        esac
    done
}

# a file of the build tree; of a libtool program that is a script in it, the program itself
vm_install_built() {
    local file=$builddir/$1
    if [ -e "$builddir/${1%/*}/.libs/${1##*/}" ]; then file=$builddir/${1%/*}/.libs/${1##*/}; fi
    [ -e "$file" ] || { echo "$1 is not built" >&2; exit 1; }
    vm_install "$file" "/build/$1"
}

vm_make_root() {
    local tool library program i
    vm_root=$vm_dir/root
    mkdir -p "$vm_root"/{bin,sbin,dev,proc,sys,tmp,run,etc,root,build,source}
    install /bin/busybox "$vm_root/bin/busybox"
    for tool in $(/bin/busybox --list | grep -vx busybox); do ln -sf busybox "$vm_root/bin/$tool"; done
    # opened by the C library itself where a thread is cancelled, and by UMF's scalable pool, so no program names them
    for tool in libgcc_s.so.1 libtbbmalloc.so.2; do
        library=$(ldconfig -p | awk -v name=$tool '$1 == name { print $NF; exit }')
        [ -z "$library" ] || install -D "$library" "$vm_root$library"
    done
    printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$vm_root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$vm_root/etc/group"
    install "$srcdir/tests/vm/init" "$vm_root/init"
    [ ! -s "${kernel%/*}/fuse-$vm_kernel.ko" ] || install "${kernel%/*}/fuse-$vm_kernel.ko" "$vm_root/fuse.ko"

    printf '%s\n' 'export srcdir=/source builddir=/build LD_LIBRARY_PATH=/build/client/.libs MEMORYD_AUTOSTART=0' \
        "export LC_ALL=C.UTF-8 CMOCKA_MESSAGE_OUTPUT=stdout MEMORYD_VM=$vm_name" \
        "export TEST_TIMEOUT=$vm_program_seconds" "${vm_settings[@]}" >"$vm_root/settings"
    for i in "${!vm_programs[@]}"; do
        echo "$vm_program_seconds ${vm_programs[$i]}"
        program=${vm_programs[$i]%% *}
        case $program in
            *.sh) install -D "$srcdir/$program" "$vm_root/source/$program"; vm_install "$(command -v bash)" /bin/bash ;;
            *) vm_install_built "$program" ;;
        esac
    done >"$vm_root/run-list"
    for program in "${vm_files[@]}"; do
        case $program in
            *.sh|*.conf) install -D "$srcdir/$program" "$vm_root/source/$program" ;;
            *) vm_install_built "$program" ;;
        esac
    done
}

# ---- running it -------------------------------------------------------------------------------------------------

# program N's output, as it came over the serial line
vm_output() {
    sed -n "/^VM-BEGIN $1\$/,/^VM-END $1 /p" "$vm_dir/output" | sed '1d;$d'
}

# whether a machine can be made at all; and its kernel
vm_check() {
    local i

    [ "$(uname -m)" = x86_64 ] || vm_cannot "it is described for x86-64 only, this is $(uname -m)"
    case ${SANITIZERS-} in *thread*) vm_cannot "this build has the thread sanitizer, which emulation starves" ;; esac
    for i in qemu-system-x86_64 cpio flock; do
        command -v $i >/dev/null || vm_cannot "$i is missing: install qemu-system-x86 busybox-static cpio"
    done
    /bin/busybox true 2>/dev/null && ! ldd /bin/busybox >/dev/null 2>&1 ||
        vm_cannot "/bin/busybox is missing or not static: install busybox-static"
    kernel=$(bash "$srcdir/tests/vm/kernel.sh" $vm_kernel 2>"$vm_dir/reason") || {
        cat "$vm_dir/reason"
        exit 77
    }
}

# vm_emulate WORDS [OPTIONS]: the machine, until it is off; WORDS are for the kernel's command line
vm_emulate() {
    local words=$1
    shift
    (cd "$vm_root" && find . | cpio --quiet -o -H newc -R 0:0) >"$vm_dir/initrd"
    # One emulating thread and no cmpxchg16b: qemu 7.2's emulation of the latter corrupts flags, and the guest
    # panics at random. KVM is not tried: where tests run it is often there and does not work.
    timeout "$vm_seconds" qemu-system-x86_64 -accel tcg,thread=single -cpu max,-cx16 -machine $vm_board \
        -m $vm_memory -smp $vm_cpus "${vm_hardware[@]}" -nodefaults -no-reboot -display none \
        -kernel "$kernel" -initrd "$vm_dir/initrd" \
        -append "console=ttyS0 panic=-1 loglevel=4 mitigations=off random.trust_cpu=on $words" \
        -serial "file:$vm_dir/console" -serial "file:$vm_dir/output" "$@" </dev/null >"$vm_dir/qemu" 2>&1 || true
    touch "$vm_dir/output" "$vm_dir/console"
}

vm_go() {
    local i n status excuse bad failed=0

    vm_check
    vm_shape
    vm_make_root
    vm_emulate ""
    for i in "${!vm_programs[@]}"; do
        n=$((i + 1))
        excuse=${vm_excuses[$i]}
        echo "==== ${vm_programs[$i]}"
        vm_output $n
        status=$(sed -n "s/^VM-END $n //p" "$vm_dir/output")
        case $status in
            0) echo "PASS: $vm_label: ${vm_programs[$i]}" ;;
            77)
                bad=$(vm_output $n | grep '^SKIP: ' | grep -vE "${excuse:-^\$}" || true)
                if [ -n "$excuse" ] && [ -z "$bad" ]; then
                    echo "PASS: $vm_label: ${vm_programs[$i]}, without what this kernel lacks"
                else
                    echo "FAIL: $vm_label: ${vm_programs[$i]}: skipped where nothing may be skipped"
                    failed=1
                fi ;;
            '') echo "FAIL: $vm_label: ${vm_programs[$i]}: did not end" ; failed=1 ;;
            *) echo "FAIL: $vm_label: ${vm_programs[$i]}: exit status $status"; failed=1 ;;
        esac
    done
    if ! grep -q '^VM-DONE' "$vm_dir/output"; then
        echo "FAIL: $vm_label: the machine did not come to its end; its console:"
        cat "$vm_dir/qemu" "$vm_dir/console"
        failed=1
    fi
    exit $failed
}

# ---- a whole system ---------------------------------------------------------------------------------------------

vm_boots() {
    # its own EXIT trap; the kernel is looked for before much is installed
    (vm_check) || exit
    MEMORYD_MACHINE=$vm_name bash "$srcdir/$1"
}

# vm_boot ROOT IO UNIT: boots the systemd of ROOT, with IO as /io, into UNIT, which turns the machine off in the end. The
# machine writes into both folders.
vm_boot() {
    local daemon tool server folder cache servers=() options=() waited

    vm_check
    for daemon in /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd; do [ ! -x $daemon ] || break; done
    [ -x $daemon ] || vm_cannot "virtiofsd is missing"
    vm_backend=memory-backend-memfd,share=on # virtiofsd reads and writes it
    vm_shape
    vm_root=$vm_dir/root
    mkdir -p "$vm_root"/{bin,dev,proc,new}
    install /bin/busybox "$vm_root/bin/busybox"
    for tool in sh mount umount mkdir switch_root poweroff echo; do ln -s busybox "$vm_root/bin/$tool"; done
    install "$srcdir/tests/vm/init-systemd" "$vm_root/init"
    for server in root io; do
        folder=$1
        [ $server = root ] || folder=$2
        # nobody else writes / meanwhile
        cache=auto
        [ $server = io ] || cache=always
        $daemon --socket-path="$vm_dir/$server.sock" -o "source=$folder" -o cache=$cache -o sandbox=chroot \
            >"$vm_dir/$server.log" 2>&1 &
        servers+=($!)
        for ((waited = 0; waited < 600; waited++)); do
            [ ! -S "$vm_dir/$server.sock" ] || break
            kill -0 $! 2>/dev/null || vm_cannot "virtiofsd: $(tail -n 1 "$vm_dir/$server.log")"
            sleep 0.05
        done
        options+=(-chardev "socket,id=$server,path=$vm_dir/$server.sock"
            -device "vhost-user-fs-pci,chardev=$server,tag=$server")
    done
    vm_emulate "systemd.unified_cgroup_hierarchy=1 systemd.show_status=no memoryd.unit=$3" "${options[@]}"
    # they end with the machine, unless it was never begun
    kill "${servers[@]}" 2>/dev/null || true
    wait "${servers[@]}" 2>/dev/null || true
}
