/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hsa_kernels.h has of queues: no agent has one, so everything is refused. The manual lists these functions by
 * name.
 */
#include "base/align.h"
#include "hsa/check.h"

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                              void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data), void *data,
                              uint32_t private_segment_size, uint32_t group_segment_size, hsa_queue_t **queue)
{
    return check_agent(queue && is_power_of_two(size), agent, HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
}

hsa_status_t hsa_soft_queue_create(hsa_region_t region, uint32_t size, hsa_queue_type32_t type, uint32_t features,
                                   hsa_signal_t doorbell_signal, hsa_queue_t **queue)
{
    return check(queue && is_power_of_two(size), topology_pool(region.handle) ? HSA_STATUS_ERROR_INVALID_QUEUE_CREATION
                                                                               : HSA_STATUS_ERROR_INVALID_REGION);
}

hsa_status_t hsa_queue_destroy(hsa_queue_t *queue)
{
    return check(queue, HSA_STATUS_ERROR_INVALID_QUEUE);
}

hsa_status_t hsa_queue_inactivate(hsa_queue_t *queue)
{
    return check(queue, HSA_STATUS_ERROR_INVALID_QUEUE);
}

/* Indices are 0, and stay so. */
#define LOAD(name)                          \
    uint64_t name(const hsa_queue_t *queue) \
    {                                       \
        return 0;                           \
    }
LOAD(hsa_queue_load_read_index_relaxed)
LOAD(hsa_queue_load_read_index_scacquire)
LOAD(hsa_queue_load_read_index_acquire)
LOAD(hsa_queue_load_write_index_relaxed)
LOAD(hsa_queue_load_write_index_scacquire)
LOAD(hsa_queue_load_write_index_acquire)

#define CAS(name)                                                              \
    uint64_t name(const hsa_queue_t *queue, uint64_t expected, uint64_t value) \
    {                                                                          \
        return 0;                                                              \
    }
CAS(hsa_queue_cas_write_index_relaxed)
CAS(hsa_queue_cas_write_index_scacquire)
CAS(hsa_queue_cas_write_index_acquire)
CAS(hsa_queue_cas_write_index_screlease)
CAS(hsa_queue_cas_write_index_release)
CAS(hsa_queue_cas_write_index_scacq_screl)
CAS(hsa_queue_cas_write_index_acq_rel)

#define ADD(name)                                           \
    uint64_t name(const hsa_queue_t *queue, uint64_t value) \
    {                                                       \
        return 0;                                           \
    }
ADD(hsa_queue_add_write_index_relaxed)
ADD(hsa_queue_add_write_index_scacquire)
ADD(hsa_queue_add_write_index_acquire)
ADD(hsa_queue_add_write_index_screlease)
ADD(hsa_queue_add_write_index_release)
ADD(hsa_queue_add_write_index_scacq_screl)
ADD(hsa_queue_add_write_index_acq_rel)

#define STORE(name)                                     \
    void name(const hsa_queue_t *queue, uint64_t value) \
    {                                                   \
    }
STORE(hsa_queue_store_write_index_relaxed)
STORE(hsa_queue_store_write_index_screlease)
STORE(hsa_queue_store_write_index_release)
STORE(hsa_queue_store_read_index_relaxed)
STORE(hsa_queue_store_read_index_screlease)
STORE(hsa_queue_store_read_index_release)
