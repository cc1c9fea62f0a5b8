/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every function once, through the shared library as programs get it, where no broker is: each says so, or
 * what is wrong with its arguments, and writes nothing. And the sizes of the structs, which programs compiled
 * in: they may grow at the end in a later version, with a new line here, and never change otherwise.
 */
#include "tests/support/memory.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memclient/memclient.h>

/* No broker: the function got as far as that. */
#define reaches(call)                                   \
    do {                                                \
        assert_int_equal((call), -ENOENT);              \
        assert_string_not_equal(memclient_error(), ""); \
        assert_int_equal(memclient_error_status(), 0);  \
    } while (0)
#define refuses(call, wanted)                           \
    do {                                                \
        assert_int_equal((call), -(wanted));            \
        assert_string_not_equal(memclient_error(), ""); \
    } while (0)

/* A pointer that must not be NULL: the sentence has the argument's name, as in the header. */
#define refuses_null(call, argument)                                 \
    do {                                                             \
        refuses(call, EINVAL);                                       \
        assert_string_equal(memclient_error(), argument " is NULL"); \
    } while (0)

static int setup(void **state)
{
    setenv("MEMORYD_SOCKET", "/nonexistent/memoryd.sock", 1);
    return 0;
}

static void no_failure_has_no_sentence(void **state)
{
    assert_string_equal(memclient_error(), "");
    assert_int_equal(memclient_error_status(), 0);
    assert_string_equal(memclient_status_name(8), "POOL_FULL");
    assert_string_equal(memclient_status_name(12345), "REFUSED");
    assert_string_equal(memclient_version(), PACKAGE_VERSION);
}

static void contexts(void **state)
{
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context_info info = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_context *ctx = NULL;

    reaches(memclient_context_open(NULL, &ctx));
    reaches(memclient_context_open(&options, &ctx));
    refuses(memclient_context_open(&options, NULL), EINVAL);
    reaches(memclient_context_default(&ctx));
    refuses(memclient_context_default(NULL), EINVAL);
    reaches(memclient_context_query(NULL, &info));
    refuses(memclient_context_query(NULL, NULL), EINVAL);
    reaches(memclient_broker_ping(NULL));
    memclient_context_close(NULL);
    assert_null(ctx);
}

/* A program of a later version: fine, as long as it uses nothing that this one does not know. */
static void options_of_other_versions(void **state)
{
    struct {
        struct memclient_context_options options;
        uint64_t later;
    } larger = {.options = MEMCLIENT_CONTEXT_OPTIONS_INIT};
    struct memclient_context_options smaller = {.size = offsetof(struct memclient_context_options, deadline_ms)};
    struct memclient_context *ctx = NULL;

    larger.options.size = sizeof(larger);
    reaches(memclient_context_open(&larger.options, &ctx));
    larger.later = 1;
    refuses(memclient_context_open(&larger.options, &ctx), EINVAL);
    smaller.autostart = 99; /* beyond its size */
    reaches(memclient_context_open(&smaller, &ctx));
    smaller.size = 0;
    refuses(memclient_context_open(&smaller, &ctx), EINVAL);
}

static void buffers(void **state)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
    struct memclient_buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;
    struct memclient_buffer *buf = NULL;
    uint64_t sizes[2] = {1, 1};

    reaches(memclient_alloc(NULL, 1, &options, &buf));
    refuses_null(memclient_alloc(NULL, 1, &options, NULL), "buf");
    refuses_null(memclient_alloc_many(NULL, 2, sizes, NULL, NULL), "bufs");
    reaches(memclient_alloc_many(NULL, 2, sizes, NULL, &buf));
    refuses(memclient_alloc_many(NULL, 0, sizes, NULL, &buf), EINVAL);
    options.name = "a/b";
    refuses(memclient_alloc_many(NULL, 2, sizes, &options, &buf), EINVAL);
    options.name = "\xff";
    refuses(memclient_alloc(NULL, 1, &options, &buf), EINVAL);
    options.name = NULL;
    options.alignment = 3;
    refuses(memclient_alloc(NULL, 1, &options, &buf), EINVAL);
    assert_null(memclient_buffer_ref(NULL));
    assert_null(memclient_buffer_unref(NULL));
    refuses(memclient_buffer_query(NULL, &info), EINVAL);
    refuses(memclient_publish(NULL, 0), EINVAL);
    refuses(memclient_discard(NULL, 0, 0), EINVAL);
    refuses(memclient_move(NULL, 0), EINVAL);
    reaches(memclient_destroy_id(NULL, 1, 0));
    refuses(memclient_destroy_id(NULL, 0, 0), EINVAL);
    refuses(memclient_destroy_id(NULL, 1, 2), EINVAL);
    assert_null(buf);
}

static void sharing(void **state)
{
    static const char text[] = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
    struct memclient_token token = {{0}};
    struct memclient_buffer *buf = NULL;
    char back[MEMCLIENT_TOKEN_TEXT_SIZE];
    int result = 0, fd = -1;

    refuses(memclient_export_fd(NULL, 0, &fd), EINVAL);
    reaches(memclient_import_fd(NULL, 0, &buf));
    refuses(memclient_import_fd(NULL, -1, &buf), EBADF);
    reaches(memclient_adopt_fd(NULL, 0, &buf));
    refuses(memclient_adopt_fd(NULL, -1, &buf), EBADF);
    refuses_null(memclient_share(NULL, NULL, &token), "buf");
    refuses_null(memclient_share_many(1, &buf, NULL, &token, &result), "a buffer of bufs");
    reaches(memclient_open_token(NULL, &token, 0, &buf));
    reaches(memclient_open_token(NULL, &token, MEMCLIENT_ACCEPT_FOREIGN, &buf));
    refuses(memclient_open_token(NULL, &token, 0x10, &buf), EINVAL);
    refuses(memclient_open_token(NULL, NULL, 0, &buf), EINVAL);
    reaches(memclient_open_token_many(NULL, 1, &token, 0, &buf, &result));
    reaches(memclient_revoke_token(NULL, &token));
    refuses(memclient_revoke_token(NULL, NULL), EINVAL);
    reaches(memclient_revoke_serial(NULL, 1));
    refuses(memclient_revoke_serial(NULL, 0), EINVAL);
    refuses(memclient_revoke_all_tokens(NULL), EINVAL);

    assert_int_equal(memclient_token_parse(text, &token), 0);
    memclient_token_format(&token, back);
    assert_string_equal(back, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
    refuses(memclient_token_parse("0011", &token), EBADMSG);
    refuses(memclient_token_parse("", &token), EBADMSG);
    refuses(memclient_token_parse("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff0", &token),
            EBADMSG);
    refuses(memclient_token_parse(" 0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", &token), EBADMSG);
    refuses(memclient_token_parse(NULL, &token), EINVAL);
}

static void names(void **state)
{
    struct memclient_buffer *buf = NULL;
    char longest[400];

    refuses(memclient_bind_name(NULL, "a", NULL), EINVAL);
    reaches(memclient_open_name(NULL, "a/b", 0, &buf));
    refuses(memclient_open_name(NULL, NULL, 0, &buf), EINVAL);
    reaches(memclient_claim_name(NULL, "a/b", 0, MEMCLIENT_CLAIM_SHARED, &buf));
    refuses(memclient_claim_name(NULL, NULL, 0, MEMCLIENT_CLAIM_SHARED, &buf), EINVAL);
    refuses(memclient_claim_name(NULL, "a/b", 0, MEMCLIENT_CLAIM_NONE, &buf), EINVAL);
    refuses(memclient_claim_name(NULL, "a/b", 0, 3, &buf), EINVAL);
    refuses(memclient_open_name(NULL, "a\nb", 0, &buf), EINVAL);
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    refuses(memclient_open_name(NULL, longest, 0, &buf), EINVAL);
    reaches(memclient_open_id(NULL, 1, 0, &buf));
    refuses(memclient_open_id(NULL, 0, 0, &buf), EINVAL);
    reaches(memclient_unbind_name(NULL, "a/b"));
}

static void addresses(void **state)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_reservation *res = NULL;
    void *p = NULL;

    reaches(memclient_reserve(NULL, 65536, NULL, &res));
    refuses(memclient_reserve(NULL, 0, NULL, &res), EINVAL);
    refuses(memclient_reserve(NULL, 1, NULL, &res), EINVAL);
    refuses(memclient_reserve(NULL, 65536, RESERVE_WITH(.alignment = 3), &res), EINVAL);
    refuses(memclient_reserve(NULL, 65536, RESERVE_WITH(.address = 1), &res), EINVAL);
    refuses(memclient_reserve(NULL, 65536, RESERVE_WITH(.flags = 2), &res), EINVAL);
    reaches(memclient_reserve(NULL, 65536, RESERVE_PRIVATE(), &res));
    refuses(memclient_reserve(NULL, 0, RESERVE_PRIVATE(), &res), EINVAL);
    refuses(memclient_reserve(NULL, 65536, RESERVE_PRIVATE(.alignment = 3), &res), EINVAL);
    refuses(memclient_reserve(NULL, 65536, RESERVE_PRIVATE(.address = 1), &res), EINVAL);
    assert_int_equal(memclient_reservation_release(NULL), 0);
    refuses_null(memclient_map(NULL, NULL, &p), "buf");
    refuses(memclient_map_many(1, NULL, NULL, &p), EINVAL);
    refuses(memclient_make_home(NULL), EINVAL);
    reaches(memclient_protect(NULL, &info, 4096, MEMCLIENT_READ));
    refuses(memclient_protect(NULL, &info, 4096, 64), EINVAL);
    reaches(memclient_unmap(NULL, &info, 4096));
    reaches(memclient_dont_fork(NULL, &info, 4096));
    refuses(memclient_address_query(&info, &info), EFAULT);
    refuses(memclient_address_query(&info, NULL), EINVAL);
    assert_null(p);
}

static void events(void **state)
{
    struct memclient_event event = MEMCLIENT_EVENT_INIT;
    int fd = -1;

    reaches(memclient_event_subscribe(NULL, MEMCLIENT_EVENT_NAME));
    reaches(memclient_event_subscribe_buffer(NULL, 1, MEMCLIENT_EVENT_HELD));
    reaches(memclient_event_subscribe_name(NULL, "a", MEMCLIENT_EVENT_NAME));
    reaches(memclient_event_fd(NULL, &fd));
    reaches(memclient_event_next(NULL, &event));
    assert_int_equal(fd, -1);
}

static int never(const void *item, void *data)
{
    (void)item;
    (void)data;
    abort();
}

#define LIST(name, type)                                         \
    static int never_##name(const struct type *item, void *data) \
    {                                                            \
        return never(item, data);                                \
    }
LIST(nodes, memclient_node_info)
LIST(pools, memclient_pool_info)
LIST(buffers, memclient_buffer_info)
LIST(sessions, memclient_session_info)
LIST(reservations, memclient_reservation_info)
LIST(names, memclient_name_info)
LIST(tokens, memclient_token_info)
LIST(history, memclient_history_entry)
LIST(limits, memclient_limit_info)

static void listings(void **state)
{
    struct memclient_broker_info status = MEMCLIENT_BROKER_INFO_INIT;
    struct memclient_check_result result = MEMCLIENT_CHECK_RESULT_INIT;
    struct memclient_reload_result reloaded = MEMCLIENT_RELOAD_RESULT_INIT;
    struct memclient_select_options select = MEMCLIENT_SELECT_OPTIONS_INIT;
    struct memclient_buffer_sums sums = MEMCLIENT_BUFFER_SUMS_INIT;

    reaches(memclient_broker_query(NULL, &status));
    refuses_null(memclient_broker_query(NULL, NULL), "info");
    refuses_null(memclient_broker_check(NULL, NULL), "result");
    refuses_null(memclient_broker_reload(NULL, NULL), "result");
    reaches(memclient_broker_check(NULL, &result));
    reaches(memclient_broker_upgrade(NULL));
    reaches(memclient_broker_reload(NULL, &reloaded));
    reaches(memclient_list_nodes(NULL, never_nodes, NULL));
    reaches(memclient_list_pools(NULL, never_pools, NULL));
    reaches(memclient_list_buffers(NULL, never_buffers, NULL));
    reaches(memclient_list_sessions(NULL, never_sessions, NULL));
    reaches(memclient_list_reservations(NULL, never_reservations, NULL));
    reaches(memclient_list_names(NULL, never_names, NULL));
    reaches(memclient_list_tokens(NULL, never_tokens, NULL));
    refuses(memclient_list_tokens(NULL, NULL, NULL), EINVAL);
    reaches(memclient_list_history(NULL, 0, never_history, NULL));
    refuses(memclient_list_history(NULL, 0, NULL, NULL), EINVAL);
    reaches(memclient_list_limits(NULL, never_limits, NULL));
    reaches(memclient_list_limits_of(NULL, 0, never_limits, NULL));
    reaches(memclient_select_buffers(NULL, NULL, &sums, never_buffers, NULL));
    reaches(memclient_select_buffers(NULL, &select, NULL, NULL, NULL));
    select.most = 1;
    refuses(memclient_select_buffers(NULL, &select, NULL, NULL, NULL), EINVAL);
    select.order = 4;
    refuses(memclient_select_buffers(NULL, &select, NULL, never_buffers, NULL), EINVAL);
    select.order = 0;
    select.flags = 4;
    refuses(memclient_select_buffers(NULL, &select, NULL, never_buffers, NULL), EINVAL);
    select.flags = 0;
    select.pid = -1;
    refuses(memclient_select_buffers(NULL, &select, NULL, never_buffers, NULL), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_failure_has_no_sentence),
        cmocka_unit_test(contexts),
        cmocka_unit_test(options_of_other_versions),
        cmocka_unit_test(buffers),
        cmocka_unit_test(sharing),
        cmocka_unit_test(names),
        cmocka_unit_test(addresses),
        cmocka_unit_test(events),
        cmocka_unit_test(listings),
    };

    return test_run(tests, setup, NULL);
}
