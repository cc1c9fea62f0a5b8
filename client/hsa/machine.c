/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel says about the processors of a node: their number, model, speed and caches.
 *
 * The values are for people and for programs that tune themselves, so nothing here fails: what is unknown is 0 or a
 * generic word. All processors of a node are taken to be alike; the first online one stands for all.
 *
 * Sysfs has the list of a node's processors, and the caches and highest frequency of a processor. /proc/cpuinfo has a
 * paragraph for each processor, which begins with its number and names its model, and its frequency on machines without
 * frequency scaling. On ARM it has no model, only the numbers of implementer and part. In containers either file may be
 * missing; then the C library is asked.
 */
#include "hsa/topology.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/textfile.h"

#define LINE_USUAL 64

/* "48K", "1M" or plain bytes. 0 if it is no size, or too large for a value of HSA. */
static uint32_t machine_parse_size(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

    return n <= UINT32_MAX >> shift ? (uint32_t)(n << shift) : 0;
}

/* ---- which processors -------------------------------------------------------------------------------------------- */

/* The number of processors in a list, and the first of them. */
static uint32_t machine_parse_list(const char *text, unsigned *first)
{
    unsigned from, to;
    uint32_t n = 0;

    while (textfile_range(&text, &from, &to)) {
        if (!n)
            *first = from;
        n += to - from + 1;
    }
    return n;
}

static uint32_t machine_count_cores(uint32_t physical, bool has_cpus, const char *root, unsigned *first)
{
    char list[4096];
    long n;

    if (textfile_line(list, sizeof(list), "%s/sys/devices/system/node/node%u/cpulist", root, physical))
        return machine_parse_list(list, first);
    n = has_cpus ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    return n > 0 ? (uint32_t)n : 0;
}

/* ---- what they are ----------------------------------------------------------------------------------------------- */

struct description {
    char model[64];
    char implementer[16];
    char part[16];
    char mhz[16];
};

/* Takes the value of a line "key : value", unless one was taken already. */
static void machine_take_value(const char *line, const char *key, char *value, size_t size)
{
    const char *colon = strchr(line, ':');

    if (!colon || *value || strncmp(line, key, strlen(key)) != 0)
        return;
    line += strlen(key);
    if (line + strspn(line, " \t") != colon)
        return;
    (void)snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
    value[strcspn(value, "\n")] = '\0';
}

/* Reads the paragraph of one processor. */
static struct description machine_read_cpuinfo(const char *root, unsigned processor)
{
    struct description d = {.model = ""};
    _cleanup_fclose_ FILE *file = NULL;
    _cleanup_free_ char *line = NULL;
    char path[PATH_MAX];
    size_t size = 0;
    bool here = false;

    (void)snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
    file = fopen(path, "re");
    while (file && getline(&line, &size, file) > 0) {
        char number[16] = "";

        machine_take_value(line, "processor", number, sizeof(number));
        if (*number && here)
            break;
        here = here || (*number && strtoul(number, NULL, 10) == processor);
        if (!here)
            continue;
        machine_take_value(line, "model name", d.model, sizeof(d.model));
        machine_take_value(line, "CPU implementer", d.implementer, sizeof(d.implementer));
        machine_take_value(line, "CPU part", d.part, sizeof(d.part));
        machine_take_value(line, "cpu MHz", d.mhz, sizeof(d.mhz));
    }
    return d;
}

static void machine_set_name(struct agent *agent, const struct description *d)
{
    struct utsname machine;

    if (*d->model)
        (void)snprintf(agent->name, sizeof(agent->name), "%s", d->model);
    else if (*d->implementer && *d->part)
        (void)snprintf(agent->name, sizeof(agent->name), "ARM %s:%s", d->implementer, d->part);
    else if (!uname(&machine))
        (void)snprintf(agent->name, sizeof(agent->name), "%.60s", machine.machine);
}

static void machine_set_frequency(struct agent *agent, unsigned processor, const struct description *d,
                                  const char *root)
{
    char khz[32];

    if (textfile_line(khz, sizeof(khz), "%s/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", root, processor))
        agent->max_mhz = (uint32_t)(strtoul(khz, NULL, 10) / 1000);
    if (!agent->max_mhz)
        agent->max_mhz = (uint32_t)strtoul(d->mhz, NULL, 10);
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

static void machine_add_cache(struct agent *agent, unsigned level, uint32_t size, const char *kind)
{
    struct cache *cache = &agent->caches[agent->n_caches];

    if (!level || level > 4 || agent->n_caches == TOPOLOGY_CACHES_MAX)
        return;
    cache->level = (uint8_t)level;
    cache->size = size;
    cache->name_length = (uint32_t)snprintf(cache->name, sizeof(cache->name), "L%u%s", level, kind);
    agent->n_caches++;
    if (!agent->cache_bytes[level - 1])
        agent->cache_bytes[level - 1] = size;
}

/* Reads the caches that hold data. True if sysfs knows any. */
static bool machine_read_caches(struct agent *agent, unsigned processor, const char *root)
{
    for (unsigned i = 0;; i++) {
        char dir[200], level[16], type[32], size[32] = "", line[16];

        if (snprintf(dir, sizeof(dir), "%s/sys/devices/system/cpu/cpu%u/cache/index%u", root, processor, i) >=
                (int)sizeof(dir) ||
            !textfile_line(level, sizeof(level), "%s/level", dir) || !textfile_line(type, sizeof(type), "%s/type", dir))
            return agent->n_caches;
        if (!agent->cacheline && textfile_line(line, sizeof(line), "%s/coherency_line_size", dir))
            agent->cacheline = machine_parse_size(line);
        (void)textfile_line(size, sizeof(size), "%s/size", dir);
        if (!strcmp(type, "Data") || !strcmp(type, "Unified"))
            machine_add_cache(agent, (unsigned)strtoul(level, NULL, 10), machine_parse_size(size),
                              !strcmp(type, "Data") ? " data" : "");
    }
}

static void machine_query_caches(struct agent *agent)
{
    static const int sizes[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                                _SC_LEVEL4_CACHE_SIZE};

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        long size = sysconf(sizes[i]);

        if (size > 0 && size <= UINT32_MAX)
            machine_add_cache(agent, i + 1, (uint32_t)size, i ? "" : " data");
    }
}

static void machine_set_cacheline(struct agent *agent)
{
    long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

    if (!agent->cacheline && line > 0 && line <= UINT32_MAX)
        agent->cacheline = (uint32_t)line;
    if (!agent->cacheline)
        agent->cacheline = LINE_USUAL;
}

void machine_describe(struct agent *agent, uint32_t physical, bool has_cpus, const char *root)
{
    struct description d;
    unsigned processor = 0; /* nodes without processors show the machine's first */

    agent->cores = machine_count_cores(physical, has_cpus, root, &processor);
    d = machine_read_cpuinfo(root, processor);
    machine_set_name(agent, &d);
    if (agent->cores) {
        machine_set_frequency(agent, processor, &d, root);
        if (!machine_read_caches(agent, processor, root))
            machine_query_caches(agent);
    }
    machine_set_cacheline(agent);
}

/* ---- identity ---------------------------------------------------------------------------------------------------- */

static uint64_t machine_hash_mix(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

/* A hash of the node and of the installation's id, which must not be disclosed itself. */
void machine_identify(struct agent *agent, const char *root)
{
    char id[sizeof(((struct utsname *)NULL)->nodename)] = "";
    struct utsname machine;
    uint64_t hash;

    if (!textfile_line(id, sizeof(id), "%s/etc/machine-id", root) &&
        !textfile_line(id, sizeof(id), "%s/var/lib/dbus/machine-id", root) && !uname(&machine))
        memcpy(id, machine.nodename, sizeof(id));
    hash = machine_hash_mix(UINT64_C(0xcbf29ce484222325), id, strlen(id));
    hash = machine_hash_mix(hash, &agent->node, sizeof(agent->node));
    (void)snprintf(agent->uuid, sizeof(agent->uuid), "CPU-%016" PRIx64, hash);
}
