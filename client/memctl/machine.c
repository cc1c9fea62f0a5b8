/* SPDX-License-Identifier: Apache-2.0 */
/* See machine.h. Whatever cannot be read is no obstacle: then nothing is said about it. */
#include "memctl/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/textfile.h"
#include "memctl/measure.h"
#include "memctl/text.h"

#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define EXAMPLE       DOCDIR "/memoryd.sysctl.conf"
#define EXAMPLE_BOOT  DOCDIR "/memoryd.tmpfiles.conf"
/* Descriptors: one for each buffer. Programs need as many as they have exported. */
#define DESCRIPTORS_MIN         65536
#define PROGRAM_DESCRIPTORS_MIN 4096
/* The C library's headers may not have it yet. */
#define MACHINE_PIDFS_MAGIC 0x50494446

struct machine {
    struct findings *findings;
    struct memclient_context *ctx;
    struct memclient_broker_info broker;
    uint64_t capacity; /* of all nodes */
    unsigned nodes;
    bool has_thp, has_hugetlb; /* pools of such pages */
};

static int machine_add_node(const struct memclient_node_info *node, void *data)
{
    struct machine *machine = data;

    machine->capacity += node->capacity;
    machine->nodes++;
    return 0;
}

static int machine_add_pool(const struct memclient_pool_info *pool, void *data)
{
    struct machine *machine = data;

    machine->has_thp |= pool->pages == MEMCLIENT_PAGES_THP;
    machine->has_hugetlb |= pool->pages == MEMCLIENT_PAGES_HUGETLB;
    return 0;
}

/* False if there is no number. */
static bool machine_number(const char *path, uint64_t *ret)
{
    char text[64], *end;

    if (!textfile_line(text, sizeof(text), "%s", path))
        return false;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return !errno && end != text && !*end;
}

/* ---- the broker -------------------------------------------------------------------------------------------------- */

static void machine_check_versions(struct machine *machine)
{
    bool same = !strcmp(machine->broker.version, PACKAGE_VERSION);

    findings_report_mend(machine->findings, "versions", same, (struct remedy){.mend = same ? NULL : "memctl upgrade"},
                         same ? "broker and memctl are %s" : "the broker is %s, memctl is %s", machine->broker.version,
                         PACKAGE_VERSION);
}

static void machine_check_descriptors(struct machine *machine)
{
    const struct memclient_broker_info *broker = &machine->broker;
    bool ok = broker->fds_limit >= DESCRIPTORS_MIN && broker->fds < broker->fds_limit / 10 * 9;

    findings_report_mend(machine->findings, "broker's descriptors", ok,
                         (struct remedy){.mend = ok ? NULL : "systemctl edit memoryd   # [Service] LimitNOFILE=524288"},
                         "%" PRIu64 " of %" PRIu64
                         " are in use; each buffer takes one, and without one an allocation is refused",
                         broker->fds, broker->fds_limit);
}

/* The broker watches each buffer that somebody may have open, until nobody has it any more. */
static void machine_check_watches(struct machine *machine)
{
    uint64_t watches;
    bool ok;

    if (!machine_number("/proc/sys/fs/inotify/max_user_watches", &watches))
        return;
    ok = watches >= machine->broker.fds_limit;
    findings_report_mend(
        machine->findings, "inotify watches", ok,
        (struct remedy){.mend = ok ? NULL : "sysctl -w fs.inotify.max_user_watches=1048576   # for good: " EXAMPLE},
        "%" PRIu64 " for each user; the broker may have %" PRIu64
        " buffers, and notices by them when those are let go%s",
        watches, machine->broker.fds_limit, ok ? "" : ", later without one");
}

/* The least of memory.max (and memory.high) of the group and those above it; UINT64_MAX: none has a limit. */
static uint64_t machine_group_limit(char *group)
{
    static const char *const files[] = {"memory.max", "memory.high"};
    uint64_t least = UINT64_MAX, limit;
    char path[PATH_MAX];

    for (char *slash = group + strlen(group); slash; slash = strrchr(group, '/')) {
        *slash = '\0';
        for (size_t i = 0; i < 2; i++) {
            (void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, files[i]);
            if (machine_number(path, &limit) && limit < least)
                least = limit;
        }
    }
    return least;
}

static void machine_check_group(struct machine *machine)
{
    char group[2048], limit_text[32], capacity_text[32], mend[PATH_MAX];
    uint64_t limit;
    bool ok;

    if (!textfile_line(group, sizeof(group), "/proc/%d/cgroup", (int)machine->broker.broker_pid) ||
        strncmp(group, "0::/", 4) != 0)
        return;
    (void)snprintf(mend, sizeof(mend), "systemctl set-property memoryd MemoryMax=infinity MemoryHigh=infinity");
    limit = machine_group_limit(group + 3);
    ok = limit >= machine->capacity;
    format_bytes(limit, limit_text, sizeof(limit_text));
    format_bytes(machine->capacity, capacity_text, sizeof(capacity_text));
    findings_report_mend(machine->findings, "broker's memory", ok, (struct remedy){.mend = ok ? NULL : mend},
                         "its control group may have %s, its pools %s%s", limit == UINT64_MAX ? "all" : limit_text,
                         capacity_text, ok ? "" : ": beyond that the kernel kills");
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void machine_check_own_descriptors(struct machine *machine)
{
    struct rlimit limit;
    bool ok;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    ok = limit.rlim_max >= PROGRAM_DESCRIPTORS_MIN;
    findings_report_mend(machine->findings, "programs' descriptors", ok,
                         (struct remedy){.mend = ok ? NULL : "ulimit -n 65536   # for services: LimitNOFILE=65536"},
                         "%" PRIu64 " at first, %" PRIu64 " at most; handles that are exported take one each",
                         (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_max);
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

/* "2.1 times as long until written first, 1.3 times until read", with these pages; "" if it could not be measured. */
static double machine_compare(const struct measured *base, enum measured_pages pages, char *text, size_t size)
{
    struct measured huge;

    if (!measure_pages(pages, &huge) || huge.touch <= 0 || huge.read <= 0) {
        *text = '\0';
        return 0;
    }
    (void)snprintf(text, size, "; base pages take %.1f times as long to be written first, %.1f times to be read%s",
                   base->touch / huge.touch, base->read / huge.read,
                   pages == MEASURE_PRIVATE ? " (measured with private memory)" : "");
    return base->touch / huge.touch;
}

/* The word in brackets of a line like "always within_size [advise] never". */
static bool machine_shmem_enabled(char *text, size_t size)
{
    char *word, *end;

    if (!textfile_line(text, size, "%s", SHMEM_ENABLED) || !(word = strchr(text, '[')) || !(end = strchr(word, ']')))
        return false;
    *end = '\0';
    memmove(text, word + 1, (size_t)(end - word));
    return true;
}

static void machine_check_thp(struct machine *machine, const struct measured *base)
{
    char word[128], cost[160];
    double ratio;
    bool ok;

    if (!machine_shmem_enabled(word, sizeof(word))) {
        findings_report(machine->findings, "huge pages", false, "the kernel was built without transparent ones");
        return;
    }
    ok = strcmp(word, "never") != 0 && strcmp(word, "deny") != 0;
    ratio = machine_compare(base, ok ? MEASURE_THP : MEASURE_PRIVATE, cost, sizeof(cost));
    findings_report_mend(
        machine->findings, "huge pages", ok,
        (struct remedy){ratio, ok ? NULL : "echo advise >" SHMEM_ENABLED "   # for good: " EXAMPLE_BOOT},
        "transparent ones of shared memory: %s%s%s", word,
        ok && machine->ctx && !machine->has_thp ? ", but no pool has them (memctl upgrade)" : "", cost);
}

static void machine_check_hugetlb(struct machine *machine, const struct measured *base)
{
    uint64_t reserved = 0, more = 0;
    char cost[160];
    double ratio;
    bool ok;

    if (!machine_number("/proc/sys/vm/nr_hugepages", &reserved) ||
        !machine_number("/proc/sys/vm/nr_overcommit_hugepages", &more))
        return;
    ok = reserved || more;
    ratio = machine_compare(base, ok ? MEASURE_HUGETLB : MEASURE_PRIVATE, cost, sizeof(cost));
    findings_report_mend(
        machine->findings, "hugetlb", ok,
        (struct remedy){ratio, ok ? NULL : "sysctl -w vm.nr_overcommit_hugepages=1024   # for good: " EXAMPLE},
        "%" PRIu64 " pages are reserved, %" PRIu64 " more may be%s%s", reserved, more,
        ok && machine->ctx && !machine->has_hugetlb ? ", but no pool has them (memctl upgrade)" : "", cost);
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static void machine_check_nodes(struct machine *machine)
{
    uint64_t balances = 0;
    bool ok;

    (void)machine_number("/proc/sys/kernel/numa_balancing", &balances);
    ok = machine->nodes < 2 || !balances;
    findings_report_mend(machine->findings, "nodes", ok,
                         (struct remedy){.mend = ok ? NULL : "sysctl -w kernel.numa_balancing=0"}, "%u%s%s",
                         machine->nodes, machine->broker.simulated ? ", simulated" : "",
                         ok ? "" : "; the kernel moves pages between them, and stops programs for that");
}

static void machine_check_pidfds(struct machine *machine)
{
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    struct statfs fs;
    bool ok = fd >= 0 && !fstatfs(fd, &fs) && (unsigned long)fs.f_type == MACHINE_PIDFS_MAGIC;

    findings_report(machine->findings, "processes", ok,
                    ok ? "are known by their pidfds"
                       : "are known by times in /proc, which costs more with each connection: Linux 6.9 is better");
}

/* Is the kernel of this version at least? */
static bool machine_kernel_is(unsigned long major, unsigned long minor)
{
    struct utsname name;
    unsigned long has_major, has_minor;
    char *end;

    if (uname(&name) < 0)
        return false;
    has_major = strtoul(name.release, &end, 10);
    has_minor = *end == '.' ? strtoul(end + 1, &end, 10) : 0;
    return has_major > major || (has_major == major && has_minor >= minor);
}

static void machine_check_ends(struct machine *machine)
{
    bool ok = machine_kernel_is(6, 15);

    findings_report(machine->findings, "ends of processes", ok,
                    ok ? "are known: by which signal, or with which status"
                       : "are known to nobody but their parents, so why and events cannot tell them: Linux 6.15 is "
                         "better");
}

/* A file system opts into leases from Linux 7.0 on, and hugetlbfs does not. */
static void machine_check_leases(struct machine *machine)
{
    _cleanup_close_ int fd = memfd_create("doctor", MFD_CLOEXEC | MFD_HUGETLB);
    bool ok;

    if (fd < 0)
        return;
    ok = fcntl(fd, F_SETLEASE, F_WRLCK) == 0 || errno != EINVAL;
    findings_report(
        machine->findings, "holders of hugetlb", ok,
        ok ? "are known to the kernel, so a buffer that was let go is found by who has a descriptor"
           : "are not known from Linux 7.0 on: a buffer of such pages that nothing keeps cannot be imported "
             "again");
}

/* That it is so can be tried only where sockets are made, so the version has to say it. */
static void machine_check_passing(struct machine *machine)
{
    bool ok = machine_kernel_is(6, 16);

    findings_report(machine->findings, "descriptors of users", ok,
                    ok ? "never reach the broker, since Linux 6.16"
                       : "reach the broker, which is replaced if one of them hangs: Linux 6.16 is better");
}

void machine_check(struct findings *findings, struct memclient_context *ctx)
{
    struct machine machine = {.findings = findings, .ctx = ctx, .broker = MEMCLIENT_BROKER_INFO_INIT};
    struct measured base;

    if (ctx && !memclient_broker_query(ctx, &machine.broker) &&
        !memclient_list_nodes(ctx, machine_add_node, &machine) &&
        !memclient_list_pools(ctx, machine_add_pool, &machine)) {
        machine_check_versions(&machine);
        machine_check_descriptors(&machine);
        machine_check_watches(&machine);
        machine_check_group(&machine);
        machine_check_nodes(&machine);
    }
    machine_check_own_descriptors(&machine);
    if (measure_pages(MEASURE_BASE, &base)) {
        machine_check_thp(&machine, &base);
        machine_check_hugetlb(&machine, &base);
    }
    machine_check_leases(&machine);
    machine_check_pidfds(&machine);
    machine_check_ends(&machine);
    machine_check_passing(&machine);
}
