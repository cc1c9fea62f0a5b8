/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel.h. */
#include "memctl/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pidfd.h"
#include "base/textfile.h"
#include "memctl/measure.h"

/* The C library's headers may not have these yet. */
#define KERNEL_PIDFS_MAGIC    0x50494446
#define KERNEL_SO_PASSRIGHTS  83
#define KERNEL_POPULATE_WRITE 23

/* What a child exits with, which no failure does. */
#define EXIT_TRIED 71

#define PREFAULT_BYTES ((size_t)16 << 20)

/* ---- prefaulting ------------------------------------------------------------------------------------------------- */

/* Shared memory, allocated and not entered into the page table. */
static void *kernel_map_committed(void)
{
    _cleanup_close_ int fd = memfd_create("memctl-doctor", MFD_CLOEXEC);
    void *map;

    if (fd < 0 || fallocate(fd, 0, 0, (off_t)PREFAULT_BYTES) < 0)
        return MAP_FAILED;
    map = mmap(NULL, PREFAULT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        (void)madvise(map, PREFAULT_BYTES, MADV_NOHUGEPAGE);
    return map;
}

static bool kernel_enter_in_bulk(char *map)
{
    return !madvise(map, PREFAULT_BYTES, KERNEL_POPULATE_WRITE);
}

static bool kernel_enter_one_by_one(char *map)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t at = 0; at < PREFAULT_BYTES; at += page)
        ((volatile char *)map)[at] = 0;
    return true;
}

static double kernel_time_entering(bool (*enter)(char *map))
{
    void *map = kernel_map_committed();
    double begin, end = -1;

    if (map == MAP_FAILED)
        return -1;
    begin = measure_now();
    if (enter(map))
        end = measure_now();
    (void)munmap(map, PREFAULT_BYTES);
    return end < 0 ? -1 : end - begin;
}

static double kernel_time_bulk(void *none)
{
    (void)none;
    return kernel_time_entering(kernel_enter_in_bulk);
}

static double kernel_time_one_by_one(void *none)
{
    (void)none;
    return kernel_time_entering(kernel_enter_one_by_one);
}

static void kernel_check_prefaulting(struct findings *findings)
{
    struct measured_ways ways;
    bool ok = measure_ways(kernel_time_bulk, kernel_time_one_by_one, NULL, &ways);
    double ratio = ok ? ways.other / ways.good : 0;

    if (ok)
        findings_report_mend(findings, "prefaulting", true, (struct remedy){.ratio = ratio},
                             "base pages of a new buffer are entered in bulk when it is mapped; touching one after the "
                             "other takes %.1f times as long",
                             ratio);
    else
        findings_report(findings, "prefaulting", false,
                        "base pages of a new buffer are entered at their first touch, one after the other: Linux 5.14 "
                        "enters them in bulk");
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static double kernel_time_pidfd(void *has_inodes)
{
    double begin = measure_now();
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    struct statfs fs;
    struct stat st;

    if (fd < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
        return -1;
    *(bool *)has_inodes = (unsigned long)fs.f_type == KERNEL_PIDFS_MAGIC;
    return measure_now() - begin;
}

static double kernel_time_proc(void *none)
{
    double begin = measure_now();
    char text[1024];

    (void)none;
    return textfile_line(text, sizeof(text), "/proc/%d/stat", (int)getpid()) ? measure_now() - begin : -1;
}

/* How the broker knows a process again whose number another one may have by then. */
static void kernel_check_identity(struct findings *findings)
{
    bool has_inodes = false;
    struct measured_ways ways;
    double ratio = measure_ways(kernel_time_pidfd, kernel_time_proc, &has_inodes, &ways) ? ways.other / ways.good : 0;
    char cost[80] = "";

    if (ratio > 0)
        (void)snprintf(cost, sizeof(cost), ", which takes %.1f times as long for each connection", ratio);
    findings_report_mend(findings, "identity of processes", has_inodes, (struct remedy){.ratio = ratio},
                         has_inodes
                             ? "the broker knows a process by its pidfd; on older kernels it reads /proc%s"
                             : "the broker knows a process by what it reads in /proc%s: Linux 6.9 gives each its "
                               "own pidfd",
                         cost);
}

/* Asks about a child that has ended in this moment. */
static bool kernel_tells_ends(void)
{
    struct pidfd_end end = {.mask = PIDFD_END_STATUS};
    _cleanup_close_ int fd = -1;
    pid_t child = fork();
    bool tells;

    if (!child)
        _exit(EXIT_TRIED);
    if (child < 0)
        return false;
    fd = (int)syscall(SYS_pidfd_open, child, 0);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    tells = fd >= 0 && ioctl(fd, PIDFD_END_REQUEST, &end) == 0 && end.mask & PIDFD_END_STATUS;
    return tells && WIFEXITED(end.status) && WEXITSTATUS(end.status) == EXIT_TRIED;
}

static void kernel_check_ends(struct findings *findings)
{
    bool ok = kernel_tells_ends();

    findings_report(findings, "ends of processes", ok,
                    ok ? "memctl why and events say by which signal a program died, or with which status it exited"
                       : "memctl why and events cannot say how a program died, which only its parent knows: Linux 6.15 "
                         "tells");
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

/* A file system opts into leases from Linux 7.0 on, and hugetlbfs does not. */
static void kernel_check_leases(struct findings *findings)
{
    _cleanup_close_ int fd = memfd_create("memctl-doctor", MFD_CLOEXEC | MFD_HUGETLB);
    bool ok;

    if (fd < 0)
        return;
    ok = fcntl(fd, F_SETLEASE, F_WRLCK) == 0 || errno != EINVAL;
    findings_report(
        findings, "leases on hugetlb", ok,
        ok ? "the kernel says whether a process still has a buffer of huge pages that nothing else keeps, so that it "
             "can be imported again"
           : "the kernel does not say whether a process still has a buffer of huge pages that nothing else keeps, so "
             "that it cannot be imported again; this is so from Linux 7.0 on");
}

/* 0, or a negative errno of the kernel that refuses. */
static int kernel_send_descriptor(int socket, int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool kernel_refuses_descriptors(void)
{
    int sockets[2], off = 0;
    bool refuses;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return false;
    refuses = !setsockopt(sockets[0], SOL_SOCKET, KERNEL_SO_PASSRIGHTS, &off, sizeof(off)) &&
              kernel_send_descriptor(sockets[1], sockets[1]) == -EPERM;
    (void)close(sockets[0]);
    (void)close(sockets[1]);
    return refuses;
}

static void kernel_check_passing(struct findings *findings)
{
    bool ok = kernel_refuses_descriptors();

    findings_report(findings, "sent descriptors", ok,
                    ok ? "the kernel keeps programs from sending the broker a descriptor that makes it hang"
                       : "a program can send the broker a descriptor that makes it hang, and everybody waits until the "
                         "keeper has replaced it: Linux 6.16 refuses to send it");
}

void kernel_check(struct findings *findings)
{
    kernel_check_prefaulting(findings);
    kernel_check_identity(findings);
    kernel_check_ends(findings);
    kernel_check_passing(findings);
    kernel_check_leases(findings);
}
