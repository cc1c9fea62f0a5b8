/* SPDX-License-Identifier: Apache-2.0 */
/* The index of addresses: looking up, splitting, covering; and against a model that is an array of pages. */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include <memclient/memclient.h>

#include "core/span.h"

#define PAGES 200

static struct mapping *add(struct space *space, uint64_t start, uint64_t size, uint64_t offset)
{
    struct mapping *m = calloc(1, sizeof(*m));

    m->start = start;
    m->size = size;
    m->offset = offset;
    space_insert(space, m);
    return m;
}

static void clear(struct space *space)
{
    struct mapping *m;

    while ((m = space_first(space))) {
        space_remove(space, m);
        free(m);
    }
}

static void an_address_inside_is_found(void **state)
{
    struct space space = SPACE_NULL;
    struct mapping *a = add(&space, 100, 50, 0);
    struct mapping *b = add(&space, 150, 50, 7);

    assert_null(space_find(&space, 99));
    assert_ptr_equal(space_find(&space, 100), a);
    assert_ptr_equal(space_find(&space, 149), a);
    assert_ptr_equal(space_find(&space, 150), b);
    assert_ptr_equal(space_find(&space, 199), b);
    assert_null(space_find(&space, 200));
    assert_ptr_equal(space_first(&space), a);
    assert_null(space_next(b));
    assert_ptr_equal(space_next(a), b);
    assert_true(space_is_free(&space, 0, 100));
    assert_false(space_is_free(&space, 0, 101));
    assert_false(space_is_free(&space, 120, 1));
    assert_true(space_is_free(&space, 200, 1000));
    clear(&space);
}

static void both_parts_of_a_split_show_what_the_whole_did(void **state)
{
    struct space space = SPACE_NULL;
    struct mapping *a = add(&space, 100, 50, 1000);
    struct mapping *rest = calloc(1, sizeof(*rest));

    a->access = 1;
    space_split(&space, a, 120, rest);
    assert_int_equal(a->size, 20);
    assert_ptr_equal(space_find(&space, 120), rest);
    assert_int_equal(rest->size, 30);
    assert_int_equal(rest->offset, 1020);
    assert_int_equal(rest->access, 1);
    clear(&space);
}

static void reservations_are_apart_from_what_is_mapped_in_them(void **state)
{
    struct space space = SPACE_NULL;
    struct range_entry found;

    assert_int_equal(range_index_insert(&space.reserved, 100, 100, &space), 0);
    assert_true(space_is_free(&space, 100, 100));
    assert_true(range_index_find(&space.reserved, 199, &found) && found.value == &space);
    assert_false(range_index_find(&space.reserved, 200, &found));
    assert_false(range_index_find(&space.reserved, 99, &found));
    assert_true(space_is_reserved(&space, 0, 101));
    assert_false(space_is_reserved(&space, 0, 100));
    assert_true(space_is_reserved(&space, 150, 1));
    assert_false(space_is_reserved(&space, 200, 10));
    assert_true(range_index_remove(&space.reserved, 100));
    assert_false(range_index_find(&space.reserved, 150, &found));
    range_index_deinit(&space.reserved);
}

/* Each page of the model has the offset that it shows, or 0 for nothing. */
static void check(struct space *space, const uint64_t *model)
{
    for (uint64_t page = 0; page < PAGES; page++) {
        struct mapping *m = space_find(space, page);

        assert_int_equal(m != NULL, model[page] != 0);
        if (m)
            assert_int_equal(m->offset + (page - m->start), model[page]);
    }
}

static void it_agrees_with_a_model_whatever_is_done(void **state)
{
    struct space space = SPACE_NULL;
    uint64_t model[PAGES] = {0};
    unsigned seed = 12345;

    for (unsigned step = 0; step < 3000; step++) {
        uint64_t start = (uint64_t)rand_r(&seed) % PAGES;
        uint64_t size = 1 + (uint64_t)rand_r(&seed) % 20;
        bool covered = true, free_range = true;

        if (start + size > PAGES)
            size = PAGES - start;
        for (uint64_t i = start; i < start + size; i++) {
            covered &= model[i] != 0;
            free_range &= model[i] == 0;
        }
        assert_int_equal(space_is_free(&space, start, size), free_range);
        if (free_range) {
            uint64_t offset = 1 + (uint64_t)rand_r(&seed) % 100000;

            add(&space, start, size, offset);
            for (uint64_t i = 0; i < size; i++)
                model[start + i] = offset + i;
        } else if (covered || rand_r(&seed) % 2) {
            /* take the range out, cutting what reaches beyond it */
            for (unsigned end = 0; end < 2; end++) {
                uint64_t at = end ? start + size : start;
                struct mapping *m = space_find(&space, at);

                if (m && m->start < at)
                    space_split(&space, m, at, calloc(1, sizeof(*m)));
            }
            for (struct mapping *m = space_first(&space), *next; m && m->start < start + size; m = next) {
                next = space_next(m);
                if (mapping_end(m) <= start)
                    continue;
                space_remove(&space, m);
                free(m);
            }
            memset(model + start, 0, size * sizeof(model[0]));
        }
        check(&space, model);
    }
    clear(&space);
}

/* ---- mappings that overlap --------------------------------------------------------------------------------------- */

#define LIVE 40

/* What a page is by those of the mappings that show it. */
static struct span expected(struct mapping *const *live, size_t n, uint64_t page)
{
    struct span span = {.access = MEMCLIENT_NO_ACCESS};

    for (size_t i = 0; i < n; i++) {
        const struct mapping *m = live[i];

        if (page < m->start || page - m->start >= m->size)
            continue;
        span.mapped = true;
        if (span_level(m->access) > span_level(span.access))
            span.access = m->access;
        span.writable |= m->writable;
        span.for_children |= !m->dont_copy;
    }
    return span;
}

static void check_sweep(struct space *space, struct mapping *const *live, size_t n, uint64_t start, uint64_t size)
{
    struct sweep sweep;
    struct span span;
    uint64_t at = start;

    sweep_begin(&sweep, space, start, size);
    while (sweep_next(&sweep, &span)) {
        assert_int_equal(span.start, at);
        assert_true(span.size && span.size <= start + size - at);
        for (; at < span.start + span.size; at++) {
            struct span want = expected(live, n, at);

            assert_int_equal(span.mapped, want.mapped);
            assert_int_equal(span.access, want.access);
            assert_int_equal(span.writable, want.writable);
            assert_int_equal(span.for_children, want.for_children);
        }
    }
    assert_int_equal(at, start + size);
}

static void check_questions(struct space *space, struct mapping *const *live, size_t n, uint64_t start, uint64_t size)
{
    bool is_free = true;
    size_t found = 0, overlapping = 0;

    for (uint64_t page = start; page < start + size; page++)
        is_free &= !expected(live, n, page).mapped;
    assert_int_equal(space_is_free(space, start, size), is_free);
    for (size_t i = 0; i < n; i++)
        overlapping += live[i]->start < start + size && live[i]->start + live[i]->size > start;
    for (const struct mapping *m = space_overlapping(space, start, size); m; m = mapping_found_next(m)) {
        assert_true(!mapping_found_next(m) || m->start <= mapping_found_next(m)->start);
        found++;
    }
    assert_int_equal(found, overlapping);
    for (uint64_t page = start; page < start + size; page++) {
        const struct mapping *furthest = space_find(space, page);

        assert_int_equal(furthest != NULL, expected(live, n, page).mapped);
        for (size_t i = 0; furthest && i < n; i++)
            if (live[i]->start <= page && live[i]->start + live[i]->size > page)
                assert_true(live[i]->start + live[i]->size <= furthest->start + furthest->size);
    }
}

static void pages_are_what_all_that_show_them_want(void **state)
{
    static const unsigned accesses[] = {MEMCLIENT_NO_ACCESS, MEMCLIENT_READ, MEMCLIENT_READ | MEMCLIENT_WRITE};
    struct space space = SPACE_NULL;
    struct mapping *live[LIVE];
    unsigned seed = 99;
    size_t n = 0;

    for (unsigned step = 0; step < 4000; step++) {
        uint64_t start = (uint64_t)rand_r(&seed) % PAGES, size = 1 + (uint64_t)rand_r(&seed) % (PAGES - start);
        size_t which = n ? (size_t)rand_r(&seed) % n : 0;

        if (n < LIVE - 1 && rand_r(&seed) % 2) {
            struct mapping *m = live[n++] = add(&space, start, size, start);

            m->access = accesses[rand_r(&seed) % 3];
            m->writable = rand_r(&seed) % 2;
            m->dont_copy = rand_r(&seed) % 2;
        } else if (n && live[which]->size > 1 && n < LIVE && rand_r(&seed) % 2) {
            live[n] = calloc(1, sizeof(*live[n]));
            space_split(&space, live[which], live[which]->start + live[which]->size / 2, live[n]);
            n++;
        } else if (n) {
            space_remove(&space, live[which]);
            free(live[which]);
            live[which] = live[--n];
        }
        check_sweep(&space, live, n, start, size);
        check_questions(&space, live, n, start, size);
    }
    clear(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_inside_is_found),
        cmocka_unit_test(both_parts_of_a_split_show_what_the_whole_did),
        cmocka_unit_test(reservations_are_apart_from_what_is_mapped_in_them),
        cmocka_unit_test(it_agrees_with_a_model_whatever_is_done),
        cmocka_unit_test(pages_are_what_all_that_show_them_want),
    };

    return test_run(tests, NULL, NULL);
}
