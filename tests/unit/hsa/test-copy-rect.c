/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes, engines and times of asynchronous copies: hsa_amd_memory_async_copy_rect,
 * hsa_amd_memory_async_copy_on_engine, hsa_amd_memory_copy_engine_status, hsa_amd_memory_get_preferred_copy_engine,
 * hsa_amd_profiling_async_copy_enable, hsa_amd_profiling_get_async_copy_time. Ranges are in test-async.c.
 */
#include <string.h>

#include "tests/support/child.h"
#include "tests/unit/hsa/hsa.h"

#define SIZE ((size_t)64 << 10)

static uint8_t *from, *to, model[SIZE];

static int setup(void **state)
{
    assert_success(hsa_amd_memory_pool_allocate(pools[0][FINE], SIZE, 0, (void **)&from));
    assert_success(hsa_amd_memory_pool_allocate(pools[1][COARSE], SIZE, 0, (void **)&to));
    for (size_t i = 0; i < SIZE; i++)
        from[i] = (uint8_t)(i * 7 + i / 251);
    return 0;
}

static int teardown(void **state)
{
    assert_success(hsa_memory_free(from));
    assert_success(hsa_memory_free(to));
    return hsa_nothing_left(state);
}

static hsa_signal_t make(hsa_signal_value_t value)
{
    hsa_signal_t signal;

    assert_success(hsa_signal_create(value, 0, NULL, &signal));
    return signal;
}

static hsa_signal_value_t until_below(hsa_signal_t signal, hsa_signal_value_t value)
{
    return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, value, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
}

/* The arguments of a call. */
struct box {
    hsa_pitched_ptr_t dst, src;
    hsa_dim3_t dst_offset, src_offset, range;
    hsa_agent_t agent;
    hsa_amd_copy_direction_t dir;
};

static hsa_status_t copy(const struct box *box, uint32_t n, const hsa_signal_t *needed, hsa_signal_t done)
{
    return hsa_amd_memory_async_copy_rect(&box->dst, &box->dst_offset, &box->src, &box->src_offset, &box->range,
                                          box->agent, box->dir, n, needed, done);
}

/* 3 rows of 8 bytes in 2 slices. */
static struct box small_box(void)
{
    return (struct box){{to, 64, 640}, {from, 32, 320}, {4, 1, 0}, {8, 2, 1}, {8, 3, 2}, agents[0], hsaHostToHost};
}

static void refused(const struct box *box, hsa_status_t wanted)
{
    hsa_signal_t done = make(1);

    assert_status(copy(box, 0, NULL, done), wanted);
    assert_int_equal(hsa_signal_load_relaxed(done), 1);
    assert_int_equal(to[68], 0);
    assert_success(hsa_signal_destroy(done));
}

/* hsa_amd_memory_async_copy_rect: dst, dst_offset, src, src_offset, range, copy_agent, dir, num_dep_signals,
 * dep_signals, completion_signal: HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT,
 * HSA_STATUS_ERROR_INVALID_SIGNAL. Nothing is copied then. */
static void boxes_are_checked(void **state)
{
    hsa_signal_t done = make(1), bad = {5};
    struct box box = small_box();
    hsa_pitched_ptr_t *const memories[] = {&box.dst, &box.src};
    hsa_dim3_t *const offsets[] = {&box.dst_offset, &box.src_offset};

    assert_status(hsa_amd_memory_async_copy_rect(NULL, &box.dst_offset, &box.src, &box.src_offset, &box.range,
                                                 agents[0], box.dir, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_rect(&box.dst, NULL, &box.src, &box.src_offset, &box.range, agents[0],
                                                 box.dir, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_rect(&box.dst, &box.dst_offset, NULL, &box.src_offset, &box.range,
                                                 agents[0], box.dir, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_rect(&box.dst, &box.dst_offset, &box.src, NULL, &box.range, agents[0],
                                                 box.dir, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_rect(&box.dst, &box.dst_offset, &box.src, &box.src_offset, NULL, agents[0],
                                                 box.dir, 0, NULL, done),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(copy(&box, 1, NULL, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(copy(&box, 0, &done, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(copy(&box, 1, &bad, done), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(copy(&box, 0, NULL, bad), HSA_STATUS_ERROR_INVALID_SIGNAL);
    box.agent.handle = 99999;
    refused(&box, HSA_STATUS_ERROR_INVALID_AGENT);
    box = small_box();
    box.dir = (hsa_amd_copy_direction_t)4;
    refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    for (unsigned m = 0; m < 2; m++) {
        box = small_box();
        memories[m]->base = NULL;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        /* what an engine could not address */
        box = small_box();
        memories[m]->base = (char *)memories[m]->base + 2;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        box = small_box();
        memories[m]->pitch += 1;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        box = small_box();
        memories[m]->slice += 3;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        /* wider than a row, with more rows than a slice, slices of nothing */
        box = small_box();
        offsets[m]->x = (uint32_t)memories[m]->pitch - 7;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        offsets[m]->x = UINT32_MAX;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        box = small_box();
        offsets[m]->y = 8;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        offsets[m]->y = UINT32_MAX;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        box = small_box();
        memories[m]->slice = 0;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        /* beyond all addresses */
        box = small_box();
        memories[m]->slice = SIZE_MAX / 4 * 4 - 60;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
        box = small_box();
        memories[m]->slice = SIZE_MAX / 4 / 2 * 4;
        offsets[m]->z = 2;
        refused(&box, HSA_STATUS_ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(hsa_signal_load_relaxed(done), 1);
    assert_success(hsa_signal_destroy(done));
}

static uint64_t state_of_random;

static uint32_t random_below(uint32_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_random >> 33) % n;
}

/* A pitch and slice that hold the box at an offset, with room to spare or none. */
static void random_layout(hsa_pitched_ptr_t *memory, hsa_dim3_t *offset, const hsa_dim3_t *range, uint8_t *base)
{
    uint32_t rows;

    offset->x = random_below(3) ? random_below(20) : 0;
    offset->y = random_below(3) ? random_below(4) : 0;
    offset->z = random_below(3);
    memory->base = base + 4 * random_below(8);
    memory->pitch = (offset->x + range->x + (random_below(2) ? random_below(40) : 0) + 3) / 4 * 4;
    rows = offset->y + range->y + random_below(3);
    memory->slice = memory->pitch * rows + 4 * random_below(8);
    if (range->z == 1 && !random_below(3))
        memory->slice = 0;
}

static void copy_model(const struct box *box)
{
    for (uint32_t z = 0; z < box->range.z; z++)
        for (uint32_t y = 0; y < box->range.y; y++)
            for (uint32_t x = 0; x < box->range.x; x++) {
                size_t into = box->dst_offset.x + x + (box->dst_offset.y + y) * box->dst.pitch +
                              (box->dst_offset.z + z) * box->dst.slice;
                size_t out_of = box->src_offset.x + x + (box->src_offset.y + y) * box->src.pitch +
                                (box->src_offset.z + z) * box->src.slice;

                model[(uint8_t *)box->dst.base - to + into] = ((uint8_t *)box->src.base)[out_of];
            }
}

/* hsa_amd_memory_async_copy_rect: just the box, byte by byte, whatever the pitches and offsets; nothing around it.
 * HSA_STATUS_SUCCESS */
static void boxes_as_the_model(void **state)
{
    hsa_signal_t done = make(0);

    state_of_random = 20261123;
    for (unsigned i = 0; i < 3000; i++) {
        struct box box = {.agent = agents[i % AGENTS], .dir = (hsa_amd_copy_direction_t)(i % 4)};

        box.range = (hsa_dim3_t){1 + random_below(60), 1 + random_below(8), 1 + random_below(4)};
        random_layout(&box.dst, &box.dst_offset, &box.range, to);
        random_layout(&box.src, &box.src_offset, &box.range, from);
        if (i % 50 == 0) {
            memset(to, (int)i, SIZE);
            memset(model, (int)i, SIZE);
        }
        hsa_signal_store_relaxed(done, 1);
        assert_success(copy(&box, 0, NULL, done));
        assert_int_equal(until_below(done, 1), 0);
        copy_model(&box);
        if (memcmp(to, model, SIZE) != 0)
            fail_msg("box %u", i);
    }
    assert_success(hsa_signal_destroy(done));
}

/* Of nothing, nothing is copied; and it is done. */
static void empty_boxes(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        struct box box = small_box();
        hsa_signal_t done = make(2);

        *(i == 0 ? &box.range.x : i == 1 ? &box.range.y : &box.range.z) = 0;
        assert_success(copy(&box, 0, NULL, done));
        assert_int_equal(until_below(done, 2), 1);
        assert_int_equal(to[68], 0);
        assert_success(hsa_signal_destroy(done));
    }
}

/* In order, after what it waits for; and not where it may not. */
static void boxes_wait_and_fail(void **state)
{
    hsa_signal_t needed = make(1), done = make(1);
    struct box box = small_box();

    assert_success(copy(&box, 1, &needed, done));
    assert_int_equal(hsa_signal_wait_relaxed(done, HSA_SIGNAL_CONDITION_LT, 1, 20000000, HSA_WAIT_STATE_BLOCKED), 1);
    assert_int_equal(to[68], 0);
    hsa_signal_subtract_screlease(needed, 1);
    assert_int_equal(until_below(done, 1), 0);
    assert_int_equal(to[68], from[8 + 64 + 320]);
    /* the last row may not be written: none is */
    memset(to, 0, SIZE);
    assert_success(hsa_memory_assign_agent(to, agents[1], HSA_ACCESS_PERMISSION_RO));
    hsa_signal_store_relaxed(done, 1);
    assert_success(copy(&box, 0, NULL, done));
    assert_true(until_below(done, 1) < 0);
    assert_int_equal(to[68], 0);
    assert_success(hsa_signal_destroy(needed));
    assert_success(hsa_signal_destroy(done));
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

static hsa_status_t copy_on(uint32_t engine, hsa_signal_t done)
{
    return hsa_amd_memory_async_copy_on_engine(to, agents[1], from, agents[0], SIZE, 0, NULL, done,
                                               (hsa_amd_sdma_engine_id_t)engine, engine & 1);
}

/* hsa_amd_memory_async_copy_on_engine: dst, dst_agent, src, src_agent, size, num_dep_signals, dep_signals,
 * completion_signal, engine_id, force_copy_on_sdma: HSA_STATUS_SUCCESS, HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_SIGNAL */
static void on_engine(void **state)
{
    hsa_signal_t done = make(1), needed = make(0);
    hsa_agent_t bad = {pools[0][FINE].handle};

    assert_status(copy_on(0, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(copy_on(HSA_AMD_SDMA_ENGINE_0 | HSA_AMD_SDMA_ENGINE_4, done), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_on_engine(NULL, agents[0], from, agents[0], SIZE, 0, NULL, done,
                                                      HSA_AMD_SDMA_ENGINE_0, false),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_on_engine(to, agents[0], NULL, agents[0], SIZE, 0, NULL, done,
                                                      HSA_AMD_SDMA_ENGINE_0, false),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_on_engine(to, agents[0], from, agents[0], SIZE, 1, NULL, done,
                                                      HSA_AMD_SDMA_ENGINE_0, false),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_async_copy_on_engine(to, bad, from, agents[0], SIZE, 0, NULL, done,
                                                      HSA_AMD_SDMA_ENGINE_0, false),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_async_copy_on_engine(to, agents[0], from, bad, SIZE, 0, NULL, done,
                                                      HSA_AMD_SDMA_ENGINE_0, false),
                  HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(copy_on(1, (hsa_signal_t){0}), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_int_equal(hsa_signal_load_relaxed(done), 1);
    for (uint32_t engine = HSA_AMD_SDMA_ENGINE_0; engine <= HSA_AMD_SDMA_ENGINE_15; engine <<= 1) {
        memset(to, 0, SIZE);
        hsa_signal_store_relaxed(done, 1);
        assert_success(copy_on(engine, done));
        assert_int_equal(until_below(done, 1), 0);
        assert_memory_equal(to, from, SIZE);
    }
    memset(to, 0, SIZE);
    hsa_signal_store_relaxed(done, 1);
    assert_success(hsa_amd_memory_async_copy_on_engine(to, agents[0], from, agents[0], SIZE, 1, &needed, done,
                                                       HSA_AMD_SDMA_ENGINE_3, true));
    assert_int_equal(until_below(done, 1), 0);
    assert_memory_equal(to, from, SIZE);
    assert_success(hsa_signal_destroy(done));
    assert_success(hsa_signal_destroy(needed));
}

/* hsa_amd_memory_copy_engine_status: dst_agent, src_agent, engine_ids_mask: HSA_STATUS_ERROR_OUT_OF_RESOURCES, none is
 * free; hsa_amd_memory_get_preferred_copy_engine: dst_agent, src_agent, recommended_ids_mask: HSA_STATUS_SUCCESS, none
 * is preferred; HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_AGENT */
static void engines(void **state)
{
    hsa_agent_t bad = {987654};
    uint32_t mask = 99;

    assert_status(hsa_amd_memory_copy_engine_status(agents[0], agents[1], NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_copy_engine_status(bad, agents[1], &mask), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_copy_engine_status(agents[0], bad, &mask), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_get_preferred_copy_engine(agents[0], agents[1], NULL),
                  HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_memory_get_preferred_copy_engine(bad, agents[1], &mask), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_status(hsa_amd_memory_get_preferred_copy_engine(agents[0], bad, &mask), HSA_STATUS_ERROR_INVALID_AGENT);
    assert_int_equal(mask, 99);
    for (unsigned i = 0; i < AGENTS * AGENTS; i++) {
        mask = 99;
        assert_status(hsa_amd_memory_copy_engine_status(agents[i / AGENTS], agents[i % AGENTS], &mask),
                      HSA_STATUS_ERROR_OUT_OF_RESOURCES);
        assert_int_equal(mask, 0);
        mask = 99;
        assert_success(hsa_amd_memory_get_preferred_copy_engine(agents[i / AGENTS], agents[i % AGENTS], &mask));
        assert_int_equal(mask, 0);
    }
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* hsa_amd_profiling_async_copy_enable: enable; hsa_amd_profiling_get_async_copy_time: signal, time: when the copy was
 * made, of one that was timed: HSA_STATUS_SUCCESS, HSA_STATUS_ERROR, HSA_STATUS_ERROR_INVALID_ARGUMENT,
 * HSA_STATUS_ERROR_INVALID_SIGNAL */
static void times(void **state)
{
    hsa_amd_profiling_async_copy_time_t time = {.start = 99, .end = 99};
    hsa_signal_t done = make(1);
    uint64_t before, after;

    assert_status(hsa_amd_profiling_get_async_copy_time(done, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(hsa_amd_profiling_get_async_copy_time((hsa_signal_t){4}, &time), HSA_STATUS_ERROR_INVALID_SIGNAL);
    assert_status(hsa_amd_profiling_get_async_copy_time(done, &time), HSA_STATUS_ERROR);
    assert_success(copy_on(1, done));
    assert_int_equal(until_below(done, 1), 0);
    assert_status(hsa_amd_profiling_get_async_copy_time(done, &time), HSA_STATUS_ERROR);
    assert_int_equal(time.start, 99);
    assert_success(hsa_amd_profiling_async_copy_enable(true));
    for (unsigned i = 0; i < 2; i++) {
        assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
        hsa_signal_store_relaxed(done, 1);
        assert_success(copy_on(1, done));
        assert_int_equal(until_below(done, 1), 0);
        assert_success(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
        assert_success(hsa_amd_profiling_get_async_copy_time(done, &time));
        assert_in_range(time.start, before, time.end);
        assert_in_range(time.end, time.start, after);
    }
    assert_success(hsa_amd_profiling_async_copy_enable(false));
    assert_success(hsa_signal_destroy(done));
}

static void call_all(int channel, void *context)
{
    hsa_amd_profiling_async_copy_time_t time;
    struct box box = small_box();
    hsa_signal_t signal = {1};
    uint32_t mask;

    CHECK(copy(&box, 0, NULL, signal) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(copy_on(1, signal) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_memory_copy_engine_status(agents[0], agents[0], &mask) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_memory_get_preferred_copy_engine(agents[0], agents[0], &mask) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_profiling_async_copy_enable(true) == HSA_STATUS_ERROR_NOT_INITIALIZED);
    CHECK(hsa_amd_profiling_get_async_copy_time(signal, &time) == HSA_STATUS_ERROR_NOT_INITIALIZED);
}

/* HSA_STATUS_ERROR_NOT_INITIALIZED: of hsa_amd_memory_async_copy_rect, hsa_amd_memory_async_copy_on_engine,
 * hsa_amd_memory_copy_engine_status, hsa_amd_memory_get_preferred_copy_engine, hsa_amd_profiling_async_copy_enable,
 * hsa_amd_profiling_get_async_copy_time */
static void not_initialized(void **state)
{
    child_run(call_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(not_initialized, setup, teardown),
        cmocka_unit_test_setup_teardown(boxes_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(boxes_as_the_model, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(boxes_wait_and_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(on_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(engines, setup, teardown),
        cmocka_unit_test_setup_teardown(times, setup, teardown),
    };

    return test_run(tests, hsa_group_setup, hsa_group_teardown);
}
