/* SPDX-License-Identifier: Apache-2.0 */
/* See machine.h. Whatever cannot be read is no obstacle: then nothing is said about it. */
#include "memctl/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/textfile.h"
#include "memctl/devices.h"
#include "memctl/kernel.h"
#include "memctl/measure.h"
#include "memctl/service.h"
#include "memctl/text.h"

#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define EXAMPLE       DOCDIR "/memoryd.sysctl.conf"
#define EXAMPLE_BOOT  DOCDIR "/memoryd.tmpfiles.conf"
/* Descriptors: one for each buffer. Programs need as many as they have exported. */
#define DESCRIPTORS_MIN  65536
#define DESCRIPTORS_LINE 524288u
#define PROGRAM_MIN      4096
#define PROGRAM_LINE     65536u
#define WATCHES_LINE     1048576
/* What is left of a control group's memory when all pools are full, so that the broker refuses nothing: it leaves 64M
 * to others, and its own records need some. memoryd(8) says the same, CONTROL GROUPS. */
#define GROUP_ROOM (UINT64_C(256) << 20)

#define COST_SIZE 224

#define TEXT_OF(number)  TEXT_OF_(number)
#define TEXT_OF_(number) #number

struct machine {
    struct findings *findings;
    struct memclient_context *ctx;
    struct memclient_broker_info broker;
    struct service service;
    char socket[PATH_MAX];
    uint64_t capacity; /* of all nodes */
    unsigned n_nodes;
    bool has_thp, has_hugetlb; /* pools of such pages */
    unsigned here;             /* the node of the processor that memctl runs on, */
    unsigned far;              /* and the one that is farthest from it, by the kernel's number */
    uint32_t far_distance;     /* 0: none was found */
};

static int machine_add_node(const struct memclient_node_info *node, void *data)
{
    struct machine *machine = data;

    machine->capacity += node->capacity;
    machine->n_nodes++;
    return 0;
}

/* Finds the node that is farthest from the one of this processor. Distances are by the broker's numbers. */
static int machine_find_far(const struct memclient_node_info *node, void *data)
{
    struct machine *machine = data;

    if (node->physical == machine->here || node->simulated || machine->here >= node->n_distances)
        return 0;
    if (node->distances[machine->here] > machine->far_distance) {
        machine->far = node->physical;
        machine->far_distance = node->distances[machine->here];
    }
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
    char line[2 * PATH_MAX], word[PATH_MAX];

    (void)snprintf(line, sizeof(line), "memctl --socket %s upgrade",
                   service_quote(machine->socket, word, sizeof(word)));
    findings_report_mend(machine->findings, "versions", same, (struct remedy){.mend = same ? NULL : line},
                         same ? "broker and memctl are %s"
                              : "the broker is %s, memctl is %s: what only the newer one "
                                "has is refused",
                         machine->broker.version, PACKAGE_VERSION);
}

/* A broker whose file has mistakes goes on with what was before them, so that programs do not notice. */
static void machine_check_configuration(struct machine *machine)
{
    const char *file = *machine->broker.config ? machine->broker.config : "no file, the defaults";
    bool good = !machine->broker.config_stale;
    char line[2 * PATH_MAX], word[PATH_MAX];

    (void)snprintf(line, sizeof(line), "memctl --socket %s reload   # names each mistake with file and line",
                   service_quote(machine->socket, word, sizeof(word)));
    findings_report_mend(
        machine->findings, "configuration", good, (struct remedy){.mend = good ? NULL : line},
        good ? "%s" : "the file had mistakes when it was last read; in force is what was before them: %s", file);
}

static void machine_check_descriptors(struct machine *machine)
{
    const struct memclient_broker_info *broker = &machine->broker;
    bool few = broker->fds_limit < DESCRIPTORS_MIN, ok = !few && broker->fds < broker->fds_limit / 10 * 9;
    double ratio = few && broker->fds_limit ? (double)DESCRIPTORS_LINE / (double)broker->fds_limit : 0;
    char line[LINE_SIZE], more[64] = "";

    if (few)
        (void)snprintf(more, sizeof(more), "; %u would be %.1f times as many", DESCRIPTORS_LINE, ratio);
    findings_report_mend(
        machine->findings, "broker's descriptors", ok,
        (struct remedy){ratio, few ? service_mend_descriptors(&machine->service, DESCRIPTORS_LINE, line) : NULL},
        "%" PRIu64 " of %" PRIu64 " are in use; each buffer takes one, and without one an allocation is refused%s",
        broker->fds, broker->fds_limit, more);
}

/* The broker watches each buffer that a program may have open, to notice when none has it any more. */
static void machine_check_watches(struct machine *machine)
{
    uint64_t watches;
    double ratio = 0;
    bool ok;

    if (!machine_number("/proc/sys/fs/inotify/max_user_watches", &watches))
        return;
    ok = watches >= machine->broker.fds_limit;
    if (!ok && watches)
        ratio = (double)machine->broker.fds_limit / (double)watches;
    findings_report_mend(
        machine->findings, "inotify watches", ok,
        (struct remedy){ratio, ok ? NULL
                                  : "sysctl -w fs.inotify.max_user_watches=" TEXT_OF(
                                        WATCHES_LINE) "   # for good: cp " EXAMPLE " /etc/sysctl.d/"},
        "%" PRIu64 " for each user; the broker needs one for each buffer that a program may have open, of which its "
        "descriptors allow %" PRIu64 "%s",
        watches, machine->broker.fds_limit, ok ? "" : ": beyond the watches it refuses them");
}

static void machine_check_group(struct machine *machine)
{
    char limit[32], needed[32], effect[96] = "";
    uint64_t bytes = machine->capacity + GROUP_ROOM;
    struct service_memory memory;
    double ratio = 0;
    bool ok;

    service_read_memory(&machine->service, machine->broker.broker_pid, bytes, &memory);
    ok = memory.limit >= bytes;
    if (!ok && memory.limit)
        ratio = (double)bytes / (double)memory.limit;
    format_bytes(memory.limit, limit, sizeof(limit));
    format_bytes(bytes, needed, sizeof(needed));
    if (!ok)
        (void)snprintf(effect, sizeof(effect), "; beyond that %s",
                       memory.slows ? "the kernel slows it down"
                                    : "it refuses allocations, though its pools have room");
    findings_report_mend(machine->findings, "broker's memory", ok, (struct remedy){ratio, ok ? NULL : memory.line},
                         "its control group may have %s; its pools need %s when they are full, 256M of that for the "
                         "broker itself%s",
                         memory.limit >= UINT64_MAX / 4 ? "all there is" : limit, needed, effect);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void machine_check_own_descriptors(struct machine *machine)
{
    struct rlimit limit;
    char line[256];
    double ratio = 0;
    bool ok;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    ok = limit.rlim_max >= PROGRAM_MIN;
    if (!ok && limit.rlim_max)
        ratio = (double)PROGRAM_LINE / (double)limit.rlim_max;
    (void)snprintf(line, sizeof(line),
                   "prlimit --pid %d --nofile=%u:%u   # for good, from the next login on: echo '* - nofile %u' "
                   ">/etc/security/limits.d/memoryd.conf",
                   (int)getppid(), PROGRAM_LINE, PROGRAM_LINE, PROGRAM_LINE);
    findings_report_mend(machine->findings, "programs' descriptors", ok, (struct remedy){ratio, ok ? NULL : line},
                         "a program that is started here may have %" PRIu64 " open, and raise that to %" PRIu64
                         "; each buffer of which it keeps a descriptor takes one",
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
    (void)snprintf(text, size,
                   "; base pages take %.1f times as long as huge ones%s to be written for the first time, and %.1f "
                   "times to be read here and there",
                   base->touch / huge.touch, pages == MEASURE_PRIVATE ? " of private memory" : "",
                   base->read / huge.read);
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

/* What a pool could have and has not, since the broker looks for such pages when it starts. */
static const char *machine_no_pool(const struct machine *machine, bool has)
{
    return machine->ctx && !has ? "; the broker has no pool of them: it makes one at an upgrade, unless [pools] pages "
                                  "in its configuration says otherwise"
                                : "";
}

static void machine_check_thp(struct machine *machine, const struct measured *base)
{
    char word[128], cost[COST_SIZE];
    double ratio;
    bool ok;

    if (!machine_shmem_enabled(word, sizeof(word))) {
        findings_report(machine->findings, "huge pages", false, "the kernel was built without transparent ones");
        return;
    }
    ok = strcmp(word, "never") != 0 && strcmp(word, "deny") != 0;
    ratio = machine_compare(base, ok ? MEASURE_THP : MEASURE_PRIVATE, cost, sizeof(cost));
    findings_report_mend(machine->findings, "huge pages", ok,
                         (struct remedy){ratio, ok ? NULL
                                                   : "echo advise >" SHMEM_ENABLED "   # for good: cp " EXAMPLE_BOOT
                                                     " /etc/tmpfiles.d/memoryd.conf"},
                         "the kernel gives shared memory %s (shmem_enabled is %s)%s%s",
                         ok ? "transparent ones" : "no transparent ones", word,
                         ok ? machine_no_pool(machine, machine->has_thp) : "", cost);
}

static void machine_check_hugetlb(struct machine *machine, const struct measured *base)
{
    uint64_t reserved = 0, more = 0;
    char cost[COST_SIZE];
    double ratio;
    bool ok;

    if (!machine_number("/proc/sys/vm/nr_hugepages", &reserved) ||
        !machine_number("/proc/sys/vm/nr_overcommit_hugepages", &more))
        return;
    ok = reserved || more;
    ratio = machine_compare(base, ok ? MEASURE_HUGETLB : MEASURE_PRIVATE, cost, sizeof(cost));
    findings_report_mend(
        machine->findings, "hugetlb", ok,
        (struct remedy){
            ratio, ok ? NULL : "sysctl -w vm.nr_overcommit_hugepages=1024   # for good: cp " EXAMPLE " /etc/sysctl.d/"},
        "%" PRIu64 " huge pages are set aside, and %" PRIu64 " more may be taken from free memory%s%s", reserved, more,
        ok ? machine_no_pool(machine, machine->has_hugetlb) : "", cost);
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

/* "; node 1, the farthest from here, takes 1.6 times as long to be read as node 0", or "". */
static double machine_compare_nodes(struct machine *machine, char *text, size_t size)
{
    struct measured_ways ways;

    *text = '\0';
    machine->here = measure_node();
    if (machine->n_nodes < 2 || machine->broker.simulated ||
        memclient_list_nodes(machine->ctx, machine_find_far, machine) < 0 || !machine->far_distance ||
        !measure_nodes(machine->here, machine->far, &ways))
        return 0;
    (void)snprintf(text, size,
                   "; memory of node %u, the farthest from here, takes %.1f times as long to be read as "
                   "that of node %u",
                   machine->far, ways.other / ways.good, machine->here);
    return ways.other / ways.good;
}

static void machine_check_nodes(struct machine *machine)
{
    uint64_t balances = 0;
    char cost[COST_SIZE];
    double ratio = machine_compare_nodes(machine, cost, sizeof(cost));
    bool ok;

    (void)machine_number("/proc/sys/kernel/numa_balancing", &balances);
    ok = machine->n_nodes < 2 || !balances;
    findings_report_mend(machine->findings, "nodes", ok,
                         (struct remedy){ratio, ok ? NULL
                                                   : "sysctl -w kernel.numa_balancing=0   # for good: echo "
                                                     "kernel.numa_balancing=0 >/etc/sysctl.d/memoryd-nodes.conf"},
                         "%u NUMA node%s%s%s%s", machine->n_nodes, plural(machine->n_nodes),
                         machine->broker.simulated ? ", simulated" : "", cost,
                         ok ? ""
                            : "; the kernel makes programs fault to see which node they use, and moves pages "
                              "itself");
}

/* False: the broker does not say what it has. */
static bool machine_ask(struct machine *machine)
{
    struct memclient_context_info info = MEMCLIENT_CONTEXT_INFO_INIT;

    if (!machine->ctx || memclient_context_query(machine->ctx, &info) < 0 ||
        memclient_broker_query(machine->ctx, &machine->broker) < 0 ||
        memclient_list_nodes(machine->ctx, machine_add_node, machine) < 0 ||
        memclient_list_pools(machine->ctx, machine_add_pool, machine) < 0)
        return false;
    (void)snprintf(machine->socket, sizeof(machine->socket), "%s", info.socket);
    service_find(&machine->service, "", machine->socket, machine->broker.broker_pid, machine->broker.keeper_pid,
                 machine->broker.broker_uid);
    return true;
}

void machine_check(struct findings *findings, struct memclient_context *ctx)
{
    struct machine machine = {.findings = findings, .ctx = ctx, .broker = MEMCLIENT_BROKER_INFO_INIT};
    struct measured base;

    if (machine_ask(&machine)) {
        machine_check_versions(&machine);
        machine_check_configuration(&machine);
        machine_check_descriptors(&machine);
        machine_check_watches(&machine);
        machine_check_group(&machine);
        machine_check_nodes(&machine);
    } else {
        machine.ctx = NULL;
    }
    machine_check_own_descriptors(&machine);
    if (measure_pages(MEASURE_BASE, &base)) {
        machine_check_thp(&machine, &base);
        machine_check_hugetlb(&machine, &base);
    }
    devices_check(findings, ctx);
    kernel_check(findings);
}
