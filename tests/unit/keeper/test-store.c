/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's table, against a plain array: whatever is put in, replaced and removed, in any order. */

#include <fcntl.h>
#include <string.h>

#include "keeper/store.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"

/* The table never looks at a descriptor but to close it, so numbers stand for them. */
#define IDS   200
#define KINDS 3
#define STEPS 200000

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void compare(const struct store *store, int model[KINDS + 1][IDS])
{
    const struct store_slot *slot;
    size_t position = 0;
    size_t n = 0;

    while ((slot = store_next(store, &position))) {
        assert_in_range(slot->key.kind, 1, KINDS);
        assert_int_equal(slot->fd, model[slot->key.kind][slot->key.id]);
        n++;
    }
    assert_int_equal(n, store->n);
    for (uint32_t kind = 1; kind <= KINDS; kind++)
        for (uint64_t id = 0; id < IDS; id++) {
            assert_int_equal(store_get(store, KEEPER_KEY(kind, id)), model[kind][id]);
            n -= model[kind][id] >= 0;
        }
    assert_int_equal(n, 0);
}

static void test_model(void **state)
{
    static int model[KINDS + 1][IDS];
    struct store store;
    uint64_t random = 4711;

    memset(model, -1, sizeof(model));
    /* just as large as has to be: everything collides */
    assert_int_equal(store_init(&store, IDS * KINDS), 0);
    for (int step = 0; step < STEPS; step++) {
        uint32_t kind = (uint32_t)(1 + next_random(&random) % KINDS);
        uint64_t id = next_random(&random) % IDS;

        if (next_random(&random) % 2) {
            assert_int_equal(store_put(&store, KEEPER_KEY(kind, id), step), model[kind][id]);
            model[kind][id] = step;
        } else {
            assert_int_equal(store_remove(&store, KEEPER_KEY(kind, id)), model[kind][id]);
            model[kind][id] = -1;
        }
        if (step % 1000 == 0)
            compare(&store, model);
    }
    compare(&store, model);
    for (uint32_t kind = 1; kind <= KINDS; kind++)
        for (uint64_t id = 0; id < IDS; id++)
            (void)store_remove(&store, KEEPER_KEY(kind, id));
    assert_int_equal(store.n, 0);
    store_deinit(&store);
}

static void test_descriptors(void **state)
{
    unsigned before = fd_count();
    struct store store;

    assert_int_equal(store_init(&store, 64), 0);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(store_take_in(&store, KEEPER_BUFFER, i % 5, fcntl(0, F_DUPFD_CLOEXEC, 0)), 0);
    assert_int_equal(store.n, 5);
    assert_int_equal(fd_count(), before + 5);
    /* there is no such kind: it is closed */
    assert_int_equal(store_take_in(&store, (enum keeper_kind)0, 1, fcntl(0, F_DUPFD_CLOEXEC, 0)), 0);
    assert_int_equal(fd_count(), before + 5);
    store_deinit(&store);
    assert_int_equal(fd_count(), before);
    store_deinit(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_descriptors),
    };

    return test_run(tests, NULL, NULL);
}
