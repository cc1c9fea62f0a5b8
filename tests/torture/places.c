/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of make torture does with buffers that all know of. See torture.h: nothing without the place's lock,
 * and `changing` is set while the broker changes something that a successor could not know.
 */
#include "tests/torture/client.h"

#include <stdlib.h>

#define KEEPING_MS 3600000

static uint32_t number_of(const struct place *place)
{
    return (uint32_t)(place - shared->places);
}

static struct held *held_of(struct client *c, const struct place *place)
{
    return &c->held[number_of(place)];
}

/* ---- the lock ---------------------------------------------------------------------------------------------------- */

/* The place is empty; `final`: what those see who have its last buffer still mapped, or UNKNOWN. */
static void end_generation(struct place *place, uint32_t final)
{
    place->finals[place->generation % FINALS] = final;
    place->generation++;
    place->life = LIFE_NONE;
    place->changing = place->published = place->second_name = false;
    place->n_versions = place->last_version = 0;
}

static uint32_t final_of(const struct place *place)
{
    return place->n_versions == 1 ? place->versions[0] : UNKNOWN;
}

static bool place_lock(struct place *place)
{
    int r = pthread_mutex_trylock(&place->lock);

    if (r == EOWNERDEAD)
        (void)pthread_mutex_consistent(&place->lock);
    else if (r)
        return false;
    if (place->changing)
        end_generation(place, UNKNOWN);
    else if (place->life == LIFE_HELD && is_doomed(place->maker, place->incarnation))
        end_generation(place, final_of(place));
    return true;
}

static void place_unlock(struct place *place)
{
    (void)pthread_mutex_unlock(&place->lock);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static void check_bytes(struct client *c, const struct place *place, const void *address)
{
    uint64_t keys[VERSIONS];

    for (uint32_t i = 0; i < place->n_versions; i++)
        keys[i] = key_of(number_of(place), place->generation, place->versions[i]);
    verify(c, address, place->size, keys, place->n_versions);
}

/* Of a buffer whose life is over for others: its last bytes stay as long as somebody has it. */
static void check_last_bytes(struct client *c, const struct place *place, const struct held *held)
{
    uint32_t final = place->finals[held->generation % FINALS];
    uint64_t key = key_of(number_of(place), held->generation, final);

    if (place->generation - held->generation <= FINALS && final != UNKNOWN)
        verify(c, held->address, memclient_buffer_size(held->buf), &key, 1);
}

static void let_go(struct client *c, struct held *held)
{
    DO(memclient_unmap(c->ctx, held->address, 0));
    held->buf = memclient_buffer_unref(held->buf);
}

static void drop_if_stale(struct client *c, const struct place *place)
{
    struct held *held = held_of(c, place);

    if (!held->buf || (place->life != LIFE_NONE && held->generation == place->generation))
        return;
    check_last_bytes(c, place, held);
    let_go(c, held);
}

static void map_it(struct client *c, struct memclient_buffer *buf, struct held *held)
{
    struct memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;

    /* a child of fork() may have at home what its parent has, or had there */
    options.flags = is_a_child(c) ? MEMCLIENT_MAP_ANYWHERE : 0;
    DO(memclient_map(buf, &options, &held->address));
    held->buf = buf;
}

static void take(struct client *c, const struct place *place, struct memclient_buffer *buf)
{
    struct held *held = held_of(c, place);

    MUST(memclient_buffer_id(buf) == place->id);
    map_it(c, buf, held);
    held->generation = place->generation;
    held->writable = memclient_buffer_rights(buf) & MEMCLIENT_WRITE && !place->published;
    check_bytes(c, place, held->address);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void set_version(struct place *place, uint32_t version)
{
    place->versions[0] = version;
    place->n_versions = 1;
}

static void make_token(struct client *c, struct place *place, struct memclient_buffer *buf)
{
    struct memclient_share_options options = MEMCLIENT_SHARE_OPTIONS_INIT;

    options.rights = place->published || one_in(&c->random, 4) ? MEMCLIENT_READ : 0;
    options.uses = 1u << 30; /* terms, so that none comes along with a buffer, which nobody here would know of */
    if (place->life == LIFE_KEPT) {
        options.flags = MEMCLIENT_TOKEN_KEEPING;
        options.expiry_ms = KEEPING_MS;
    }
    DO(memclient_share(buf, &options, &place->token));
    place->maker = c->number;
    place->incarnation = c->incarnation;
}

static void make(struct client *c, struct place *place)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct held *held = held_of(c, place);
    enum life life = LIFE_HELD + (enum life)below(c, 3);
    struct memclient_buffer *buf;
    char name[64];

    place->changing = true;
    place->size = some_size(c);
    place->published = one_in(&c->random, 5);
    place_name(number_of(place), place->generation, false, name);
    options.flags = place->published ? MEMCLIENT_ALLOC_PUBLISHABLE : 0;
    options.name = life == LIFE_NAMED ? name : NULL;
    DO(memclient_alloc(c->ctx, place->size, &options, &buf));
    place->life = life;
    place->id = memclient_buffer_id(buf);
    map_it(c, buf, held);
    held->generation = place->generation;
    held->writable = !place->published;
    set_version(place, 0);
    check_bytes(c, place, held->address);
    bytes_write(held->address, place->size, key_of(number_of(place), place->generation, 1));
    place->last_version = 1;
    set_version(place, 1);
    if (place->published)
        DO(memclient_publish(buf, 0));
    make_token(c, place, buf);
    place->changing = false;
}

/* ---- using ------------------------------------------------------------------------------------------------------- */

static void open_it(struct client *c, struct place *place)
{
    struct memclient_buffer *buf = NULL;
    char name[64];
    int r;

    place_name(number_of(place), place->generation, place->second_name && one_in(&c->random, 2), name);
    call_begins(c, "open a place's buffer");
    if (place->life == LIFE_NAMED && one_in(&c->random, 2))
        r = memclient_open_name(c->ctx, name, 0, &buf);
    else if (one_in(&c->random, 3))
        r = memclient_open_id(c->ctx, place->id, 0, &buf);
    else
        r = memclient_open_token(c->ctx, &place->token, 0, &buf);
    /* the only claim may have ended with the process that had it, between our look and the broker's */
    if (r == -ESTALE && place->life == LIFE_HELD && is_doomed(place->maker, place->incarnation)) {
        call_ended(c, 0, 0, "", 0);
        atomic_fetch_add(&shared->figures.over_with_its_maker, 1);
        end_generation(place, final_of(place));
        return;
    }
    call_ended(c, r, 0, place->life == LIFE_HELD ? "open (held)" : "open (named or kept)", __LINE__);
    take(c, place, buf);
}

static void rewrite(struct client *c, struct place *place)
{
    const struct held *held = held_of(c, place);
    uint32_t version = place->last_version + 1;

    if (!held->writable)
        return;
    if (place->n_versions == VERSIONS) { /* so many writers died: settle that first */
        bytes_write(held->address, place->size, key_of(number_of(place), place->generation, place->versions[0]));
        set_version(place, place->versions[0]);
    }
    place->last_version = version;
    place->versions[place->n_versions] = version;
    atomic_signal_fence(memory_order_seq_cst);
    place->n_versions++;
    atomic_signal_fence(memory_order_seq_cst);
    bytes_write(held->address, place->size, key_of(number_of(place), place->generation, version));
    atomic_signal_fence(memory_order_seq_cst);
    set_version(place, version);
}

static bool may_manage(struct client *c, const struct place *place)
{
    return memclient_buffer_rights(held_of(c, place)->buf) & MEMCLIENT_MANAGE;
}

static void discard(struct client *c, struct place *place)
{
    const struct held *held = held_of(c, place);

    if (!held->writable || !may_manage(c, place))
        return;
    place->changing = true;
    DO(memclient_discard(held->buf, 0, 0));
    set_version(place, 0);
    place->changing = false;
    check_bytes(c, place, held->address);
}

static void bind_or_unbind(struct client *c, struct place *place)
{
    char name[64];

    if (place->life != LIFE_NAMED || !may_manage(c, place))
        return;
    place_name(number_of(place), place->generation, true, name);
    place->changing = true;
    if (place->second_name) {
        DO(memclient_unbind_name(c->ctx, name));
        MUST_REFUSE(memclient_unbind_name(c->ctx, name), ENOENT);
    } else {
        DO(memclient_bind_name(held_of(c, place)->buf, name, NULL));
        MUST_REFUSE(memclient_bind_name(held_of(c, place)->buf, name, NULL), EEXIST);
    }
    place->second_name = !place->second_name;
    place->changing = false;
}

static void new_token(struct client *c, struct place *place)
{
    struct held *held = held_of(c, place);
    struct memclient_token old = place->token;

    /* of a place that is held the maker stays who it is */
    if (!(memclient_buffer_rights(held->buf) & MEMCLIENT_SHARE) || place->life == LIFE_HELD)
        return;
    place->changing = true;
    make_token(c, place, held->buf);
    DO(memclient_revoke_token(c->ctx, &old));
    MUST_REFUSE(memclient_revoke_token(c->ctx, &old), EKEYREVOKED);
    place->changing = false;
}

static void ask(struct client *c, const struct place *place)
{
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

    DO(memclient_buffer_query(held_of(c, place)->buf, &info));
    MUST(info.id == place->id);
    MUST(info.length == place->size && info.bytes == place->size);
    MUST(info.state == MEMCLIENT_BUFFER_STATE_LIVE);
    MUST(info.names == (place->life == LIFE_NAMED ? 1u + place->second_name : 0u));
    MUST(info.tokens == 1);
    MUST(info.holds >= 1);
    MUST(!(info.flags & MEMCLIENT_BUFFER_PUBLISHED) == !place->published);
}

static void pass_on(struct client *c, const struct place *place)
{
    struct passed passed = {.place = number_of(place), .generation = place->generation};
    int inbox = c->start->inboxes[below(c, CLIENTS)][1];
    int fd;

    DO(memclient_export_fd(held_of(c, place)->buf, 0, &fd));
    if (fd_send(inbox, &passed, sizeof(passed), &fd, 1, MSG_DONTWAIT) > 0)
        atomic_fetch_add(&shared->figures.passed, 1);
    close(fd);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void end(struct client *c, struct place *place)
{
    struct held *held = held_of(c, place);
    bool mine = place->maker == c->number && place->incarnation == c->incarnation;
    char name[64];

    place->changing = true;
    if (one_in(&c->random, 2)) {
        DO(memclient_destroy_id(c->ctx, place->id, 0));
    } else if (place->life == LIFE_NAMED) {
        place_name(number_of(place), place->generation, false, name);
        DO(memclient_unbind_name(c->ctx, name));
        place_name(number_of(place), place->generation, true, name);
        if (place->second_name)
            DO(memclient_unbind_name(c->ctx, name));
    } else if (place->life == LIFE_KEPT) {
        DO(memclient_revoke_token(c->ctx, &place->token));
    } else if (!mine) {
        place->changing = false;
        return;
    }
    /* those who still have it need not hurry */
    check_bytes(c, place, held->address);
    end_generation(place, final_of(place));
    if (one_in(&c->random, 2))
        drop_if_stale(c, place);
}

/* Its maker must keep a place that is held. */
static void forget(struct client *c, struct place *place)
{
    if (place->life != LIFE_HELD || place->maker != c->number || place->incarnation != c->incarnation)
        let_go(c, held_of(c, place));
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */

static void use(struct client *c, struct place *place)
{
    switch (below(c, 32)) {
    case 0 ... 6:
        rewrite(c, place);
        break;
    case 7 ... 9:
        ask(c, place);
        break;
    case 10 ... 13:
        pass_on(c, place);
        break;
    case 14 ... 15:
        bind_or_unbind(c, place);
        break;
    case 16 ... 17:
        new_token(c, place);
        break;
    case 18:
        discard(c, place);
        break;
    case 19:
        end(c, place);
        break;
    case 20 ... 25:
        forget(c, place);
        break;
    default:
        check_bytes(c, place, held_of(c, place)->address);
        break;
    }
}

void place_operation(struct client *c)
{
    struct place *place = &shared->places[below(c, PLACES)];

    if (!place_lock(place))
        return;
    drop_if_stale(c, place);
    if (place->life == LIFE_NONE)
        make(c, place);
    else if (!held_of(c, place)->buf)
        open_it(c, place);
    else
        use(c, place);
    place_unlock(place);
}

void place_receive(struct client *c)
{
    struct passed passed = {.place = PLACES};
    struct memclient_buffer *buf;
    struct fd_received received;
    struct place *place;

    if (is_a_child(c))
        return;
    received = fd_receive(c->start->inboxes[c->number][0], &passed, sizeof(passed), 1, MSG_DONTWAIT);
    if (received.size < 0)
        return;
    MUST(received.size == sizeof(passed) && received.n == 1 && passed.place < PLACES);
    place = &shared->places[passed.place];
    DO(memclient_import_fd(c->ctx, received.fds[0], &buf));
    fd_received_close(&received);
    if (place_lock(place)) {
        drop_if_stale(c, place);
        if (place->life != LIFE_NONE && place->generation == passed.generation && !held_of(c, place)->buf) {
            take(c, place, buf);
            buf = NULL;
        }
        place_unlock(place);
    }
    memclient_buffer_unref(buf);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void places_verify_all(struct client *c)
{
    for (unsigned i = 0; i < PLACES; i++) {
        struct place *place = &shared->places[i];
        const struct held *held = &c->held[i];

        if (!held->buf || !place_lock(place))
            continue;
        if (place->life != LIFE_NONE && place->generation == held->generation)
            check_bytes(c, place, held->address);
        else
            check_last_bytes(c, place, held);
        place_unlock(place);
    }
}

void places_drop_stale(struct client *c)
{
    for (unsigned i = 0; i < PLACES; i++) {
        /* others rest as well, or come to it */
        while (c->held[i].buf && !place_lock(&shared->places[i]))
            wait_a_moment();
        if (!c->held[i].buf)
            continue;
        drop_if_stale(c, &shared->places[i]);
        place_unlock(&shared->places[i]);
    }
}

void places_leave(struct client *c)
{
    for (unsigned i = 0; i < PLACES; i++) {
        struct place *place = &shared->places[i];
        struct held *held = &c->held[i];

        if (!held->buf)
            continue;
        while (!place_lock(place))
            wait_a_moment();
        drop_if_stale(c, place);
        if (held->buf) {
            check_bytes(c, place, held->address);
            if (place->life == LIFE_HELD && place->maker == c->number && place->incarnation == c->incarnation)
                end_generation(place, final_of(place));
            let_go(c, held);
        }
        place_unlock(place);
    }
}
