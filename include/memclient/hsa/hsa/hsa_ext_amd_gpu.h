/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's extensions of HSA that concern GPUs and other devices: packets, queues, events, profiling. hsa_ext_amd.h
 * includes this file.
 *
 * There are no such devices here. As in hsa_kernels.h, the types let programs compile that have members of them, and
 * the functions let programs link. Each function checks its arguments and fails.
 */
#ifndef HSA_RUNTIME_EXT_AMD_GPU_H_
#define HSA_RUNTIME_EXT_AMD_GPU_H_

#include "hsa_ext_amd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- packets ----------------------------------------------------------------------------------------------------- */

/* Of AMD's own packets. */
typedef enum { HSA_AMD_PACKET_TYPE_BARRIER_VALUE = 2, HSA_AMD_PACKET_TYPE_AIE_ERT = 3 } hsa_amd_packet_type_t;
typedef uint8_t hsa_amd_packet_type8_t;
typedef uint32_t hsa_signal_condition32_t;

typedef struct hsa_amd_packet_header_s {
    uint16_t header;
    hsa_amd_packet_type8_t AmdFormat;
    uint8_t reserved;
} hsa_amd_vendor_packet_header_t;

/* Waits until the bits of a signal's value that mask selects meet a condition. */
typedef struct hsa_amd_barrier_value_packet_s {
    hsa_amd_vendor_packet_header_t header;
    uint32_t reserved0;
    hsa_signal_t signal;
    hsa_signal_value_t value;
    hsa_signal_value_t mask;
    hsa_signal_condition32_t cond;
    uint32_t reserved1;
    uint64_t reserved2;
    uint64_t reserved3;
    hsa_signal_t completion_signal;
} hsa_amd_barrier_value_packet_t;

/* Commands for AI engines. */
typedef enum {
    HSA_AMD_AIE_ERT_STATE_NEW = 1,
    HSA_AMD_AIE_ERT_STATE_QUEUED = 2,
    HSA_AMD_AIE_ERT_STATE_RUNNING = 3,
    HSA_AMD_AIE_ERT_STATE_COMPLETED = 4,
    HSA_AMD_AIE_ERT_STATE_ERROR = 5,
    HSA_AMD_AIE_ERT_STATE_ABORT = 6,
    HSA_AMD_AIE_ERT_STATE_SUBMITTED = 7,
    HSA_AMD_AIE_ERT_STATE_TIMEOUT = 8,
    HSA_AMD_AIE_ERT_STATE_NORESPONSE = 9,
    HSA_AMD_AIE_ERT_STATE_SKERROR = 10,
    HSA_AMD_AIE_ERT_STATE_SKCRASHED = 11,
    HSA_AMD_AIE_ERT_STATE_MAX = 12
} hsa_amd_aie_ert_state;

typedef enum {
    HSA_AMD_AIE_ERT_START_CU = 0,
    HSA_AMD_AIE_ERT_START_KERNEL = 0,
    HSA_AMD_AIE_ERT_CONFIGURE = 2,
    HSA_AMD_AIE_ERT_EXIT = 3,
    HSA_AMD_AIE_ERT_ABORT = 4,
    HSA_AMD_AIE_ERT_EXEC_WRITE = 5,
    HSA_AMD_AIE_ERT_CU_STAT = 6,
    HSA_AMD_AIE_ERT_START_COPYBO = 7,
    HSA_AMD_AIE_ERT_SK_CONFIG = 8,
    HSA_AMD_AIE_ERT_SK_START = 9,
    HSA_AMD_AIE_ERT_SK_UNCONFIG = 10,
    HSA_AMD_AIE_ERT_INIT_CU = 11,
    HSA_AMD_AIE_ERT_START_FA = 12,
    HSA_AMD_AIE_ERT_CLK_CALIB = 13,
    HSA_AMD_AIE_ERT_MB_VALIDATE = 14,
    HSA_AMD_AIE_ERT_START_KEY_VAL = 15,
    HSA_AMD_AIE_ERT_ACCESS_TEST_C = 16,
    HSA_AMD_AIE_ERT_ACCESS_TEST = 17,
    HSA_AMD_AIE_ERT_START_DPU = 18,
    HSA_AMD_AIE_ERT_CMD_CHAIN = 19,
    HSA_AMD_AIE_ERT_START_NPU = 20,
    HSA_AMD_AIE_ERT_START_NPU_PREEMPT = 21
} hsa_amd_aie_ert_cmd_opcode_t;

typedef struct hsa_amd_aie_ert_start_kernel_data_s {
    void *pdi_addr;
    __extension__ uint32_t data[];
} hsa_amd_aie_ert_start_kernel_data_t;

typedef struct hsa_amd_aie_ert_packet_s {
    hsa_amd_vendor_packet_header_t header;
    __extension__ struct {
        uint32_t state : 4;
        uint32_t custom : 8;
        uint32_t count : 11;
        uint32_t opcode : 5;
        uint32_t type : 4;
    };
    uint64_t reserved0;
    uint64_t reserved1;
    uint64_t reserved2;
    uint64_t reserved3;
    uint64_t reserved4;
    uint64_t reserved5;
    uint64_t payload_data;
} hsa_amd_aie_ert_packet_t;

/* ---- queues ------------------------------------------------------------------------------------------------------ */

typedef enum hsa_amd_queue_priority_s {
    HSA_AMD_QUEUE_PRIORITY_LOW = 0,
    HSA_AMD_QUEUE_PRIORITY_NORMAL = 1,
    HSA_AMD_QUEUE_PRIORITY_HIGH = 2
} hsa_amd_queue_priority_t;

typedef enum {
    HSA_AMD_QUEUE_CREATE_SYSTEM_MEM = 0,
    HSA_AMD_QUEUE_CREATE_DEVICE_MEM_RING_BUF = 1,
    HSA_AMD_QUEUE_CREATE_DEVICE_MEM_QUEUE_DESCRIPTOR = 2
} hsa_amd_queue_create_flag_t;

typedef enum {
    HSA_AMD_QUEUE_INFO_AGENT = 0,
    HSA_AMD_QUEUE_INFO_DOORBELL_ID = 1,
    HSA_QUEUE_INFO_USE_COUNT = 2,
    HSA_QUEUE_INFO_HW_ID = 3
} hsa_queue_info_attribute_t;

/*
 * Would set or return the compute units of a queue.
 *     INVALID_ARGUMENT   queue is NULL, num_cu_mask_count is no multiple of 32, or cu_mask is NULL where it is needed
 *     INVALID_QUEUE
 */
HSA_API hsa_status_t hsa_amd_queue_cu_set_mask(const hsa_queue_t *queue, uint32_t num_cu_mask_count,
                                               const uint32_t *cu_mask);
HSA_API hsa_status_t hsa_amd_queue_cu_get_mask(const hsa_queue_t *queue, uint32_t num_cu_mask_count, uint32_t *cu_mask);

/*
 * Would set the priority of a queue.
 *     INVALID_ARGUMENT   queue is NULL
 *     INVALID_QUEUE
 */
HSA_API hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t *queue, hsa_amd_queue_priority_t priority);

/*
 * Would return a property of a queue.
 *     INVALID_ARGUMENT   queue or value is NULL
 *     INVALID_QUEUE
 */
HSA_API hsa_status_t hsa_amd_queue_get_info(hsa_queue_t *queue, hsa_queue_info_attribute_t attribute, void *value);

/*
 * Would return a queue that others may use as well, and call callback with data for its events.
 *     INVALID_ARGUMENT         queue is NULL
 *     INVALID_AGENT
 *     INVALID_QUEUE_CREATION   the arguments are valid
 */
HSA_API hsa_status_t hsa_amd_counted_queue_acquire(hsa_agent_t agent, hsa_queue_type_t type,
                                                   hsa_amd_queue_priority_t priority,
                                                   void (*callback)(hsa_status_t status, hsa_queue_t *source,
                                                                    void *data),
                                                   void *data, uint64_t flags, hsa_queue_t **queue);

/*
 * Would release it.
 *     INVALID_ARGUMENT   queue is NULL
 *     INVALID_QUEUE
 */
HSA_API hsa_status_t hsa_amd_counted_queue_release(hsa_queue_t *queue);

/*
 * Would limit the memory that an agent keeps for kernels.
 *     INVALID_AGENT
 *     INVALID_ARGUMENT   the agent is valid: it has no such memory
 */
HSA_API hsa_status_t hsa_amd_agent_set_async_scratch_limit(hsa_agent_t agent, size_t threshold);

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Events of a GPU. */
typedef enum hsa_amd_event_type_s {
    HSA_AMD_GPU_MEMORY_FAULT_EVENT = 0,
    HSA_AMD_GPU_HW_EXCEPTION_EVENT = 1,
    HSA_AMD_GPU_MEMORY_ERROR_EVENT = 2,
    HSA_AMD_SYSTEM_SHUTDOWN_EVENT = 3
} hsa_amd_event_type_t;

#if defined(__cplusplus) && __cplusplus >= 201103L
typedef enum : uint32_t {
#else
__extension__ typedef enum {
#endif
    HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT = 1,
    HSA_AMD_MEMORY_FAULT_READ_ONLY = 2,
    HSA_AMD_MEMORY_FAULT_NX = 4,
    HSA_AMD_MEMORY_FAULT_HOST_ONLY = 8,
    HSA_AMD_MEMORY_FAULT_DRAMECC = 16,
    HSA_AMD_MEMORY_FAULT_IMPRECISE = 32,
    HSA_AMD_MEMORY_FAULT_SRAMECC = 64,
    HSA_AMD_MEMORY_FAULT_HANG = 1U << 31
} hsa_amd_memory_fault_reason_t;

typedef struct hsa_amd_gpu_memory_fault_info_s {
    hsa_agent_t agent;
    uint64_t virtual_address;
    uint32_t fault_reason_mask;
} hsa_amd_gpu_memory_fault_info_t;

typedef enum { HSA_AMD_MEMORY_ERROR_MEMORY_IN_USE = 1 } hsa_amd_memory_error_reason_t;

typedef struct hsa_amd_gpu_memory_error_info_s {
    hsa_agent_t agent;
    uint64_t virtual_address;
    uint32_t error_reason_mask;
} hsa_amd_gpu_memory_error_info_t;

typedef enum { HSA_AMD_HW_EXCEPTION_RESET_TYPE_OTHER = 1 } hsa_amd_hw_exception_reset_type_t;
typedef enum {
    HSA_AMD_HW_EXCEPTION_CAUSE_GPU_HANG = 1,
    HSA_AMD_HW_EXCEPTION_CAUSE_ECC = 2
} hsa_amd_hw_exception_reset_cause_t;

typedef struct hsa_amd_gpu_hw_exception_info_s {
    hsa_agent_t agent;
    hsa_amd_hw_exception_reset_type_t reset_type;
    hsa_amd_hw_exception_reset_cause_t reset_cause;
} hsa_amd_gpu_hw_exception_info_t;

typedef struct hsa_amd_event_s {
    hsa_amd_event_type_t event_type;
    __extension__ union {
        hsa_amd_gpu_memory_fault_info_t memory_fault;
        hsa_amd_gpu_hw_exception_info_t hw_exception;
        hsa_amd_gpu_memory_error_info_t memory_error;
    };
} hsa_amd_event_t;

typedef hsa_status_t (*hsa_amd_system_event_callback_t)(const hsa_amd_event_t *event, void *data);

/*
 * Registers a function for events of GPUs. There are no such events, so it is never called.
 *     INVALID_ARGUMENT   callback is NULL
 */
HSA_API hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback, void *data);

/* ---- profiling --------------------------------------------------------------------------------------------------- */

typedef struct hsa_amd_profiling_dispatch_time_s {
    uint64_t start;
    uint64_t end;
} hsa_amd_profiling_dispatch_time_t;

/* Subjects of hsa_amd_enable_logging(). */
typedef enum hsa_amd_log_flag_s {
    HSA_AMD_LOG_FLAG_BLIT_KERNEL_PKTS = 0,
    HSA_AMD_LOG_FLAG_AQL = 0,
    HSA_AMD_LOG_FLAG_SDMA = 1,
    HSA_AMD_LOG_FLAG_INFO = 2
} hsa_amd_log_flag_t;

/*
 * Would time the kernels of a queue.
 *     INVALID_ARGUMENT   queue is NULL
 *     INVALID_QUEUE
 */
HSA_API hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t *queue, int enable);

/*
 * Would return the time of the kernel that decremented a signal, or convert a tick of an agent's clock to the system's.
 *     INVALID_ARGUMENT   time or system_tick is NULL
 *     INVALID_AGENT      always: it is no GPU
 */
HSA_API hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                                                         hsa_amd_profiling_dispatch_time_t *time);
HSA_API hsa_status_t hsa_amd_profiling_convert_tick_to_system_domain(hsa_agent_t agent, uint64_t agent_tick,
                                                                     uint64_t *system_tick);

/*
 * Would record the activity of a GPU.
 *     INVALID_AGENT   always: it is no GPU
 */
HSA_API hsa_status_t hsa_amd_spm_acquire(hsa_agent_t preferred_agent);
HSA_API hsa_status_t hsa_amd_spm_release(hsa_agent_t preferred_agent);
HSA_API hsa_status_t hsa_amd_spm_set_dest_buffer(hsa_agent_t preferred_agent, size_t size_in_bytes, uint32_t *timeout,
                                                 uint32_t *size_copied, void *dest, bool *is_data_loss);

/*
 * Would log the queues of the runtime. It has none.
 *     NOT_SUPPORTED
 */
HSA_API hsa_status_t hsa_amd_enable_logging(uint8_t *flags, void *file);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef enum hsa_amd_coherency_type_s {
    HSA_AMD_COHERENCY_TYPE_COHERENT = 0,
    HSA_AMD_COHERENCY_TYPE_NONCOHERENT = 1
} hsa_amd_coherency_type_t;

/*
 * Would return or set the coherence of a GPU's fine-grained memory. That of CPUs is always coherent.
 *     INVALID_ARGUMENT   type is NULL, or none
 *     INVALID_AGENT      always: it is no GPU
 */
HSA_API hsa_status_t hsa_amd_coherency_get_type(hsa_agent_t agent, hsa_amd_coherency_type_t *type);
HSA_API hsa_status_t hsa_amd_coherency_set_type(hsa_agent_t agent, hsa_amd_coherency_type_t type);

/* A file. */
__extension__ typedef struct hsa_amd_ais_file_handle_s {
    union {
        void *handle;
        int fd;
        uint8_t pad[8];
    };
} hsa_amd_ais_file_handle_t;

/*
 * Would copy between a file and a GPU's memory. For memory here, pread() and pwrite() do that.
 *     INVALID_ARGUMENT   devicePtr is NULL, or size is 0
 *     NOT_SUPPORTED
 */
HSA_API hsa_status_t hsa_amd_ais_file_write(hsa_amd_ais_file_handle_t handle, void *devicePtr, uint64_t size,
                                            int64_t file_offset, uint64_t *size_copied, int32_t *status);
HSA_API hsa_status_t hsa_amd_ais_file_read(hsa_amd_ais_file_handle_t handle, void *devicePtr, uint64_t size,
                                           int64_t file_offset, uint64_t *size_copied, int32_t *status);

#ifdef __cplusplus
}
#endif

#endif
