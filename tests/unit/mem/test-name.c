/* SPDX-License-Identifier: Apache-2.0 */
/* Names: what may be one, whose it is, and who may have what by it. */
#include "tests/support/test.h"

#include "mem/name.h"
#include "tests/unit/mem/state.h"

static struct names names;
static struct buffer *buffer;

static int setup(void **state)
{
    state_setup(state);
    names_init(&names, s.ledger);
    buffer = state_live_buffer();
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(buffer->n_names, 0);
    assert_int_equal(account_used(s.account, ACCOUNT_NAMES), 0);
    buffer_free(&s.buffers, buffer);
    names_deinit(&names);
    return state_teardown(state);
}

static int bind_as(const char *text, struct name_new_args args, struct name **ret)
{
    int r;

    assert_int_equal(name_parse(text, 1000, &args.key, NULL), 0);
    args.buffer = buffer;
    args.account = s.account;
    args.session = 99;
    args.in_session = &s.in_session;
    r = name_new(&names, &args, ret, NULL);
    if (!r)
        record_commit(&names.table, *ret);
    return r;
}

static struct name *find_as(const char *text, uid_t uid)
{
    struct name_key key;

    assert_int_equal(name_parse(text, uid, &key, NULL), 0);
    return names_find(&names, &key);
}

static void test_parsing(void **state)
{
    static const struct {
        const char *text;
        const char *path; /* NULL = no name */
        uid_t uid;
    } cases[] = {
        {"a", "a", 7},
        {"a/b", "a/b", 7},
        {"a b", "a b", 7},
        {"...", "...", 7},
        {".a/b.", ".a/b.", 7},
        {"a/..b", "a/..b", 7},
        {"\xc3\xa4/\xe2\x82\xac/\xf0\x9f\x98\x80", "\xc3\xa4/\xe2\x82\xac/\xf0\x9f\x98\x80", 7},
        {"uid", "uid", 7},
        {"UID:5/a", "UID:5/a", 7},
        {"a/uid:5", "a/uid:5", 7},
        {"uid:1000/a/b", "a/b", 1000},
        {"uid:0/a", "a", 0},
        {"uid:4294967294/a", "a", 4294967294u},
        {"uid:5/uid:6/a", "uid:6/a", 5},
        {"", NULL, 0},
        {"/", NULL, 0},
        {"/a", NULL, 0},
        {"a/", NULL, 0},
        {"a//b", NULL, 0},
        {".", NULL, 0},
        {"..", NULL, 0},
        {"a/.", NULL, 0},
        {"../a", NULL, 0},
        {"a/../b", NULL, 0},
        {"a\nb", NULL, 0},
        {"a\x7f", NULL, 0},
        {"\x1b[31m", NULL, 0},
        {"\xc2\x85", NULL, 0},     /* a C1 control */
        {"\xff", NULL, 0},         /* no UTF-8 */
        {"\xc0\xaf", NULL, 0},     /* a slash, overlong */
        {"\xed\xa0\x80", NULL, 0}, /* half a surrogate pair */
        {"a\xe2\x82", NULL, 0},    /* cut short */
        {"uid:", NULL, 0},
        {"uid:5", NULL, 0},
        {"uid:5/", NULL, 0},
        {"uid:/a", NULL, 0},
        {"uid:x/a", NULL, 0},
        {"uid:5x/a", NULL, 0},
        {"uid:-1/a", NULL, 0},
        {"uid: 5/a", NULL, 0},
        {"uid:05/a", NULL, 0},
        {"uid:4294967295/a", NULL, 0},
        {"uid:99999999999999999999999/a", NULL, 0},
        {"uid:5//a", NULL, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct problem problem = PROBLEM_NULL;
        struct name_key key = {.uid = 4242};
        int r = name_parse(cases[i].text, 7, &key, &problem);

        if (!cases[i].path) {
            if (r != STATUS_BAD_NAME || !problem.sentence[0] || key.uid != 4242)
                fail_msg("\"%s\" should be no name", cases[i].text);
            continue;
        }
        if (r)
            fail_msg("\"%s\": %s", cases[i].text, problem.sentence);
        assert_string_equal(key.path, cases[i].path);
        assert_int_equal(key.length, strlen(cases[i].path));
        assert_int_equal(key.uid, cases[i].uid);
    }
}

static void test_length(void **state)
{
    char text[MEMORYD_NAME_MAX + 32];
    struct name_key key;
    struct name *name;
    char shown[NAME_TEXT_SIZE];

    memset(text, 'x', sizeof(text));
    text[MEMORYD_NAME_MAX + 1] = '\0';
    assert_int_equal(name_parse(text, 7, &key, NULL), STATUS_BAD_NAME);
    text[MEMORYD_NAME_MAX] = '\0';
    assert_int_equal(name_parse(text, 7, &key, NULL), 0);
    assert_int_equal(key.length, MEMORYD_NAME_MAX);
    assert_int_equal(bind_as(text, (struct name_new_args){.policy = NAME_KEEP}, &name), 0);
    assert_string_equal(name->record->path, text);
    /* whose it is does not count */
    memcpy(text, "uid:4294967294/", 15);
    memset(text + 15, 'x', MEMORYD_NAME_MAX);
    text[15 + MEMORYD_NAME_MAX] = '\0';
    assert_int_equal(name_parse(text, 7, &key, NULL), 0);
    record_change(&names.table, name)->uid = 4294967294u;
    name_text(name, 7, shown);
    assert_string_equal(shown, text);
    record_change(&names.table, name)->uid = 1000;
    name_free(name);
}

static void test_one_namespace_for_each_user(void **state)
{
    struct name *mine, *yours, *none = NULL;
    char text[NAME_TEXT_SIZE];

    assert_int_equal(bind_as("a/b", (struct name_new_args){.policy = NAME_FREE}, &mine), 0);
    assert_int_equal(bind_as("uid:5/a/b", (struct name_new_args){.policy = NAME_KEEP}, &yours), 0);
    assert_int_equal(bind_as("a/b", (struct name_new_args){.policy = NAME_KEEP}, &none), STATUS_NAME_EXISTS);
    assert_null(none);
    assert_ptr_equal(find_as("a/b", 1000), mine);
    assert_ptr_equal(find_as("a/b", 5), yours);
    assert_ptr_equal(find_as("uid:1000/a/b", 5), mine);
    assert_null(find_as("a", 1000));
    assert_null(find_as("a/b/c", 1000));
    assert_null(find_as("a/b", 6));
    assert_ptr_equal(names_find_id(&names, mine->record->head.id), mine);
    name_text(mine, 1000, text);
    assert_string_equal(text, "a/b");
    name_text(mine, 5, text);
    assert_string_equal(text, "uid:1000/a/b");

    assert_int_equal(buffer->n_names, 2);
    assert_true(buffer_is_kept(buffer));
    name_leave_session(mine);
    assert_int_equal(mine->record->session, 0);
    assert_ptr_equal(list_first(&s.in_session), &yours->in_session);
    name_free(mine);
    assert_null(find_as("a/b", 1000));
    assert_int_equal(bind_as("a/b", (struct name_new_args){.policy = NAME_KEEP}, &mine), 0);
    name_free(mine);
    name_free(yours);
    assert_false(buffer_is_kept(buffer));
}

/* A name that is being bound is not found, and taken all the same. */
static void test_name_being_bound(void **state)
{
    struct name_new_args args = {.buffer = buffer, .account = s.account, .policy = NAME_KEEP};
    struct name *name, *none = NULL;

    assert_int_equal(name_parse("x", 1000, &args.key, NULL), 0);
    assert_int_equal(name_new(&names, &args, &name, NULL), 0);
    assert_null(find_as("x", 1000));
    assert_int_equal(bind_as("x", args, &none), STATUS_NAME_EXISTS);
    name_free(name);
    s.accounts.limits.user[ACCOUNT_NAMES] = 0;
    assert_int_equal(bind_as("x", args, &none), STATUS_LIMIT);
    s.accounts.limits.user[ACCOUNT_NAMES] = 1;
    assert_int_equal(bind_as("x", args, &name), 0);
    name_free(name);
}

static void test_rights(void **state)
{
    gid_t groups[] = {20};
    struct peer owner = {.uid = 1000, .gid = 1}, member = {.uid = 2, .gid = 2, .groups = groups, .n_groups = 1},
                primary = {.uid = 3, .gid = 20}, stranger = {.uid = 4, .gid = 4};
    struct name *name;

    assert_int_equal(bind_as("a",
                             (struct name_new_args){
                                 .gid = 20, .group_rights = RIGHT_WRITE | RIGHT_SHARE, .other_rights = RIGHT_READ},
                             &name),
                     0);
    assert_int_equal(name_rights(name, &owner, false), RIGHTS_ALL);
    assert_int_equal(name_rights(name, &stranger, true), RIGHTS_ALL);
    assert_int_equal(name_rights(name, &member, false), RIGHT_READ | RIGHT_WRITE | RIGHT_SHARE);
    assert_int_equal(name_rights(name, &primary, false), RIGHT_READ | RIGHT_WRITE | RIGHT_SHARE);
    assert_int_equal(name_rights(name, &stranger, false), RIGHT_READ);
    name_free(name);
    assert_int_equal(bind_as("a", (struct name_new_args){.gid = 4}, &name), 0);
    assert_int_equal(name_rights(name, &stranger, false), 0);
    assert_int_equal(name_rights(name, &owner, false), RIGHTS_ALL);
    name_free(name);
}

static void test_many_and_walk(void **state)
{
    enum { N = 1000 };
    static struct name *all[N];
    uint64_t cursor = 0;
    unsigned met = 0;
    char text[32];

    for (int i = 0; i < N; i++) {
        (void)snprintf(text, sizeof(text), "uid:%d/n%d", i % 7, i * 7919 % N);
        assert_int_equal(bind_as(text, (struct name_new_args){.policy = NAME_KEEP}, &all[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        (void)snprintf(text, sizeof(text), "uid:%d/n%d", i % 7, i * 7919 % N);
        assert_ptr_equal(find_as(text, 1), all[i]);
    }
    do {
        unsigned budget = 10;

        while (table_next(&names.table, &cursor, &budget))
            met++;
    } while (cursor);
    assert_int_equal(met, N);
    for (int i = 0; i < N; i++)
        name_free(all[i]);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_parsing),          T(test_length), T(test_one_namespace_for_each_user),
        T(test_name_being_bound), T(test_rights), T(test_many_and_walk),
    };

    return test_run(tests, NULL, NULL);
}
