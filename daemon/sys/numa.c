/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only file that knows libnuma, which tells nodes, distances and what this process may use. Sizes and huge pages
 * are read from the kernel directly: libnuma has no call for the latter, and prints or even exits on some surprises.
 * Both of its hooks are replaced here.
 */

#include "sys/numa.h"

#include <dirent.h>
#include <errno.h>
#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "log/log.h"
#include "sys/sys.h"
#include "sys/text.h"

#define NODES_DIR "/sys/devices/system/node"
#define HUGE_DIR  "/sys/kernel/mm/hugepages"
#define THP_DIR   "/sys/kernel/mm/transparent_hugepage"

/* Weak in libnuma: these replace the ones that print to stderr. */
__attribute__((visibility("default"))) void numa_error(char *where)
{
    log_warning("libnuma: %s: %s", where, strerror(errno));
}

__attribute__((visibility("default"))) void numa_warn(int number, char *format, ...)
{
    (void)format;
    log_debug("libnuma: warning %d", number);
}

/* Of a node by its physical number, or (< 0) of the machine. */
static uint64_t total_of(int physical)
{
    char text[4096];
    uint64_t kib = 0;

    if (physical < 0 ? text_read(text, sizeof(text), "/proc/meminfo")
                     : text_read(text, sizeof(text), NODES_DIR "/node%d/meminfo", physical))
        (void)text_number_after(text, "MemTotal:", &kib);
    return kib * 1024;
}

static void load_processors(struct topology_node *node)
{
    struct bitmask *cpus = numa_allocate_cpumask();

    node->has_cpus = true;
    if (!cpus)
        return;
    node->has_cpus = numa_node_to_cpus((int)node->physical, cpus) == 0 && numa_bitmask_weight(cpus) > 0;
    for (unsigned cpu = 0; node->has_cpus && cpu < CPU_SETSIZE && cpu < cpus->size; cpu++)
        if (numa_bitmask_isbitset(cpus, cpu))
            CPU_SET(cpu, &node->processors);
    numa_free_cpumask(cpus);
}

static void load_one(struct topology *topology)
{
    topology->n_nodes = 1;
    topology->nodes[0] = (struct topology_node){.total = total_of(-1), .has_cpus = true};
    topology->nodes[0].distances[0] = 10;
}

static void load_nodes(struct topology *topology)
{
    struct bitmask *allowed;
    int max;

    numa_exit_on_error = 0;
    numa_exit_on_warn = 0;
    if (numa_available() < 0) {
        load_one(topology);
        return;
    }
    allowed = numa_get_mems_allowed();
    max = numa_max_node();
    for (int n = 0; n <= max && n < TOPOLOGY_NODES_MAX; n++) {
        struct topology_node *node = &topology->nodes[topology->n_nodes];

        if (!numa_bitmask_isbitset(numa_nodes_ptr, (unsigned)n))
            continue;
        *node = (struct topology_node){.number = (uint32_t)n, .physical = (uint32_t)n};
        if (!allowed || numa_bitmask_isbitset(allowed, (unsigned)n))
            node->total = total_of(n);
        load_processors(node);
        for (int other = 0; other <= max && other < TOPOLOGY_NODES_MAX; other++)
            if (numa_bitmask_isbitset(numa_nodes_ptr, (unsigned)other))
                node->distances[other] = (uint32_t)numa_distance(n, other);
        topology->n_nodes++;
    }
    if (allowed)
        numa_bitmask_free(allowed);
    if (!topology->n_nodes)
        load_one(topology);
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

DEFINE_CLEANUP(DIR *, closedir);

static void load_huge_sizes(struct topology *topology)
{
    _cleanup_(closedirp) DIR *dir = opendir(HUGE_DIR);
    char text[4096];
    uint64_t kib;

    while (dir) {
        const struct dirent *entry = readdir(dir);

        if (!entry || topology->n_huge == TOPOLOGY_HUGE_MAX)
            break;
        if (text_number_after(entry->d_name, "hugepages-", &kib) && is_power_of_two(kib))
            topology->huge_sizes[topology->n_huge++] = kib * 1024;
    }
    qsort(topology->huge_sizes, topology->n_huge, sizeof(uint64_t), compare_sizes);
    if (topology->n_huge && text_read(text, sizeof(text), "/proc/meminfo") &&
        text_number_after(text, "Hugepagesize:", &kib))
        topology->default_huge = kib * 1024;
}

/* In a file like "always [advise] never": is one of these words in the brackets? */
static bool thp_is_chosen(const char *path, const char *const words[], bool otherwise)
{
    char text[256];
    const char *start;

    if (!text_read(text, sizeof(text), "%s", path))
        return otherwise;
    start = strchr(text, '[');
    for (size_t i = 0; start && words[i]; i++)
        if (!strncmp(start + 1, words[i], strlen(words[i])) && start[1 + strlen(words[i])] == ']')
            return true;
    return false;
}

static void load_thp(struct topology *topology)
{
    static const char *const on[] = {"always", "within_size", "advise", "force", NULL};
    static const char *const inherit[] = {"inherit", NULL};
    char path[120];
    uint64_t size;

    if (!text_read_number(&size, THP_DIR "/hpage_pmd_size") || !is_power_of_two(size))
        return;
    (void)snprintf(path, sizeof(path), THP_DIR "/hugepages-%llukB/shmem_enabled", (unsigned long long)size / 1024);
    /* newer kernels have a switch for each size beside the common one */
    if (thp_is_chosen(path, on, false) ||
        (thp_is_chosen(path, inherit, true) && thp_is_chosen(THP_DIR "/shmem_enabled", on, false)))
        topology->thp_size = size;
}

/* Makes n nodes of equal size, all on the first real one that has memory. */
static void topology_simulate(struct topology *topology, uint32_t n)
{
    struct topology_node real = topology->nodes[0];

    for (uint32_t i = 0; i < topology->n_nodes && !real.total; i++)
        real = topology->nodes[i];
    topology->simulated = true;
    topology->n_nodes = n;
    for (uint32_t i = 0; i < n; i++) {
        topology->nodes[i] = (struct topology_node){
            .number = i,
            .physical = real.physical,
            .total = align_down(real.total / n, topology->base_page),
            .has_cpus = real.has_cpus,
        };
        for (uint32_t k = 0; k < n; k++)
            topology->nodes[i].distances[k] = i == k ? 10 : 20;
    }
}

int topology_load(struct topology *ret, uint32_t simulate_nodes)
{
    _cleanup_free_ struct topology *topology = NULL;
    struct topology_node *only = NULL;
    uint32_t with_memory = 0;
    long page = sysconf(_SC_PAGESIZE);

    if (simulate_nodes > TOPOLOGY_NODES_MAX || page <= 0)
        return -EINVAL;
    topology = calloc(1, sizeof(*topology));
    if (!topology)
        return -ENOMEM;
    topology->base_page = (uint64_t)page;
    load_nodes(topology);
    load_huge_sizes(topology);
    load_thp(topology);
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].total) {
            with_memory++;
            only = &topology->nodes[i];
        }
    if (!with_memory)
        return -ENXIO;
    /* a single node's own file leaves out memory that was added while the machine was running */
    if (topology->n_nodes == 1)
        only->total = total_of(-1);
    topology->one_node = with_memory == 1 || simulate_nodes > 1;
    if (simulate_nodes > 1)
        topology_simulate(topology, simulate_nodes);
    *ret = *topology;
    return 0;
}

const struct topology_node *topology_node(const struct topology *topology, uint32_t number)
{
    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].number == number)
            return &topology->nodes[i];
    return NULL;
}

const cpu_set_t *topology_processors(const struct topology *topology, uint32_t physical)
{
    static const cpu_set_t none;

    for (uint32_t i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].physical == physical)
            return &topology->nodes[i].processors;
    return &none;
}

static uint64_t count_huge_pages(int physical, uint64_t size, enum sys_huge what)
{
    uint64_t pages;

    return sys->huge_pages(physical, size, what, &pages) < 0 ? 0 : pages;
}

/* The size of part i of n equal ones; the first ones have a page more where the pages cannot be divided. */
static uint64_t part_of(uint64_t pages, uint32_t i, uint32_t n)
{
    return pages / n + (i < pages % n);
}

/* Pages that the kernel may make belong to no node; each node gets an equal part of them, so that the sum is right. */
static uint64_t made_on_demand(const struct topology *topology, uint32_t number, uint64_t size)
{
    uint32_t before = 0, n = 0;

    for (uint32_t i = 0; i < topology->n_nodes; i++) {
        if (!topology->nodes[i].total)
            continue;
        before += topology->nodes[i].number < number;
        n++;
    }
    return n ? part_of(count_huge_pages(-1, size, SYS_HUGE_OVERCOMMIT), before, n) : 0;
}

uint64_t topology_huge_pages(const struct topology *topology, uint32_t number, uint64_t size)
{
    const struct topology_node *node = topology_node(topology, number);
    int physical = node ? (int)node->physical : -1;
    uint64_t all, surplus;

    if (!node || !node->total)
        return 0;
    if (sys->huge_pages(physical, size, SYS_HUGE_ALL, &all) < 0) {
        if (!topology->one_node)
            return 0;
        physical = -1; /* a kernel without NUMA */
        all = count_huge_pages(physical, size, SYS_HUGE_ALL);
    }
    surplus = count_huge_pages(physical, size, SYS_HUGE_SURPLUS);
    all = all > surplus ? all - surplus : 0;
    if (topology->simulated)
        all = part_of(all, number, topology->n_nodes);
    return all + made_on_demand(topology, number, size);
}
