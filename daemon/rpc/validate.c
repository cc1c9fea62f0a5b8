/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One function or macro for each request, in the order of the method table. Fields without a line here take any value.
 */

#include "rpc/validate.h"

#include <stdbool.h>
#include <string.h>

#include "base/align.h"
#include "base/printable.h"
#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/methods.h"
#include "proto/status.h"

#define RIGHTS_ALL                                                                                        \
    (MEMORYD__V1__RIGHT__RIGHT_READ | MEMORYD__V1__RIGHT__RIGHT_WRITE | MEMORYD__V1__RIGHT__RIGHT_SHARE | \
     MEMORYD__V1__RIGHT__RIGHT_MANAGE)
#define EVENTS_ALL 8191u
/* of one buffer, and of one name */
#define EVENTS_OF_BUFFER 4070u
#define EVENTS_OF_NAME   4u

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static int bad_argument(struct problem *problem, const char *what)
{
    return refuse(problem, STATUS_INVALID_ARGUMENT, "%s", what);
}

static int check_rights(uint32_t rights, uint32_t allowed, struct problem *problem)
{
    if (rights & ~(uint32_t)RIGHTS_ALL)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "rights 0x%x have bits without a meaning", rights);
    if (rights & ~allowed)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "rights 0x%x: only 0x%x may be requested here", rights,
                      allowed);
    return 0;
}

static int check_batch(size_t n, struct problem *problem)
{
    if (!n || n > MEMORYD_BATCH_MAX)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "a batch of %zu items; from 1 to %d are allowed", n,
                      MEMORYD_BATCH_MAX);
    return 0;
}

static int check_name(const char *name, struct problem *problem)
{
    size_t n = strlen(name);

    if (!n || n > MEMORYD_NAME_MAX)
        return refuse(problem, STATUS_BAD_NAME, "a name of %zu bytes; from 1 to %d are allowed", n, MEMORYD_NAME_MAX);
    if (!printable_without_controls(name, n))
        return refuse(problem, STATUS_BAD_NAME, "a name is UTF-8 without control characters");
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, "/");

        if (!length || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return refuse(problem, STATUS_BAD_NAME,
                          "a name has no empty part, none that is \".\" or \"..\", and no / at an end");
        part += length;
        if (!*part)
            return 0;
    }
}

/* Names that are bound already may have characters of which none is made any more. */
static int check_new_name(const char *name, struct problem *problem)
{
    int r = check_name(name, problem);

    if (r || printable_text(name, strlen(name)))
        return r;
    return refuse(problem, STATUS_BAD_NAME,
                  "\"%s\": a name has no invisible characters, no blanks but the ASCII one, and none that change the "
                  "direction of writing",
                  name);
}

/* The name without "uid:N/" before it. */
static const char *name_without_user(const char *name)
{
    size_t digits;

    if (strncmp(name, "uid:", 4) != 0)
        return name;
    digits = strspn(name + 4, "0123456789");
    return digits && digits <= 10 && name[4 + digits] == '/' ? name + 4 + digits + 1 : name;
}

static int check_pool_name(const char *name, struct problem *problem)
{
    if (strlen(name) > MEMORYD_POOL_NAME_MAX || !printable_without_controls(name, strlen(name)))
        return refuse(problem, STATUS_NO_SUCH_POOL, "no pool has such a name; it has at most %d printable characters",
                      MEMORYD_POOL_NAME_MAX);
    return 0;
}

static int check_id(uint64_t id, const char *what, struct problem *problem)
{
    if (!id)
        return refuse(problem, STATUS_NO_SUCH_ID, "0 is no id of a %s", what);
    return 0;
}

static int check_alignment(uint64_t alignment, struct problem *problem)
{
    if (alignment && !is_power_of_two(alignment))
        return bad_argument(problem, "an alignment is a power of two");
    return 0;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static int validate_hello(const Memoryd__V1__HelloRequest *m, struct problem *problem)
{
    if (m->version_min > m->version_max)
        return bad_argument(problem, "the lowest version the client speaks is above the highest");
    if (m->session ? m->secret.len != MEMORYD_SECRET_SIZE : m->secret.len != 0)
        return bad_argument(problem, "a session to resume needs its secret of 16 bytes, and a new one has none");
    /* nobody chose how its program is called for this broker: any text will do, and is escaped where it is shown */
    if (strlen(m->program) > MEMORYD_PROGRAM_MAX)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "a program's name has at most %d bytes", MEMORYD_PROGRAM_MAX);
    if (m->n_occupied_addresses > MEMORYD_OCCUPIED_MAX || m->n_occupied_sizes != m->n_occupied_addresses ||
        m->n_occupied_brokers != m->n_occupied_addresses)
        return bad_argument(problem, "occupied ranges are 64 at most, and each has an address, a size and a broker");
    for (size_t i = 0; i < m->n_occupied_addresses; i++) {
        uint64_t start = m->occupied_addresses[i], size = m->occupied_sizes[i];

        /* no address is that high, and the end still fits when it is rounded up to pages */
        if (!size || start > INT64_MAX || size > INT64_MAX - start)
            return bad_argument(problem, "an occupied range has a size, and does not end beyond all addresses");
    }
    return 0;
}

static int validate_subscribe(const Memoryd__V1__SubscribeRequest *m, struct problem *problem)
{
    if (m->mask & ~EVENTS_ALL)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "event mask 0x%x has bits without a meaning", m->mask);
    return 0;
}

static int validate_subscribe_to(const Memoryd__V1__SubscribeToRequest *m, struct problem *problem)
{
    uint32_t allowed = m->name[0] ? EVENTS_OF_NAME : EVENTS_OF_BUFFER;

    if (!m->buffer == !m->name[0])
        return bad_argument(problem, "a subscription is to one buffer or to one name");
    if (m->mask & ~allowed)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "event mask 0x%x has bits that are not events of a %s", m->mask,
                      m->name[0] ? "name" : "buffer");
    return m->name[0] ? check_name(name_without_user(m->name), problem) : 0;
}

/* For binding a name, and for allocating with one. */
static int check_binding(const Memoryd__V1__NameBindRequest *m, struct problem *problem)
{
    const uint32_t allowed =
        MEMORYD__V1__RIGHT__RIGHT_READ | MEMORYD__V1__RIGHT__RIGHT_WRITE | MEMORYD__V1__RIGHT__RIGHT_SHARE;
    int r;

    if (!strncmp(m->name, "uid:", 4))
        return refuse(problem, STATUS_BAD_NAME, "one can bind names of one's own user only, without \"uid:\"");
    r = check_new_name(m->name, problem);
    if (r)
        return r;
    if ((unsigned)m->policy > MEMORYD__V1__NAME_POLICY__NAME_KEEP_FOR)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "no name policy has the number %d", (int)m->policy);
    if ((m->policy == MEMORYD__V1__NAME_POLICY__NAME_KEEP_FOR) != (m->keep_ms != 0))
        return bad_argument(problem, "the policy NAME_KEEP_FOR needs keep_ms, and no other one takes it");
    r = check_rights(m->group, allowed, problem);
    return r ? r : check_rights(m->others, allowed, problem);
}

static int check_nodes(const Memoryd__V1__AllocRequest *m, struct problem *problem)
{
    uint64_t seen = 0;

    if (m->n_nodes > MEMORYD_NODES_MAX)
        return bad_argument(problem, "more than 64 nodes");
    for (size_t i = 0; i < m->n_nodes; i++) {
        if (m->nodes[i] >= MEMORYD_NODES_MAX)
            return refuse(problem, STATUS_NO_SUCH_NODE, "there is no node %u", m->nodes[i]);
        if (seen & UINT64_C(1) << m->nodes[i])
            return refuse(problem, STATUS_INVALID_ARGUMENT, "node %u is named twice", m->nodes[i]);
        seen |= UINT64_C(1) << m->nodes[i];
    }
    if (m->n_weights && (m->placement != MEMORYD__V1__PLACEMENT__PLACEMENT_SPLIT || m->n_weights != m->n_nodes))
        return bad_argument(problem, "weights go with PLACEMENT_SPLIT, one for each node that is named");
    if (m->part_size && m->placement != MEMORYD__V1__PLACEMENT__PLACEMENT_INTERLEAVE)
        return bad_argument(problem, "part_size goes with PLACEMENT_INTERLEAVE only");
    return 0;
}

static int validate_alloc(const Memoryd__V1__AllocRequest *m, struct problem *problem)
{
    const uint32_t flags = MEMORYD__V1__ALLOC_REQUEST__FLAG__PUBLISHABLE |
                           MEMORYD__V1__ALLOC_REQUEST__FLAG__NO_ADDRESS | MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_FDS |
                           MEMORYD__V1__ALLOC_REQUEST__FLAG__WANT_TOKENS | MEMORYD__V1__ALLOC_REQUEST__FLAG__AHEAD;
    int r = check_batch(m->n_sizes, problem) ?: check_pool_name(m->pool, problem) ?: check_nodes(m, problem)
                ?: check_alignment(m->alignment, problem);

    if (r)
        return r;
    if ((unsigned)m->pages > MEMORYD__V1__PAGES__PAGES_HUGETLB)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "no kind of pages has the number %d", (int)m->pages);
    if ((unsigned)m->placement > MEMORYD__V1__PLACEMENT__PLACEMENT_LOCAL)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "no placement has the number %d", (int)m->placement);
    if (m->page_size && m->pages != MEMORYD__V1__PAGES__PAGES_HUGETLB)
        return bad_argument(problem, "page_size goes with PAGES_HUGETLB only");
    if (m->page_size && !is_power_of_two(m->page_size))
        return bad_argument(problem, "a page size is a power of two");
    if (m->flags & ~flags)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "flags 0x%x have bits without a meaning", m->flags);
    if (m->address && m->n_sizes > 1)
        return bad_argument(problem, "an address can be requested for one buffer, not for several");
    if (m->flags & MEMORYD__V1__ALLOC_REQUEST__FLAG__NO_ADDRESS && (m->address || m->alignment))
        return bad_argument(problem, "NO_ADDRESS contradicts an address or alignment");
    if (m->name && m->n_sizes > 1)
        return bad_argument(problem, "a name can be bound to one buffer, not to several");
    return m->name ? check_binding(m->name, problem) : 0;
}

static int validate_export(const Memoryd__V1__ExportRequest *m, struct problem *problem)
{
    const uint32_t allowed = MEMORYD__V1__RIGHT__RIGHT_READ | MEMORYD__V1__RIGHT__RIGHT_WRITE;
    int r = check_batch(m->n_buffers, problem);

    if (r)
        return r;
    if (m->n_rights != m->n_buffers)
        return bad_argument(problem, "as many rights as buffers are needed");
    for (size_t i = 0; !r && i < m->n_rights; i++) {
        r = check_rights(m->rights[i], allowed, problem);
        if (!r && !m->rights[i])
            r = bad_argument(problem, "a descriptor has READ, or READ and WRITE");
    }
    return r;
}

static int validate_open(const Memoryd__V1__OpenRequest *m, struct problem *problem)
{
    if (m->tokens.len % MEMORYD_TOKEN_SIZE)
        return refuse(problem, STATUS_TOKEN_MALFORMED, "%zu bytes of tokens; each has %d", m->tokens.len,
                      MEMORYD_TOKEN_SIZE);
    return check_batch(m->tokens.len / MEMORYD_TOKEN_SIZE, problem) ?: check_rights(m->rights, RIGHTS_ALL, problem);
}

static int validate_lookup(const Memoryd__V1__LookupRequest *m, struct problem *problem)
{
    if (!m->name[0] && !m->id)
        return bad_argument(problem, "neither a name nor an id");
    if (m->name[0] && m->id)
        return bad_argument(problem, "a name and an id; give one of them");
    if ((unsigned)m->claim > MEMORYD__V1__CLAIM__CLAIM_EXCLUSIVE)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "no claim has the number %d", (int)m->claim);
    return (m->name[0] ? check_name(name_without_user(m->name), problem) : 0)
               ?: check_rights(m->rights, RIGHTS_ALL, problem);
}

static int validate_share(const Memoryd__V1__ShareRequest *m, struct problem *problem)
{
    const uint32_t flags = MEMORYD__V1__SHARE_REQUEST__FLAG__KEEPING | MEMORYD__V1__SHARE_REQUEST__FLAG__ONLY_UID |
                           MEMORYD__V1__SHARE_REQUEST__FLAG__ONLY_GID | MEMORYD__V1__SHARE_REQUEST__FLAG__ONLY_PID;
    int r = check_batch(m->n_buffers, problem) ?: check_rights(m->rights, RIGHTS_ALL, problem);

    if (r)
        return r;
    if (!(m->rights & (MEMORYD__V1__RIGHT__RIGHT_READ | MEMORYD__V1__RIGHT__RIGHT_WRITE)))
        return bad_argument(problem, "a token grants READ at least");
    if (m->flags & ~flags)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "flags 0x%x have bits without a meaning", m->flags);
    if (m->flags & MEMORYD__V1__SHARE_REQUEST__FLAG__KEEPING && !m->uses && !m->expiry_ms)
        return bad_argument(problem,
                            "a keeping token needs a number of uses or an expiry, or it would keep its buffer forever");
    if (m->flags & MEMORYD__V1__SHARE_REQUEST__FLAG__ONLY_PID && (!m->pid || m->pid > INT32_MAX))
        return bad_argument(problem, "ONLY_PID needs the number of a process");
    if (!(m->flags & MEMORYD__V1__SHARE_REQUEST__FLAG__ONLY_UID) && m->uid)
        return bad_argument(problem, "uid is given without ONLY_UID");
    if (!(m->flags & MEMORYD__V1__SHARE_REQUEST__FLAG__ONLY_GID) && m->gid)
        return bad_argument(problem, "gid is given without ONLY_GID");
    if (!(m->flags & MEMORYD__V1__SHARE_REQUEST__FLAG__ONLY_PID) && m->pid)
        return bad_argument(problem, "pid is given without ONLY_PID");
    return 0;
}

static int validate_revoke(const Memoryd__V1__RevokeRequest *m, struct problem *problem)
{
    if (m->token.len && m->token.len != MEMORYD_TOKEN_SIZE)
        return refuse(problem, STATUS_TOKEN_MALFORMED, "a token has %d bytes, not %zu", MEMORYD_TOKEN_SIZE,
                      m->token.len);
    if (!!m->token.len + !!m->serial + !!m->buffer != 1)
        return bad_argument(problem, "exactly one of token, serial and buffer is needed");
    return 0;
}

static int validate_discard(const Memoryd__V1__DiscardRequest *m, struct problem *problem)
{
    if (m->length && m->offset > UINT64_MAX - m->length)
        return refuse(problem, STATUS_SIZE_OVERFLOW, "offset and length together are no 64-bit number");
    return check_id(m->buffer, "buffer", problem);
}

static int validate_name_bind(const Memoryd__V1__NameBindRequest *m, struct problem *problem)
{
    return check_binding(m, problem) ?: check_id(m->buffer, "buffer", problem);
}

static int validate_reserve(const Memoryd__V1__ReserveRequest *m, struct problem *problem)
{
    int r = check_alignment(m->alignment, problem);

    if (!r && m->address && m->alignment && m->address & (m->alignment - 1))
        r = bad_argument(problem, "the requested address is not a multiple of the alignment");
    return r;
}

static int validate_place(const Memoryd__V1__PlaceRequest *m, struct problem *problem)
{
    return check_id(m->buffer, "buffer", problem) ?: check_id(m->reservation, "reservation", problem);
}

static int validate_select_buffers(const Memoryd__V1__SelectRequest *m, struct problem *problem)
{
    const uint32_t flags =
        MEMORYD__V1__SELECT_REQUEST__FLAG__ONLY_UID | MEMORYD__V1__SELECT_REQUEST__FLAG__ONLY_DETACHED;

    if ((unsigned)m->order > MEMORYD__V1__SELECT_REQUEST__ORDER__NEWEST)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "no order of buffers has the number %d", (int)m->order);
    if (m->most > MEMORYD_SELECT_MAX)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "%u rows; at most %d are selected at a time", m->most,
                      MEMORYD_SELECT_MAX);
    if (m->flags & ~flags)
        return refuse(problem, STATUS_INVALID_ARGUMENT, "flags 0x%x have bits without a meaning", m->flags);
    if (!(m->flags & MEMORYD__V1__SELECT_REQUEST__FLAG__ONLY_UID) && m->uid)
        return bad_argument(problem, "uid is given without ONLY_UID");
    return check_pool_name(m->pool, problem);
}

/* Requests with one check or none. Descriptors are counted where they are served; any cursor and any number of rows are
 * allowed. */
#define validate_goodbye(m, problem)           0
#define validate_ping(m, problem)              0
#define validate_release(m, problem)           check_batch((m)->n_buffers, problem)
#define validate_door(m, problem)              0
#define validate_import(m, problem)            ((m)->n_tickets ? check_batch((m)->n_tickets, problem) : 0)
#define validate_adopt(m, problem)             0
#define validate_publish(m, problem)           check_id((m)->buffer, "buffer", problem)
#define validate_move(m, problem)              check_id((m)->buffer, "buffer", problem)
#define validate_destroy(m, problem)           check_id((m)->buffer, "buffer", problem)
#define validate_info(m, problem)              check_id((m)->buffer, "buffer", problem)
#define validate_name_unbind(m, problem)       check_name(name_without_user((m)->name), problem)
#define validate_unreserve(m, problem)         check_id((m)->reservation, "reservation", problem)
#define validate_status(m, problem)            0
#define validate_check(m, problem)             0
#define validate_reload(m, problem)            0
#define validate_upgrade(m, problem)           0
#define validate_list_nodes(m, problem)        0
#define validate_list_pools(m, problem)        0
#define validate_list_buffers(m, problem)      0
#define validate_list_sessions(m, problem)     0
#define validate_list_reservations(m, problem) 0
#define validate_list_names(m, problem)        0
#define validate_list_tokens(m, problem)       0
#define validate_list_history(m, problem)      0
#define validate_list_limits(m, problem)       0

int validate(uint16_t method, const ProtobufCMessage *message, struct problem *problem)
{
    switch ((enum method)method) {
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat, grants) \
    case METHOD_##NAME:                                                                   \
        return validate_##name((const Memoryd__V1__##request *)(const void *)message, problem);
        MEMORYD_METHODS(X)
#undef X
#define X(id, NAME, name, message) case METHOD_EVENT_##NAME:
        MEMORYD_EVENTS(X)
#undef X
        break;
    }
    return STATUS_NO_SUCH_METHOD;
}
