/* SPDX-License-Identifier: Apache-2.0 */
/* See device.h. */
#include "nbla/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbla/error.h"

#define NODES_MAX 64

struct device {
    unsigned refs;
    unsigned placement; /* enum memclient_placement */
    size_t n_nodes;
    uint32_t nodes[NODES_MAX];
    char pool[MEMCLIENT_POOL_NAME_SIZE]; /* or "" */
};

DEFINE_CLEANUP(struct device *, device_unref);

struct device *device_ref(struct device *device)
{
    __atomic_fetch_add(&device->refs, 1, __ATOMIC_RELAXED);
    return device;
}

void device_unref(struct device *device)
{
    if (device && !__atomic_sub_fetch(&device->refs, 1, __ATOMIC_ACQ_REL))
        free(device);
}

bool device_is_same(const struct device *a, const struct device *b)
{
    return a == b || (a->placement == b->placement && a->n_nodes == b->n_nodes &&
                      !memcmp(a->nodes, b->nodes, a->n_nodes * sizeof(*a->nodes)) && !strcmp(a->pool, b->pool));
}

void device_choose(const struct device *device, struct memclient_alloc_options *options)
{
    options->pool = *device->pool ? device->pool : NULL;
    options->nodes = device->n_nodes ? device->nodes : NULL;
    options->n_nodes = device->n_nodes;
    options->placement = device->placement;
    /* base pages divide and place blocks most finely; a pool has pages of its own kind */
    if (!options->pool)
        options->pages = MEMCLIENT_PAGES_BASE;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static bool device_add_node(struct device *device, uint32_t node)
{
    for (size_t i = 0; i < device->n_nodes; i++)
        if (device->nodes[i] == node)
            return true;
    if (device->n_nodes == NODES_MAX)
        return false;
    device->nodes[device->n_nodes++] = node;
    return true;
}

static bool device_parse_number(const char **text, uint32_t *number)
{
    uint64_t value = 0;
    const char *at = *text;

    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > INT32_MAX)
            return false;
    }
    if (at == *text)
        return false;
    *text = at;
    *number = (uint32_t)value;
    return true;
}

/* Parses numbers and ranges with commas between them, as the kernel writes lists of nodes. */
static bool device_parse_nodes(struct device *device, const char *text)
{
    for (;; text++) {
        uint32_t first, last;

        if (!device_parse_number(&text, &first))
            return false;
        last = first;
        if (*text == '-') {
            text++;
            if (!device_parse_number(&text, &last) || last < first)
                return false;
        }
        for (uint32_t node = first; node <= last; node++)
            if (!device_add_node(device, node))
                return false;
        if (*text != ',')
            return !*text;
    }
}

static bool device_parse_pool(struct device *device, const char *id)
{
    size_t length = strlen(id);

    if (length >= sizeof(device->pool))
        return false;
    memcpy(device->pool, id, length + 1);
    return true;
}

static bool begins_with(const char *id, const char *beginning, const char **rest)
{
    size_t length = strlen(beginning);

    if (strncmp(id, beginning, length))
        return false;
    *rest = id + length;
    return true;
}

static bool device_parse_id(struct device *device, const char *id)
{
    const char *nodes;

    if (begins_with(id, "numa:", &nodes)) {
        device->placement = MEMCLIENT_PLACEMENT_BIND;
        return device_parse_nodes(device, nodes);
    }
    if (begins_with(id, "interleave:", &nodes)) {
        device->placement = MEMCLIENT_PLACEMENT_INTERLEAVE;
        return device_parse_nodes(device, nodes);
    }
    return device_parse_pool(device, id);
}

/* ---- searching --------------------------------------------------------------------------------------------------- */

/* Counts those of the device's nodes and pools that exist, and lists the names of all, as far as they fit. */
struct search {
    const struct device *device;
    size_t n_found;
    char *names;
    size_t size;
};

/* Names that no longer fit are left out. */
static void search_add_name(struct search *search, const char *before, const char *name)
{
    int length;

    if (!search->size)
        return;
    length = snprintf(search->names, search->size, ", %s%s", before, name);
    if (length < 0 || (size_t)length >= search->size) {
        *search->names = '\0';
        search->size = 0;
        return;
    }
    search->names += length;
    search->size -= (size_t)length;
}

static int search_node(const struct memclient_node_info *node, void *data)
{
    struct search *search = data;
    char number[16];

    for (size_t i = 0; i < search->device->n_nodes; i++)
        search->n_found += search->device->nodes[i] == node->node;
    (void)snprintf(number, sizeof(number), "%u", (unsigned)node->node);
    search_add_name(search, "numa:", number);
    return 0;
}

static int search_pool(const struct memclient_pool_info *pool, void *data)
{
    struct search *search = data;

    search->n_found += *search->device->pool && !strcmp(search->device->pool, pool->name);
    search_add_name(search, "", pool->name);
    return 0;
}

static int device_check(struct memclient_context *ctx, const struct device *device, const char *id, bool valid)
{
    char names[400] = "";
    struct search search = {device, 0, names, sizeof(names)};
    int r;

    r = memclient_list_nodes(ctx, search_node, &search);
    if (!r)
        r = memclient_list_pools(ctx, search_pool, &search);
    if (r)
        return fail_native(r);
    if (valid && search.n_found == device->n_nodes + (*device->pool ? 1 : 0))
        return 0;
    return fail(NBLA_ERROR_VALUE, "there is no device \"%.80s\": there are \"\"%s, and sets: numa:N-M, interleave:N,M",
                id, names);
}

/*
 * The last device of this thread that existed, by the process-wide context, which never ends: allocators name the same
 * one again and again. It may be gone by now; then the allocation is refused.
 */
static __thread struct {
    char id[64];
    struct device device;
} last_found;

static bool device_recall(struct memclient_context *ctx, const char *id, struct device *device)
{
    if (ctx || !*last_found.id || strcmp(last_found.id, id))
        return false;
    *device = last_found.device;
    return true;
}

static void device_remember(struct memclient_context *ctx, const char *id, const struct device *device)
{
    size_t length = strlen(id);

    if (ctx || length >= sizeof(last_found.id))
        return;
    memcpy(last_found.id, id, length + 1);
    last_found.device = *device;
}

/* What "" means. It never ends, since nobody drops the first reference. */
static struct device by_default = {.refs = 1};

struct device *device_new(struct memclient_context *ctx, const char *id)
{
    _cleanup_(device_unrefp) struct device *device = NULL;

    if (!id) {
        (void)fail_null("device_id");
        return NULL;
    }
    if (!*id)
        return device_ref(&by_default);
    device = calloc(1, sizeof(*device));
    if (!device) {
        (void)fail(NBLA_ERROR_MEMORY, "no memory for a device");
        return NULL;
    }
    device->refs = 1;
    if (!device_recall(ctx, id, device)) {
        if (device_check(ctx, device, id, device_parse_id(device, id)))
            return NULL;
        device_remember(ctx, id, device);
    }
    return steal_ptr(&device);
}
