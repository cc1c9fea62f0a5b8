/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I7: what one user does is not told to another. Who was given a buffer sees what it is and its own part in it; who was
 * not is refused without a word of whose it is. No listing has a secret, and no memory file has a name in /proc that
 * says more than that it is a buffer.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const secret = "payroll/2026";

struct guest {
    const char *socket;
    uint64_t own;   /* a buffer that it was not given */
    uint64_t owner; /* a session of the owner */
    char uid[16];   /* the owner's, as a sentence would have it */
};

static int count_rows(const void *row, void *n)
{
    (void)row;
    ++*(unsigned *)n;
    return 0;
}

static int count_name(const struct memclient_name_info *row, void *n)
{
    return count_rows(row, n);
}

static int count_token(const struct memclient_token_info *row, void *n)
{
    return count_rows(row, n);
}

static int count_buffer(const struct memclient_buffer_info *row, void *n)
{
    return count_rows(row, n);
}

static int count_foreign_session(const struct memclient_session_info *row, void *n)
{
    *(unsigned *)n += row->uid != UID_STRANGER;
    return 0;
}

/* Listings are of one's own, and of what one was given. */
static void check_listings(struct memclient_context *ctx, unsigned buffers)
{
    unsigned n = 0;

    CHECK_DONE(memclient_list_names(ctx, count_name, &n));
    CHECK_DONE(memclient_list_tokens(ctx, count_token, &n));
    CHECK_DONE(memclient_list_sessions(ctx, count_foreign_session, &n));
    CHECK(n == 0);
    CHECK_DONE(memclient_list_buffers(ctx, count_buffer, &n));
    CHECK(n == buffers);
}

static void check_refusals(struct memclient_context *ctx, const struct guest *guest)
{
    struct memclient_buffer *none;

    CHECK_REFUSED(memclient_open_id(ctx, guest->own, 0, &none), EACCES);
    CHECK(!strstr(memclient_error(), guest->uid) && !strstr(memclient_error(), secret));
    CHECK_REFUSED(memclient_destroy_id(ctx, guest->own, 0), EACCES);
    CHECK(!strstr(memclient_error(), guest->uid) && !strstr(memclient_error(), secret));
}

/* The file of a mapping: "memfd:memoryd-7 (deleted)". */
static void check_proc(const void *p, uint64_t id)
{
    char line[600], wanted[64], start[32];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    CHECK(maps != NULL);
    snprintf(wanted, sizeof(wanted), "/memfd:memoryd-%" PRIu64 " (deleted)\n", id);
    snprintf(start, sizeof(start), "%" PRIxPTR "-", (uintptr_t)p);
    while (fgets(line, sizeof(line), maps))
        if (!strncmp(line, start, strlen(start)))
            found = strchr(line, '/') && !strcmp(strchr(line, '/'), wanted);
    fclose(maps);
    CHECK(found);
}

static void look_around(int channel, void *context)
{
    const struct guest *guest = context;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_token token;
    struct memclient_buffer *buf;
    struct memclient_context *ctx;
    struct guest told;
    void *p;

    become(UID_STRANGER);
    CHECK(take_bytes(channel, &told, sizeof(told)));
    CHECK(take_bytes(channel, &token, sizeof(token)));
    ctx = broker_connect_in_child(guest->socket);
    check_listings(ctx, 0);
    check_refusals(ctx, &told);
    CHECK_DONE(memclient_open_token(ctx, &token, MEMCLIENT_READ, &buf));
    CHECK_DONE(memclient_map(buf, NULL, &p));
    CHECK_DONE(memclient_buffer_query(buf, &info));
    CHECK(!strcmp(info.name, ""));
    CHECK(info.holds == 2 && info.n_holders == 1 && info.holders[0] != told.owner);
    check_proc(p, info.id);
    check_listings(ctx, 1);
    /* a name that grants it something is no secret */
    tell(channel);
    hear(channel);
    CHECK_DONE(memclient_buffer_query(buf, &info));
    CHECK(strstr(info.name, "/public"));
    memclient_context_close(ctx);
}

static void I7_who_was_given_a_buffer_sees_its_own_part(void **state)
{
    struct memclient_share_options terms = MEMCLIENT_SHARE_OPTIONS_INIT;
    struct memclient_name_options all = MEMCLIENT_NAME_OPTIONS_INIT;
    struct broker_process *broker;
    struct memclient_buffer *given, *own;
    struct memclient_buffer_info info;
    struct memclient_token token;
    struct memclient_context *ctx;
    struct guest guest;
    struct child child;

    test_needs_root();
    broker = broker_for_test(NULL);
    guest = (struct guest){.socket = broker->socket};
    child_start(&child, look_around, &guest);
    ctx = broker_connect(broker);
    assert_done(memclient_alloc(ctx, 4096, NULL, &given));
    assert_done(memclient_alloc(ctx, 4096, NULL, &own));
    assert_done(memclient_bind_name(given, secret, NULL));
    assert_done(memclient_bind_name(own, "payroll/2026-2", NULL));
    info = broker_info(given);
    guest.own = memclient_buffer_id(own);
    guest.owner = info.holders[0];
    snprintf(guest.uid, sizeof(guest.uid), "uid %u's", (unsigned)getuid());
    terms.rights = MEMCLIENT_READ;
    assert_done(memclient_share(given, &terms, &token));
    assert_true(pass_bytes(child.channel, &guest, sizeof(guest)));
    assert_true(pass_bytes(child.channel, &token, sizeof(token)));
    child_hear(&child);
    /* the owner sees all of it */
    info = broker_info(given);
    assert_int_equal(info.n_holders, 2);
    assert_string_equal(info.name, secret);
    all.other_rights = MEMCLIENT_READ;
    assert_done(memclient_bind_name(given, "public", &all));
    child_tell(&child);
    child_finish(&child);
    assert_done(memclient_unbind_name(ctx, "public"));
    assert_done(memclient_unbind_name(ctx, secret));
    assert_done(memclient_unbind_name(ctx, "payroll/2026-2"));
    memclient_buffer_unref(given);
    memclient_buffer_unref(own);
    memclient_context_close(ctx);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(I7_who_was_given_a_buffer_sees_its_own_part),
    };

    return test_run(tests, NULL, NULL);
}
