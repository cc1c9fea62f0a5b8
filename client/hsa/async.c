/* SPDX-License-Identifier: Apache-2.0 */
/* Copying ranges and boxes in the background. No engine copies, so all ways to request a copy are the same. */
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/job.h"
#include "hsa/runtime.h"

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

hsa_status_t hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent,
                                       size_t size, uint32_t num_dep_signals, const hsa_signal_t *dep_signals,
                                       hsa_signal_t completion_signal)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct rows rows = {.to = dst, .from = src, .width = size, .n_rows = 1, .n_slices = 1};

    if (!ctx || !dst || !src || !num_dep_signals != !dep_signals)
        return runtime_refusal(ctx);
    if (!topology_agent(dst_agent) || !topology_agent(src_agent))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    return job_start(&rows, num_dep_signals, dep_signals, completion_signal, false);
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

hsa_status_t hsa_amd_memory_async_copy_on_engine(void *dst, hsa_agent_t dst_agent, const void *src,
                                                 hsa_agent_t src_agent, size_t size, uint32_t num_dep_signals,
                                                 const hsa_signal_t *dep_signals, hsa_signal_t completion_signal,
                                                 hsa_amd_sdma_engine_id_t engine_id, bool force_copy_on_sdma)
{
    uint32_t engine = (uint32_t)engine_id;
    hsa_status_t status = check(engine && !(engine & (engine - 1)), HSA_STATUS_SUCCESS);

    if (status)
        return status;
    return hsa_amd_memory_async_copy(dst, dst_agent, src, src_agent, size, num_dep_signals, dep_signals,
                                     completion_signal);
}

static hsa_status_t async_put_engines(hsa_agent_t dst_agent, hsa_agent_t src_agent, uint32_t *mask, hsa_status_t status)
{
    bool are_agents = topology_agent(dst_agent) && topology_agent(src_agent);
    hsa_status_t found = check(mask, are_agents ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_AGENT);

    if (found)
        return found;
    *mask = 0;
    return status;
}

hsa_status_t hsa_amd_memory_copy_engine_status(hsa_agent_t dst_agent, hsa_agent_t src_agent, uint32_t *engine_ids_mask)
{
    return async_put_engines(dst_agent, src_agent, engine_ids_mask, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
}

hsa_status_t hsa_amd_memory_get_preferred_copy_engine(hsa_agent_t dst_agent, hsa_agent_t src_agent,
                                                      uint32_t *recommended_ids_mask)
{
    return async_put_engines(dst_agent, src_agent, recommended_ids_mask, HSA_STATUS_SUCCESS);
}

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

static bool async_box_is_empty(const hsa_dim3_t *range)
{
    return !range->x || !range->y || !range->z;
}

/* x + y * pitch + z * slice. False if the sum overflows. */
static bool async_box_offset(const hsa_pitched_ptr_t *memory, uint64_t x, uint64_t y, uint64_t z, uint64_t *offset)
{
    uint64_t rows, slices;

    return !__builtin_mul_overflow(y, memory->pitch, &rows) && !__builtin_mul_overflow(z, memory->slice, &slices) &&
           !__builtin_add_overflow(x, rows, offset) && !__builtin_add_overflow(*offset, slices, offset);
}

/* The first byte of the box; NULL if the box is not inside of the memory. */
static char *async_box_first_byte(const hsa_pitched_ptr_t *memory, const hsa_dim3_t *at, const hsa_dim3_t *range)
{
    uint64_t first, last, end;

    if (!memory->base || ((uintptr_t)memory->base | memory->pitch | memory->slice) % sizeof(uint32_t))
        return NULL;
    if ((uint64_t)at->x + range->x > memory->pitch)
        return NULL;
    if (memory->slice && (uint64_t)at->y + range->y > memory->slice / memory->pitch)
        return NULL;
    if (range->z > 1 && !memory->slice)
        return NULL;
    if (!async_box_offset(memory, at->x, at->y, at->z, &first) ||
        !async_box_offset(memory, (uint64_t)at->x + range->x, (uint64_t)at->y + range->y - 1,
                          (uint64_t)at->z + range->z - 1, &last) ||
        __builtin_add_overflow((uintptr_t)memory->base, last, &end))
        return NULL;
    return (char *)memory->base + first;
}

/* Rows without gaps between them become one row. */
static void async_join_rows(struct rows *rows)
{
    if (rows->n_slices != 1 || rows->width != rows->to_pitch || rows->width != rows->from_pitch)
        return;
    rows->width *= rows->n_rows;
    rows->n_rows = 1;
}

hsa_status_t hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t *dst, const hsa_dim3_t *dst_offset,
                                            const hsa_pitched_ptr_t *src, const hsa_dim3_t *src_offset,
                                            const hsa_dim3_t *range, hsa_agent_t copy_agent,
                                            hsa_amd_copy_direction_t dir, uint32_t num_dep_signals,
                                            const hsa_signal_t *dep_signals, hsa_signal_t completion_signal)
{
    _cleanup_(runtime_leavep) struct memclient_context *ctx = runtime_enter();
    struct rows rows = {0};

    if (!ctx || !dst || !dst_offset || !src || !src_offset || !range || !num_dep_signals != !dep_signals ||
        (uint32_t)dir > hsaDeviceToDevice)
        return runtime_refusal(ctx);
    if (!async_box_is_empty(range)) {
        rows.to = async_box_first_byte(dst, dst_offset, range);
        rows.from = async_box_first_byte(src, src_offset, range);
        if (!rows.to || !rows.from)
            return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        rows.to_pitch = dst->pitch;
        rows.to_slice = dst->slice;
        rows.from_pitch = src->pitch;
        rows.from_slice = src->slice;
        rows.width = range->x;
        rows.n_rows = range->y;
        rows.n_slices = range->z;
        async_join_rows(&rows);
    }
    if (!topology_agent(copy_agent))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    return job_start(&rows, num_dep_signals, dep_signals, completion_signal, false);
}
