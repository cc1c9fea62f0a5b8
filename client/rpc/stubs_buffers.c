/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs that open, give up and hand out buffers: those with descriptors.
 *
 * A descriptor belongs to an item by its position among the items that succeeded, so their number
 * must fit exactly; and what a mapping will be made by (size, granule, address) must be possible
 * numbers, for from here on they are trusted.
 */
#include "rpc/stubs.h"

#include <errno.h>

#include "base/checked.h"
#include "proto/sockio.h"
#include "proto/status.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/fail.h"

struct take_opened {
    struct rpc_opened *opened;
    unsigned n; /* items that the request had */
};

void rpc_opened_deinit(struct rpc_opened *opened)
{
    for (unsigned i = 0; i < opened->n; i++)
        opened->items[i].fd = fd_close(opened->items[i].fd);
    opened->n = 0;
}

unsigned rpc_opened_ids(const struct rpc_opened *opened, uint64_t *ids)
{
    unsigned n = 0;

    for (unsigned i = 0; i < opened->n; i++)
        if (!opened->items[i].status)
            ids[n++] = opened->items[i].id;
    return n;
}

static bool is_sane(const struct rpc_opened_item *item)
{
    size_t size;

    if (item->flags & MEMCLIENT_BUFFER_FOREIGN) /* nothing of it is mapped */
        return item->id && item->size && !item->bytes && !item->address && is_power_of_two(item->granule);
    return item->id && item->size && is_power_of_two(item->granule) &&
           item->bytes >= item->size && is_aligned(item->bytes, item->granule) &&
           checked_size(item->bytes, &size) && is_page_aligned(item->granule) &&
           is_page_aligned(item->address) && item->address <= UINTPTR_MAX - item->bytes;
}

static int take_opened(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__Buffers *b = (const Memoryd__V1__Buffers *)reply;
    struct take_opened *take = result;
    struct rpc_opened *opened = take->opened;
    unsigned good = 0;

    if (b->n_statuses != take->n || b->n_ids != take->n || b->n_rights != take->n ||
        b->n_sizes != take->n || b->n_bytes != take->n || b->n_granules != take->n ||
        b->n_addresses != take->n || b->n_flags != take->n ||
        (b->tokens.len && b->tokens.len != take->n * sizeof(opened->items[0].token)))
        return -EPROTO;
    COPY_TEXT(opened->sentence, b->sentence);
    for (unsigned i = 0; i < take->n; i++) {
        struct rpc_opened_item *item = &opened->items[i];

        *item = (struct rpc_opened_item){
            .status = b->statuses[i],
            .rights = b->rights[i],
            .flags = b->flags[i],
            .fd = -1,
            .id = b->ids[i],
            .size = b->sizes[i],
            .bytes = b->bytes[i],
            .granule = b->granules[i],
            .address = b->addresses[i],
        };
        if (item->status)
            continue;
        if (!is_sane(item))
            return -EPROTO;
        if (b->tokens.len)
            memcpy(&item->token, b->tokens.data + i * sizeof(item->token), sizeof(item->token));
        good++;
    }
    /* all of them or, where none were wanted, none */
    if (fdset_count(fds) && fdset_count(fds) != good)
        return -EPROTO;
    good = 0;
    for (unsigned i = 0; i < take->n; i++)
        if (!opened->items[i].status)
            opened->items[i].fd = fdset_steal(fds, good++);
    opened->n = take->n;
    return 0;
}

/* A request for n buffers. */
static int call_opened(struct channel *channel, struct channel_request *request, unsigned n, uint64_t deadline,
                       struct rpc_opened *opened)
{
    struct take_opened take = {.opened = opened, .n = n};

    opened->n = 0;
    channel_cache_changes(channel, opened->changes);
    request->take = take_opened;
    request->result = &take;
    return channel_call(channel, request, deadline);
}

/* IMPORT and ADOPT. */
static int call_with_fd(struct channel *channel, enum method method, const ProtobufCMessage *message, int fd,
                        uint64_t deadline, struct rpc_opened *opened)
{
    struct channel_request request = {.method = method, .message = message, .fds = &fd, .n_fds = 1};

    return call_opened(channel, &request, 1, deadline, opened);
}

static void fill_name(Memoryd__V1__NameBindRequest *message, const char *name,
                      const struct memclient_name_options *options)
{
    message->name = (char *)name;
    message->policy = (Memoryd__V1__NamePolicy)options->policy;
    message->keep_ms = options->keep_ms;
    message->group = options->group_rights;
    message->gid = options->gid;
    message->others = options->other_rights;
}

static void fill_alloc(Memoryd__V1__AllocRequest *request, struct channel *channel, unsigned n, const uint64_t *sizes,
                       const struct memclient_alloc_options *options, bool want_tokens)
{
    if (options->pool)
        request->pool = (char *)options->pool;
    request->n_nodes = options->n_nodes;
    request->nodes = (uint32_t *)options->nodes;
    request->caller_node = channel_caller_node(channel);
    request->pages = (Memoryd__V1__Pages)options->pages;
    request->page_size = options->page_size;
    request->placement = (Memoryd__V1__Placement)options->placement;
    request->part_size = options->part_size;
    request->n_weights = options->weights ? options->n_nodes : 0;
    request->weights = (uint32_t *)options->weights;
    request->n_sizes = n;
    request->sizes = (uint64_t *)sizes;
    request->alignment = options->alignment;
    request->address = options->address;
    request->flags = options->flags & ~(uint32_t)(MEMCLIENT_NO_DESCRIPTOR | MEMCLIENT_SHARED_SOON);
    if (!(options->flags & MEMCLIENT_NO_DESCRIPTOR))
        request->flags |= MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    if (want_tokens)
        request->flags |= MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS;
    request->wait_ms = options->wait_ms;
}

int rpc_alloc(struct channel *channel, unsigned n, const uint64_t *sizes,
              const struct memclient_alloc_options *options,
              const struct memclient_name_options *name_options, bool want_tokens, uint64_t deadline,
              struct rpc_opened *opened)
{
    Memoryd__V1__AllocRequest request = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__NameBindRequest name = MEMORYD__V1__NAME_BIND_REQUEST__INIT;

    fill_alloc(&request, channel, n, sizes, options, want_tokens);
    if (options->name) {
        fill_name(&name, options->name, name_options);
        request.name = &name;
    }
    return call_opened(channel, &(struct channel_request){.method = METHOD_ALLOC, .message = &request.base}, n,
                       deadline, opened);
}

int rpc_import(struct channel *channel, int fd, uint64_t deadline, struct rpc_opened *opened)
{
    Memoryd__V1__ImportRequest request = MEMORYD__V1__IMPORT_REQUEST__INIT;

    /* to send one would be a breach of the protocol, whose end is the connection's */
    if (sockio_is_socket(fd))
        return fail_with(EREMOTE, "%d is a socket, not a buffer", fd);
    return call_with_fd(channel, METHOD_IMPORT, &request.base, fd, deadline, opened);
}

int rpc_adopt(struct channel *channel, int fd, uint64_t deadline, struct rpc_opened *opened)
{
    Memoryd__V1__AdoptRequest request = MEMORYD__V1__ADOPT_REQUEST__INIT;

    if (sockio_is_socket(fd))
        return fail_with(EOPNOTSUPP, "%d is a socket, which holds no memory", fd);
    return call_with_fd(channel, METHOD_ADOPT, &request.base, fd, deadline, opened);
}

int rpc_open(struct channel *channel, unsigned n, const struct memclient_token *tokens,
             uint32_t rights, uint64_t deadline, struct rpc_opened *opened)
{
    Memoryd__V1__OpenRequest request = MEMORYD__V1__OPEN_REQUEST__INIT;

    request.tokens.data = (uint8_t *)tokens;
    request.tokens.len = n * sizeof(*tokens);
    request.rights = rights & ~(uint32_t)MEMCLIENT_ACCEPT_FOREIGN;
    request.want_fds = true;
    request.foreign = rights & MEMCLIENT_ACCEPT_FOREIGN;
    return call_opened(channel, &(struct channel_request){.method = METHOD_OPEN, .message = &request.base}, n,
                       deadline, opened);
}

int rpc_lookup(struct channel *channel, const char *name, uint64_t id, uint32_t rights,
               unsigned claim, uint64_t deadline, struct rpc_opened *opened)
{
    Memoryd__V1__LookupRequest request = MEMORYD__V1__LOOKUP_REQUEST__INIT;

    if (name)
        request.name = (char *)name;
    request.id = id;
    request.rights = rights & ~(uint32_t)MEMCLIENT_ACCEPT_FOREIGN;
    request.foreign = rights & MEMCLIENT_ACCEPT_FOREIGN;
    request.claim = (Memoryd__V1__Claim)claim;
    request.want_fd = true;
    return call_opened(channel, &(struct channel_request){.method = METHOD_LOOKUP, .message = &request.base}, 1,
                       deadline, opened);
}

/* ---- claims and descriptors ----------------------------------------------------------------- */

static int take_released(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__Statuses *s = (const Memoryd__V1__Statuses *)reply;
    const unsigned *n = result;

    (void)fds;
    return s->n_statuses == *n ? 0 : -EPROTO;
}

void rpc_give_back(struct channel *channel, unsigned n, const uint64_t *ids, bool wait, uint64_t deadline)
{
    Memoryd__V1__ReleaseRequest request = MEMORYD__V1__RELEASE_REQUEST__INIT;
    struct fail_saved saved;
    int err = errno;

    request.n_buffers = n;
    request.buffers = (uint64_t *)ids;
    fail_save(&saved, 0);
    (void)call_take(channel, METHOD_RELEASE, &request.base, wait ? take_released : NULL, &n, deadline);
    (void)fail_restore(&saved);
    errno = err;
}

struct take_exported {
    struct rpc_exported *exported;
    unsigned n; /* items that the request had */
};

static int take_exported(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__Statuses *s = (const Memoryd__V1__Statuses *)reply;
    struct take_exported *take = result;
    struct rpc_exported *exported = take->exported;
    unsigned good = 0;

    if (s->n_statuses != take->n)
        return -EPROTO;
    for (unsigned i = 0; i < take->n; i++)
        good += !s->statuses[i];
    if (fdset_count(fds) != good)
        return -EPROTO;
    good = 0;
    for (unsigned i = 0; i < take->n; i++) {
        exported->statuses[i] = s->statuses[i];
        exported->fds[i] = s->statuses[i] ? -1 : fdset_steal(fds, good++);
    }
    COPY_TEXT(exported->sentence, s->sentence);
    return 0;
}

int rpc_export(struct channel *channel, unsigned n, const uint64_t *ids, const uint32_t *rights, uint64_t deadline,
               struct rpc_exported *exported)
{
    Memoryd__V1__ExportRequest request = MEMORYD__V1__EXPORT_REQUEST__INIT;
    struct take_exported take = {.exported = exported, .n = n};

    request.n_buffers = n;
    request.buffers = (uint64_t *)ids;
    request.n_rights = n;
    request.rights = (uint32_t *)rights;
    return call_take(channel, METHOD_EXPORT, &request.base, take_exported, &take, deadline);
}

/* ---- names ---------------------------------------------------------------------------------- */

int rpc_name_bind(struct channel *channel, uint64_t id, const char *name,
                  const struct memclient_name_options *options, uint64_t deadline)
{
    Memoryd__V1__NameBindRequest request = MEMORYD__V1__NAME_BIND_REQUEST__INIT;

    fill_name(&request, name, options);
    request.buffer = id;
    return call_done(channel, METHOD_NAME_BIND, &request.base, deadline);
}

int rpc_name_unbind(struct channel *channel, const char *name, uint64_t deadline)
{
    Memoryd__V1__NameUnbindRequest request = MEMORYD__V1__NAME_UNBIND_REQUEST__INIT;

    request.name = (char *)name;
    return call_done(channel, METHOD_NAME_UNBIND, &request.base, deadline);
}
