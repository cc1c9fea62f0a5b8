/* SPDX-License-Identifier: Apache-2.0 */
/* Selections of buffers, and sums over all. Brokers of version 0.1 have neither: old-version.sh leaves this out. */
#include "tests/integration/context.h"

#define SIZE (64 << 10)

static int stop_at_once(const struct memclient_buffer_info *info, void *data)
{
    (void)data;
    return (int)info->id;
}

struct selected {
    unsigned n;
    uint64_t last, sum;
};

static int add_selected(const struct memclient_buffer_info *info, void *data)
{
    struct selected *selected = data;

    if (selected->n++)
        assert_true(info->bytes <= selected->last);
    selected->last = info->bytes;
    selected->sum += info->bytes;
    return 0;
}

/* However many are wanted, in the broker's pages. */
static void the_largest_are_selected(void **state)
{
    static const uint32_t wanted[] = {0, 1, 15, 16, 17, 40, 99, 100, 101, UINT32_MAX};
    enum { N = 100 };
    struct memclient_buffer *bufs[N];
    struct memclient_select_options options = MEMCLIENT_SELECT_OPTIONS_INIT;
    struct memclient_buffer_sums sums = MEMCLIENT_BUFFER_SUMS_INIT;

    for (unsigned i = 0; i < N; i++)
        bufs[i] = make((i / 2 + 1) * SIZE, 0);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct selected selected = {.n = 0};

        options.most = wanted[i];
        assert_done(memclient_select_buffers(ctx, &options, &sums, add_selected, &selected));
        assert_int_equal(selected.n, wanted[i] < N ? wanted[i] : N);
        assert_int_equal(sums.buffers, N);
        assert_int_equal(sums.holds, N);
        if (selected.n == N)
            assert_int_equal(selected.sum, sums.bytes);
        if (selected.n)
            assert_true(sums.bytes >= selected.sum && selected.last <= memclient_buffer_bytes(bufs[N - 1]));
    }
    options.pool = "no such pool";
    assert_refused(memclient_select_buffers(ctx, &options, &sums, add_selected, NULL), ENODEV);
    options.pool = NULL;
    assert_true(memclient_select_buffers(ctx, &options, &sums, stop_at_once, NULL) > 0);
    for (unsigned i = 0; i < N; i++)
        memclient_buffer_unref(bufs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_are_selected)};

    return test_run(tests, context_setup, context_teardown);
}
