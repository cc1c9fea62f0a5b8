/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs that open, release and export buffers: those with descriptors.
 *
 * A descriptor belongs to an item by its position among the items that succeeded, so their number must fit exactly. The
 * numbers of a mapping (size, granule, address) must be possible, since they are trusted from here on.
 */
#include "rpc/stubs.h"

#include <errno.h>

#include "base/checked.h"
#include "base/clock.h"
#include "proto/sockio.h"
#include "proto/status.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/door.h"
#include "rpc/fail.h"

void rpc_opened_deinit(struct rpc_opened *opened)
{
    for (unsigned i = 0; i < opened->n; i++)
        opened->items[i].fd = fd_close(opened->items[i].fd);
    opened->n = 0;
    opened->channel = channel_unref(opened->channel);
}

unsigned rpc_opened_ids(const struct rpc_opened *opened, uint64_t *ids)
{
    unsigned n = 0;

    for (unsigned i = 0; i < opened->n; i++)
        if (!opened->items[i].status)
            ids[n++] = opened->items[i].id;
    return n;
}

static bool opened_item_is_sane(const struct rpc_opened_item *item)
{
    size_t size;

    if (item->flags & MEMCLIENT_BUFFER_FOREIGN) /* it is not mapped */
        return item->id && item->size && !item->bytes && !item->address && is_power_of_two(item->granule);
    return item->id && item->size && is_power_of_two(item->granule) && item->bytes >= item->size &&
           is_aligned(item->bytes, item->granule) && checked_size(item->bytes, &size) &&
           is_page_aligned(item->granule) && is_page_aligned(item->address) &&
           item->address <= UINTPTR_MAX - item->bytes;
}

static int decode_opened(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__Buffers *b = (const Memoryd__V1__Buffers *)reply;
    struct rpc_opened *opened = result;
    unsigned n = opened->n, good = 0;

    if (b->n_statuses != n || b->n_ids != n || b->n_rights != n || b->n_sizes != n || b->n_bytes != n ||
        b->n_granules != n || b->n_addresses != n || b->n_flags != n ||
        (b->tokens.len && b->tokens.len != n * sizeof(opened->items[0].token)))
        return -EPROTO;
    COPY_TEXT(opened->sentence, b->sentence);
    for (unsigned i = 0; i < n; i++) {
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
        if (!opened_item_is_sane(item))
            return -EPROTO;
        if (b->tokens.len)
            memcpy(&item->token, b->tokens.data + i * sizeof(item->token), sizeof(item->token));
        good++;
    }
    /* all of them or, if none were wanted, none */
    if (fdset_count(fds) && fdset_count(fds) != good)
        return -EPROTO;
    good = 0;
    for (unsigned i = 0; i < n; i++)
        if (!opened->items[i].status)
            opened->items[i].fd = fdset_steal(fds, good++);
    return 0;
}

/* A request for n buffers, with a descriptor or NULL. */
static int call_opened(struct rpc_route route, enum method method, const ProtobufCMessage *message, unsigned n,
                       const int *fd, struct rpc_opened *opened)
{
    const struct channel_request request = {
        .method = method,
        .message = message,
        .fds = fd,
        .n_fds = fd ? 1 : 0,
        .decode = decode_opened,
        .result = opened,
        .changes = opened->changes,
        .answered_by = &opened->channel,
    };
    int r;

    opened->n = n;
    r = call_request(route, &request);
    if (r)
        opened->n = 0;
    return r;
}

static Memoryd__V1__NameBindRequest call_name_request(const char *name, const struct memclient_name_options *options)
{
    Memoryd__V1__NameBindRequest request = MEMORYD__V1__NAME_BIND_REQUEST__INIT;

    request.name = (char *)name;
    request.policy = (Memoryd__V1__NamePolicy)options->policy;
    request.keep_ms = options->keep_ms;
    request.group = options->group_rights;
    request.gid = options->gid;
    request.others = options->other_rights;
    return request;
}

/* Is there another broker by now that does not speak this minor version? */
static bool route_is_older(struct rpc_route route, unsigned minor)
{
    _cleanup_(channel_unrefp) struct channel *channel = NULL;
    struct fail_saved saved = fail_save(0);
    bool older;

    older = !route.connect(route.of, route.deadline, &channel) && !channel_speaks(channel, minor);
    (void)fail_restore(&saved);
    return older;
}

int rpc_alloc(struct rpc_route route, const struct alloc_spec *spec, struct rpc_opened *opened)
{
    const struct memclient_alloc_options *options = &spec->options;
    Memoryd__V1__AllocRequest request = MEMORYD__V1__ALLOC_REQUEST__INIT;
    Memoryd__V1__NameBindRequest name;
    _cleanup_(channel_unrefp) struct channel *channel = NULL;
    bool want_token;
    int r;

    r = route.connect(route.of, route.deadline, &channel);
    if (r)
        return r;
    want_token = spec->want_token && channel_speaks(channel, 2);
    request.pool = (char *)options->pool;
    request.n_nodes = options->n_nodes;
    request.nodes = (uint32_t *)options->nodes;
    request.caller_node = channel_caller_node(channel);
    request.pages = (Memoryd__V1__Pages)options->pages;
    request.page_size = options->page_size;
    request.placement = (Memoryd__V1__Placement)options->placement;
    request.part_size = options->part_size;
    request.n_weights = options->weights ? options->n_nodes : 0;
    request.weights = (uint32_t *)options->weights;
    request.n_sizes = spec->n;
    request.sizes = (uint64_t *)spec->sizes;
    request.alignment = options->alignment;
    request.address = options->address;
    request.flags = options->flags & ~(uint32_t)(MEMCLIENT_ALLOC_NO_DESCRIPTOR | MEMCLIENT_ALLOC_SHARED_SOON);
    if (!(options->flags & MEMCLIENT_ALLOC_NO_DESCRIPTOR))
        request.flags |= MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS;
    if (want_token)
        request.flags |= MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS;
    request.wait_ms = options->wait_ms;
    if (options->name) {
        name = call_name_request(options->name, &spec->name);
        request.name = &name;
    }
    r = call_opened(route, METHOD_ALLOC, &request.base, spec->n, NULL, opened);
    /* an older broker has taken the session over meanwhile, and has done nothing */
    if (r && want_token && fail_status() == STATUS_INVALID_ARGUMENT && route_is_older(route, 2)) {
        request.flags &= ~(uint32_t)MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS;
        r = call_opened(route, METHOD_ALLOC, &request.base, spec->n, NULL, opened);
    }
    return r;
}

/* A ticket for a descriptor, and whether the broker knows of any: before 1.4 the descriptor goes with the request. */
static int route_show(struct rpc_route route, int fd, enum door_kind kind, bool *has_door, uint64_t *ticket)
{
    int r = 0;

    for (unsigned n = 0; n < 2; n++) {
        _cleanup_(channel_unrefp) struct channel *channel = NULL;

        r = route.connect(route.of, route.deadline, &channel);
        if (r)
            break;
        *has_door = channel_speaks(channel, 4);
        if (*has_door)
            r = door_show(channel, fd, kind, route.deadline, ticket);
        if (r != -ENOTCONN)
            break;
    }
    return r;
}

/* Was nothing done, and may it be tried again? The broker that knew the ticket, or its session, has ended; or one of
 * before 1.4 has been replaced meanwhile by one that takes no descriptor. */
static bool route_shows_again(struct rpc_route route, bool has_door)
{
    if (deadline_passed(route.deadline, clock_now_ns()))
        return false;
    return has_door ? fail_status() == STATUS_TICKET_STALE
                    : fail_status() == STATUS_INVALID_ARGUMENT && !route_is_older(route, 4);
}

/* IMPORT or ADOPT of one descriptor. */
static int call_shown(struct rpc_route route, int fd, enum door_kind kind, struct rpc_opened *opened)
{
    const enum method method = kind == DOOR_IMPORT ? METHOD_IMPORT : METHOD_ADOPT;
    bool has_door = false;
    int r;

    do {
        uint64_t ticket = 0;
        Memoryd__V1__ImportRequest import = MEMORYD__V1__IMPORT_REQUEST__INIT;
        Memoryd__V1__AdoptRequest adopt = MEMORYD__V1__ADOPT_REQUEST__INIT;

        r = route_show(route, fd, kind, &has_door, &ticket);
        if (r)
            return r;
        import.n_tickets = has_door;
        import.tickets = &ticket;
        adopt.ticket = ticket;
        r = call_opened(route, method, kind == DOOR_IMPORT ? &import.base : &adopt.base, 1, has_door ? NULL : &fd,
                        opened);
    } while (r && route_shows_again(route, has_door));
    return r;
}

int rpc_import(struct rpc_route route, int fd, struct rpc_opened *opened)
{
    /* an older broker closes a connection on which a socket is sent */
    if (sockio_is_socket(fd))
        return fail_with(EREMOTE, "%d is a socket, not a buffer", fd);
    return call_shown(route, fd, DOOR_IMPORT, opened);
}

int rpc_adopt(struct rpc_route route, int fd, struct rpc_opened *opened)
{
    if (sockio_is_socket(fd))
        return fail_with(EOPNOTSUPP, "%d is a socket, which holds no memory", fd);
    return call_shown(route, fd, DOOR_ADOPT, opened);
}

int rpc_open(struct rpc_route route, unsigned n, const struct memclient_token *tokens, uint32_t rights,
             struct rpc_opened *opened)
{
    const ProtobufCBinaryData bytes = {.data = (uint8_t *)tokens, .len = n * sizeof(*tokens)};

    return call_opened(route, METHOD_OPEN,
                       REQUEST(Open, open, .tokens = bytes, .rights = rights & ~(uint32_t)MEMCLIENT_ACCEPT_FOREIGN,
                               .foreign = rights & MEMCLIENT_ACCEPT_FOREIGN, .want_fds = true),
                       n, NULL, opened);
}

int rpc_lookup(struct rpc_route route, const struct lookup_spec *spec, struct rpc_opened *opened)
{
    return call_opened(route, METHOD_LOOKUP,
                       REQUEST(Lookup, lookup, .name = (char *)spec->name, .id = spec->id,
                               .rights = spec->rights & ~(uint32_t)MEMCLIENT_ACCEPT_FOREIGN,
                               .foreign = spec->rights & MEMCLIENT_ACCEPT_FOREIGN,
                               .claim = (Memoryd__V1__Claim)spec->claim, .want_fd = true),
                       1, NULL, opened);
}

/* ---- holds and descriptors --------------------------------------------------------------------------------------- */

static int decode_released(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__Statuses *s = (const Memoryd__V1__Statuses *)reply;
    const unsigned *n = result;

    return s->n_statuses == *n ? 0 : -EPROTO;
}

void rpc_release(struct rpc_route route, unsigned n, const uint64_t *ids, bool wait)
{
    struct fail_saved saved = fail_save(0);
    int err = errno;

    (void)call_reply(route, METHOD_RELEASE, REQUEST(Release, release, .n_buffers = n, .buffers = (uint64_t *)ids),
                     wait ? decode_released : NULL, &n);
    (void)fail_restore(&saved);
    errno = err;
}

static int decode_exported(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__Statuses *s = (const Memoryd__V1__Statuses *)reply;
    struct rpc_exported *exported = result;
    unsigned good = 0;

    if (s->n_statuses != exported->n)
        return -EPROTO;
    for (unsigned i = 0; i < exported->n; i++)
        good += !s->statuses[i];
    if (fdset_count(fds) != good)
        return -EPROTO;
    good = 0;
    for (unsigned i = 0; i < exported->n; i++) {
        exported->statuses[i] = s->statuses[i];
        exported->fds[i] = s->statuses[i] ? -1 : fdset_steal(fds, good++);
    }
    COPY_TEXT(exported->sentence, s->sentence);
    return 0;
}

int rpc_export(struct rpc_route route, unsigned n, const uint64_t *ids, const uint32_t *rights,
               struct rpc_exported *exported)
{
    exported->n = n;
    return call_reply(route, METHOD_EXPORT,
                      REQUEST(Export, export, .n_buffers = n, .buffers = (uint64_t *)ids, .n_rights = n,
                              .rights = (uint32_t *)rights),
                      decode_exported, exported);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

int rpc_name_bind(struct rpc_route route, uint64_t id, const char *name, const struct memclient_name_options *options)
{
    Memoryd__V1__NameBindRequest request = call_name_request(name, options);

    request.buffer = id;
    return call_done(route, METHOD_NAME_BIND, &request.base);
}

int rpc_name_unbind(struct rpc_route route, const char *name)
{
    return call_done(route, METHOD_NAME_UNBIND, REQUEST(NameUnbind, name_unbind, .name = (char *)name));
}
