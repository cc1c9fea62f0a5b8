/* SPDX-License-Identifier: Apache-2.0 */
/* See ask.h. */
#include "tests/unit/hsa/ask.h"

#include <string.h>

#define NO_ATTRIBUTE UINT32_C(0x7ffffffe)

hsa_status_t ask_system(uint64_t none, uint32_t attribute, void *value)
{
    (void)none;
    return hsa_system_get_info((hsa_system_info_t)attribute, value);
}

hsa_status_t ask_agent(uint64_t agent, uint32_t attribute, void *value)
{
    return hsa_agent_get_info((hsa_agent_t){agent}, (hsa_agent_info_t)attribute, value);
}

hsa_status_t ask_region(uint64_t region, uint32_t attribute, void *value)
{
    return hsa_region_get_info((hsa_region_t){region}, (hsa_region_info_t)attribute, value);
}

hsa_status_t ask_pool(uint64_t pool, uint32_t attribute, void *value)
{
    return hsa_amd_memory_pool_get_info((hsa_amd_memory_pool_t){pool}, (hsa_amd_memory_pool_info_t)attribute, value);
}

hsa_status_t ask_cache(uint64_t cache, uint32_t attribute, void *value)
{
    return hsa_cache_get_info((hsa_cache_t){cache}, (hsa_cache_info_t)attribute, value);
}

void ask_exactly(ask_function *ask, uint64_t handle, uint32_t attribute, size_t size, void *value)
{
    /* an answer that changes, as the time does, will not be like all of them */
    static const uint8_t fills[] = {0xa5, 0x5a, 0x00, 0xff, 0x3c};
    uint8_t room[3 * ANSWER_MAX];
    bool written[ANSWER_MAX] = {false};

    assert_in_range(size, 1, ANSWER_MAX);
    for (size_t i = 0; i < sizeof(fills); i++) {
        /* not aligned in any way, on half of the times */
        uint8_t *at = room + ANSWER_MAX + i % 2;

        memset(room, fills[i], sizeof(room));
        assert_success(ask(handle, attribute, at));
        for (const uint8_t *byte = room; byte < room + sizeof(room); byte++)
            if (byte >= at && byte < at + size)
                written[byte - at] |= *byte != fills[i];
            else if (*byte != fills[i])
                fail_msg("attribute 0x%x: byte %td of %zu was written", attribute, byte - at, size);
        if (value)
            memcpy(value, at, size);
    }
    for (size_t i = 0; i < size; i++)
        if (!written[i])
            fail_msg("attribute 0x%x: byte %zu of %zu was not written", attribute, i, size);
}

static void ask_one(ask_function *ask, uint64_t handle, const struct attribute *row)
{
    uint8_t value[ANSWER_MAX], wanted[ANSWER_MAX];

    assert_status(ask(handle, row->attribute, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    ask_exactly(ask, handle, row->attribute, row->size, value);
    if (row->number == DIFFERS)
        return;
    memset(wanted, (int)row->number, sizeof(wanted));
    /* of a little or big end */
    for (size_t i = 0; row->size <= sizeof(row->number) && i < row->size; i++)
        wanted[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : row->size - 1 - i] = (uint8_t)(row->number >> 8 * i);
    if (memcmp(value, wanted, row->size) != 0)
        fail_msg("%s is not %llu, it begins with %u %u", row->name, (unsigned long long)row->number, value[0],
                 value[1]);
}

static bool in_table(const struct attribute *rows, size_t n, uint32_t attribute)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].attribute == attribute)
            return true;
    return false;
}

void ask_all(ask_function *ask, uint64_t handle, const struct attribute *rows, size_t n)
{
    static const struct {
        uint32_t from;
        uint32_t to;
    } ranges[] = {{0, 0x400},
                  {0x2ff0, 0x3020},
                  {0x9fff, 0xa220},
                  {0x7ffffff0, 0x7fffffff},
                  {0x80000000, 0x80000010},
                  {0xfffffff0, 0xffffffff}};

    for (size_t i = 0; i < n; i++)
        ask_one(ask, handle, &rows[i]);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        for (uint64_t a = ranges[i].from; a <= ranges[i].to; a++) {
            uint8_t value[ANSWER_MAX] = {0xa5};

            if (in_table(rows, n, (uint32_t)a))
                continue;
            if (ask(handle, (uint32_t)a, value) != HSA_STATUS_ERROR_INVALID_ARGUMENT)
                fail_msg("0x%x is no attribute, but was answered", (uint32_t)a);
            assert_int_equal(value[0], 0xa5);
        }
}

static bool exists(const uint64_t *handles, size_t n, uint64_t handle)
{
    for (size_t i = 0; i < n; i++)
        if (handles[i] == handle)
            return true;
    return false;
}

static void expect_none(ask_function *ask, uint32_t attribute, uint64_t handle, hsa_status_t wanted)
{
    uint8_t value[ANSWER_MAX] = {0xa5};
    hsa_status_t status = ask(handle, attribute, value);

    if (status != wanted)
        fail_msg("handle 0x%llx gave 0x%x, not 0x%x", (unsigned long long)handle, status, wanted);
    assert_int_equal(value[0], 0xa5);
}

void ask_handles(ask_function *ask, uint32_t attribute, const uint64_t *handles, size_t n, hsa_status_t wanted)
{
    uint8_t value[ANSWER_MAX];

    for (size_t i = 0; i < n; i++) {
        assert_success(ask(handles[i], attribute, value));
        for (unsigned bit = 0; bit < 64; bit++)
            if (!exists(handles, n, handles[i] ^ UINT64_C(1) << bit))
                expect_none(ask, attribute, handles[i] ^ UINT64_C(1) << bit, wanted);
    }
    for (uint64_t handle = 0; handle < 0x30000; handle++)
        if (!exists(handles, n, handle))
            expect_none(ask, attribute, handle, wanted);
    expect_none(ask, attribute, UINT64_MAX, wanted);
    expect_none(ask, attribute, (uintptr_t)&value, wanted);
}

void ask_in_order(ask_function *ask, uint64_t handle, uint32_t attribute, hsa_status_t bad_handle)
{
    uint8_t value[ANSWER_MAX];

    assert_status(ask(0, NO_ATTRIBUTE, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(ask(handle, attribute, NULL), HSA_STATUS_ERROR_INVALID_ARGUMENT);
    assert_status(ask(0, NO_ATTRIBUTE, value), bad_handle);
    assert_status(ask(0, attribute, value), bad_handle);
    assert_status(ask(handle, NO_ATTRIBUTE, value), HSA_STATUS_ERROR_INVALID_ARGUMENT);
}

hsa_status_t visit(uint64_t handle, struct visit *v)
{
    assert_in_range(v->calls, 0, sizeof(v->seen) / sizeof(v->seen[0]) - 1);
    v->seen[v->calls++] = handle;
    return v->calls == v->end_at ? v->end_with : HSA_STATUS_SUCCESS;
}
