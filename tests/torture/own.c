/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of make torture does with buffers that nobody else knows of. */
#include "tests/torture/client.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TIGHT_SIZE (3 * MIB)
#define LARGE_SIZE (32 * MIB)

static uint64_t new_key(struct client *c)
{
    return key_of(PLACES + c->number, c->incarnation << 18 ^ ++c->serial, 1);
}

/* The child of a parent that was killed may have anything where others have their homes by now. */
static void map(struct client *c, struct own *own)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    options.flags = is_a_child(c) ? MEMCLIENT_MAP_ANYWHERE : 0;
    DO(memclient_map(own->buf, &options, &own->address));
}

static void forget(struct client *c, struct own *own)
{
    if (!own->buf)
        return;
    verify(c, own->address, own->size, &own->key, 1);
    DO(memclient_unmap(c->ctx, own->address, 0));
    own->buf = memclient_buffer_unref(own->buf);
}

static void fill(struct client *c, struct own *own)
{
    own->key = new_key(c);
    bytes_write(own->address, own->size, own->key);
}

static void make_many(struct client *c)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer *bufs[OWN_BUFFERS];
    uint64_t sizes[OWN_BUFFERS];
    size_t n = 1 + below(c, OWN_BUFFERS / 2);

    for (size_t i = 0; i < n; i++)
        sizes[i] = some_size(c);
    DO(memclient_alloc_many(c->ctx, n, sizes, &options, bufs));
    for (size_t i = 0; i < n; i++) {
        struct own *own = &c->own[below(c, OWN_BUFFERS)];

        forget(c, own);
        own->buf = bufs[i];
        map(c, own);
        own->size = sizes[i];
        own->key = 0;
        verify(c, own->address, own->size, &own->key, 1);
        fill(c, own);
    }
}

/* Twice in this process, and read-only for a while. */
static void map_again(struct client *c, struct own *own)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    void *again;

    options.flags = MEMCLIENT_MAP_NOT_HOME;
    DO(memclient_map(own->buf, &options, &again));
    MUST(again != own->address);
    own->key = new_key(c);
    bytes_write(again, own->size, own->key);
    DO(memclient_protect(c->ctx, again, 0, MEMCLIENT_READ));
    DO(memclient_address_query(again, &info));
    MUST(info.buffer == own->buf && info.access == MEMCLIENT_READ);
    verify(c, again, own->size, &own->key, 1);
    DO(memclient_unmap(c->ctx, again, 0));
    verify(c, own->address, own->size, &own->key, 1);
}

static void discard(struct client *c, struct own *own)
{
    DO(memclient_discard(own->buf, 0, 0));
    own->key = 0;
    verify(c, own->address, own->size, &own->key, 1);
    fill(c, own);
}

static void export_and_import(struct client *c, struct own *own)
{
    struct memclient_buffer *again;
    int fd;

    DO(memclient_export_fd(own->buf, 0, &fd));
    DO(memclient_import_fd(c->ctx, fd, &again));
    MUST(again == own->buf);
    close(fd);
    memclient_buffer_unref(again);
}

/* Memory of nobody's but this process's, and back again. */
static void adopt_and_export(struct client *c)
{
    struct memclient_buffer *buf;
    int fd = memfd_create("elsewhere", MFD_CLOEXEC), again;
    struct stat here, there;

    MUST(fd >= 0 && ftruncate(fd, 4096) == 0);
    DO(memclient_adopt_fd(c->ctx, fd, &buf));
    DO(memclient_export_fd(buf, 0, &again));
    MUST(fstat(fd, &here) == 0 && fstat(again, &there) == 0 && here.st_ino == there.st_ino);
    close(fd);
    close(again);
    memclient_buffer_unref(buf);
}

/* As often as it may be used and not once more: neither a use nor a refusal happens twice. */
static void use_up_tokens(struct client *c, struct own *own)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_buffer *bufs[2], *again;
    struct memclient_token tokens[2];
    int results[2];

    bufs[0] = bufs[1] = own->buf;
    options.uses = 2;
    options.flags = one_in(&c->random, 2) ? MEMCLIENT_TOKEN_KEEPING : 0;
    DO(memclient_share_many(2, bufs, &options, tokens, results));
    MUST(results[0] == 0 && results[1] == 0);
    DO(memclient_open_token_many(c->ctx, 2, tokens, 0, bufs, results));
    MUST(results[0] == 0 && results[1] == 0);
    MUST(bufs[0] == own->buf && bufs[1] == own->buf);
    memclient_buffer_unref(bufs[0]);
    memclient_buffer_unref(bufs[1]);
    DO(memclient_open_token(c->ctx, &tokens[0], 0, &again));
    memclient_buffer_unref(again);
    MUST_REFUSE(memclient_open_token(c->ctx, &tokens[0], 0, &again), EKEYEXPIRED);
    if (one_in(&c->random, 2)) {
        DO(memclient_revoke_token(c->ctx, &tokens[1]));
        MUST_REFUSE(memclient_open_token(c->ctx, &tokens[1], 0, &again), EKEYREVOKED);
    } else {
        DO(memclient_revoke_all_tokens(own->buf));
    }
}

static void publish(struct client *c)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct own own = {.size = some_size(c)};
    int fd;

    options.flags = MEMCLIENT_ALLOC_PUBLISHABLE;
    DO(memclient_alloc(c->ctx, own.size, &options, &own.buf));
    map(c, &own);
    fill(c, &own);
    DO(memclient_publish(own.buf, 0));
    MUST_REFUSE(memclient_publish(own.buf, 0), EROFS);
    MUST_REFUSE(memclient_export_fd(own.buf, MEMCLIENT_READ | MEMCLIENT_WRITE, &fd), EROFS);
    forget(c, &own);
}

static void reserve_or_not(struct client *c)
{
    struct memclient_reservation **slot = &c->reservations[below(c, OWN_RESERVATIONS)];

    if (is_a_child(c))
        return; /* as for map() */
    if (*slot) {
        DO(memclient_reservation_release(*slot));
        *slot = NULL;
    } else {
        DO(memclient_reserve(c->ctx, (1 + below(c, 64)) * page_size(), NULL, slot));
    }
}

static void place(struct client *c)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_map_options where = MEMCLIENT_MAP_OPTIONS_INIT;
    struct memclient_reservation *reservation;
    struct own own = {.size = some_size(c)};

    if (is_a_child(c))
        return; /* as for map() */
    options.flags = MEMCLIENT_ALLOC_NO_HOME;
    DO(memclient_reserve(c->ctx, own.size + page_size(), NULL, &reservation));
    DO(memclient_alloc(c->ctx, own.size, &options, &own.buf));
    where.address = (char *)memclient_reservation_address(reservation) + page_size();
    DO(memclient_map(own.buf, &where, &own.address));
    MUST(own.address == where.address);
    MUST(memclient_buffer_home(own.buf) == where.address);
    fill(c, &own);
    forget(c, &own);
    DO(memclient_reservation_release(reservation));
}

/* Of a pool that has not room for all: it comes when others have given back. */
static void wait_for_room(struct client *c)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct own own = {.size = TIGHT_SIZE};

    options.pool = "tight";
    options.wait_ms = MEMCLIENT_FOREVER;
    DO(memclient_alloc(c->ctx, own.size, &options, &own.buf));
    map(c, &own);
    fill(c, &own);
    forget(c, &own);
}

static void be_large(struct client *c)
{
    struct own own = {.size = LARGE_SIZE};

    DO(memclient_alloc(c->ctx, own.size, NULL, &own.buf));
    map(c, &own);
    own.key = 0;
    verify(c, own.address, own.size, &own.key, 1);
    forget(c, &own);
}

void own_operation(struct client *c)
{
    struct own *own = &c->own[below(c, OWN_BUFFERS)];

    if (!own->buf || one_in(&c->random, 12)) {
        make_many(c);
        return;
    }
    verify(c, own->address, own->size, &own->key, 1);
    switch (below(c, 40)) {
    case 0 ... 5:
        map_again(c, own);
        break;
    case 6 ... 8:
        discard(c, own);
        break;
    case 9 ... 14:
        export_and_import(c, own);
        break;
    case 15 ... 18:
        use_up_tokens(c, own);
        break;
    case 19 ... 20:
        publish(c);
        break;
    case 21 ... 26:
        reserve_or_not(c);
        break;
    case 27 ... 28:
        place(c);
        break;
    case 29:
        wait_for_room(c);
        break;
    case 30:
        if (one_in(&c->random, 8))
            be_large(c);
        break;
    case 31:
        adopt_and_export(c);
        break;
    default:
        fill(c, own);
        break;
    }
}

void own_verify_all(struct client *c)
{
    for (unsigned i = 0; i < OWN_BUFFERS; i++)
        if (c->own[i].buf)
            verify(c, c->own[i].address, c->own[i].size, &c->own[i].key, 1);
}

void own_forget_all(struct client *c)
{
    for (unsigned i = 0; i < OWN_BUFFERS; i++)
        forget(c, &c->own[i]);
    for (unsigned i = 0; i < OWN_RESERVATIONS; i++)
        if (c->reservations[i]) {
            DO(memclient_reservation_release(c->reservations[i]));
            c->reservations[i] = NULL;
        }
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

#define COUNTER(what)                                                        \
    static int count_##what(const struct memclient_##what *item, void *data) \
    {                                                                        \
        (void)item;                                                          \
        ++*(uint64_t *)data;                                                 \
        return 0;                                                            \
    }
COUNTER(node_info)
COUNTER(pool_info)
COUNTER(session_info)
COUNTER(reservation_info)
COUNTER(name_info)
COUNTER(token_info)
COUNTER(buffer_info)

void ask_something(struct client *c)
{
    struct memclient_context_info connection = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    uint64_t n = 0;

    switch (below(c, 20)) {
    case 0:
        DO(memclient_list_nodes(c->ctx, count_node_info, &n));
        MUST(n >= 1);
        break;
    case 1:
        DO(memclient_list_pools(c->ctx, count_pool_info, &n));
        MUST(n >= 2);
        break;
    case 2:
        DO(memclient_list_sessions(c->ctx, count_session_info, &n));
        MUST(n >= 1);
        break;
    case 3:
        DO(memclient_list_reservations(c->ctx, count_reservation_info, &n));
        break;
    case 4:
        DO(memclient_list_names(c->ctx, count_name_info, &n));
        break;
    case 5:
        DO(memclient_list_tokens(c->ctx, count_token_info, &n));
        break;
    case 6:
        DO(memclient_list_buffers(c->ctx, count_buffer_info, &n));
        break;
    case 7:
        DO(memclient_broker_query(c->ctx, &status));
        MUST(status.sessions >= 1);
        break;
    case 8:
        DO(memclient_context_query(c->ctx, &connection));
        break;
    case 9:
        DO(memclient_broker_check(c->ctx, &result));
        if (result.faults)
            complain("the broker's sums do not agree: %s", result.sentences[0]);
        MUST(result.faults == 0);
        break;
    case 10:
        DO(memclient_event_subscribe(c->ctx, (unsigned)below(c, 16)));
        break;
    case 11:
        while (memclient_event_next(c->ctx, &event) == 0)
            n++;
        break;
    default:
        DO(memclient_broker_ping(c->ctx));
        break;
    }
}
