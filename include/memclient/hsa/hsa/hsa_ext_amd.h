/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's extensions of HSA that concern memory: pools, access, information about pointers, memory shared with other
 * processes, virtual memory, and signals for copies. The rules of hsa.h about statuses, threads, fork() and units apply
 * here too.
 *
 *     void *va;
 *     hsa_amd_vmem_alloc_handle_t memory;
 *     hsa_amd_memory_access_desc_t rw = {HSA_ACCESS_PERMISSION_RW, agent};
 *
 *     hsa_amd_vmem_address_reserve(&va, 1 << 30, 0, 0);
 *     hsa_amd_vmem_handle_create(pool, 2 << 20, MEMORY_TYPE_NONE, 0, &memory);
 *     hsa_amd_vmem_map(va, 2 << 20, 0, memory, 0);
 *     hsa_amd_vmem_set_access(va, 2 << 20, &rw, 1);
 *
 * Where releases of AMD's runtime (ROCr) differ from their documents, this library follows the documents, and supports
 * what programs rely on beyond them. Where both cannot be followed, the profile decides, document or rocr: see
 * hsa_amd_vmem_set_access(), hsa_amd_vmem_get_access() and hsa_ext_memoryd.h.
 */
#ifndef HSA_RUNTIME_EXT_AMD_H_
#define HSA_RUNTIME_EXT_AMD_H_

#include "hsa.h"
#include "hsa_ext_image.h"

/* The implemented version of the extensions' interface: HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR and _MINOR. */
#define HSA_AMD_INTERFACE_VERSION_MAJOR 1
#define HSA_AMD_INTERFACE_VERSION_MINOR 16

#ifdef __cplusplus
extern "C" {
#endif

/* Further statuses. Their type is not hsa_status_t: cast before comparing. */
enum {
    HSA_STATUS_ERROR_INVALID_MEMORY_POOL = 40,
    HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 41,
    HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 42,
    HSA_STATUS_ERROR_MEMORY_FAULT = 43,
    HSA_STATUS_CU_MASK_REDUCED = 44,
    HSA_STATUS_ERROR_OUT_OF_REGISTERS = 45,
    HSA_STATUS_ERROR_RESOURCE_BUSY = 46,
    HSA_STATUS_ERROR_NOT_SUPPORTED = 47
};

/* Sets and tests a bit of an attribute of type uint8_t[8]. */
static inline void hsa_flag_set64(uint8_t *value, uint32_t bit)
{
    value[bit / 8] |= 1U << bit % 8;
}

static inline bool hsa_flag_isset64(uint8_t *value, uint32_t bit)
{
    return (value[bit / 8] >> bit % 8 & 1U) != 0;
}

/* ---- agents ------------------------------------------------------------------------------------------------------ */

typedef enum { HSA_IOMMU_SUPPORT_NONE = 0, HSA_IOMMU_SUPPORT_V2 = 1 } hsa_amd_iommu_version_t;

/* Registers of a GPU; NULL for a CPU. */
typedef struct hsa_amd_hdp_flush_s {
    uint32_t *HDP_MEM_FLUSH_CNTL;
    uint32_t *HDP_REG_FLUSH_CNTL;
} hsa_amd_hdp_flush_t;

/* Bit numbers in HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES. */
typedef enum hsa_amd_agent_memory_properties_s {
    HSA_AMD_MEMORY_PROPERTY_AGENT_IS_APU = 1
} hsa_amd_agent_memory_properties_t;

/* The clocks of an agent, read at the same time. */
typedef struct hsa_amd_clock_counters_s {
    uint64_t gpu_clock_counter;      /* 0 */
    uint64_t cpu_clock_counter;      /* as HSA_SYSTEM_INFO_TIMESTAMP */
    uint64_t system_clock_counter;   /* the same */
    uint64_t system_clock_frequency; /* as HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY */
} hsa_amd_clock_counters_t;

/*
 * Further attributes for hsa_agent_get_info(). In brackets: the type of the value, and the value itself if it is the
 * same on all CPU agents. [-]: CPU agents do not have it, INVALID_ARGUMENT.
 */
typedef enum hsa_amd_agent_info_s {
    HSA_AMD_AGENT_INFO_CHIP_ID = 0xA000,                        /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xA001,                 /* [uint32_t] bytes */
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xA002,             /* [uint32_t] processors of the node */
    HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xA003,            /* [uint32_t] MHz; 0 = not known */
    HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xA004,                 /* [uint32_t] number of the NUMA node */
    HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS = 0xA005,       /* [uint32_t] 1 */
    HSA_AMD_AGENT_INFO_BDFID = 0xA006,                          /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_MEMORY_WIDTH = 0xA007,                   /* [-] */
    HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY = 0xA008,           /* [-] */
    HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xA009,                   /* [char[64]] the processor's model */
    HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xA00A,               /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xA00B,               /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES = 0xA00C,             /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE = 0xA00D,       /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_HDP_FLUSH = 0xA00E,                      /* [hsa_amd_hdp_flush_t] NULL, NULL */
    HSA_AMD_AGENT_INFO_DOMAIN = 0xA00F,                         /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xA010,             /* [bool] false */
    HSA_AMD_AGENT_INFO_UUID = 0xA011,                           /* [char[21]] "CPU-" and 16 hexadecimal digits */
    HSA_AMD_AGENT_INFO_ASIC_REVISION = 0xA012,                  /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS = 0xA013,         /* [bool] true */
    HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT = 0xA014, /* [uint32_t] as COMPUTE_UNIT_COUNT */
    /* [uint64_t] ordinary pages, in bytes, that the agent's pools together could give this process now */
    HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xA015,
    HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xA016,   /* [uint64_t] as HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY */
    HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID = 0xA107,        /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_UCODE_VERSION = 0xA108,         /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION = 0xA109,    /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SDMA_ENG = 0xA10A,          /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG = 0xA10B,     /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_IOMMU_SUPPORT = 0xA110,         /* [hsa_amd_iommu_version_t] NONE */
    HSA_AMD_AGENT_INFO_NUM_XCC = 0xA111,               /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_DRIVER_UID = 0xA112,            /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NEAREST_CPU = 0xA113,           /* [hsa_agent_t] itself, or if it has no processors, another */
    HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES = 0xA114,     /* [uint8_t[8]] for hsa_flag_isset64(): none is set */
    HSA_AMD_AGENT_INFO_AQL_EXTENSIONS = 0xA115,        /* [uint8_t[8]] none is set */
    HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX = 0xA116,     /* [uint64_t] 0 */
    HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT = 0xA117, /* [uint64_t] 0 */
    HSA_AMD_AGENT_INFO_CLOCK_COUNTERS = 0xA118,        /* [hsa_amd_clock_counters_t] */
    HSA_AMD_AGENT_INFO_PM4_EMULATION = 0xA119,         /* [-] */
    HSA_AMD_AGENT_INFO_LUID = 0xA11A                   /* [-] */
} hsa_amd_agent_info_t;

/* Further attributes for hsa_region_get_info(). */
#if defined(__cplusplus) && __cplusplus >= 201103L
typedef enum hsa_amd_region_info_s : int {
#else
typedef enum hsa_amd_region_info_s {
#endif
    HSA_AMD_REGION_INFO_HOST_ACCESSIBLE = 0xA000,    /* [bool] the process can use it */
    HSA_AMD_REGION_INFO_BASE = 0xA001,               /* [void *] NULL: regions here are no ranges of addresses */
    HSA_AMD_REGION_INFO_BUS_WIDTH = 0xA002,          /* [uint32_t] 0: not known */
    HSA_AMD_REGION_INFO_MAX_CLOCK_FREQUENCY = 0xA003 /* [uint32_t] 0: not known */
} hsa_amd_region_info_t;

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* A memory pool: a kind of memory of one agent. 0 is no pool. A pool is also a global region, with the same handle. */
typedef struct hsa_amd_memory_pool_s {
    uint64_t handle;
} hsa_amd_memory_pool_t;

typedef enum {
    HSA_AMD_SEGMENT_GLOBAL = 0,
    HSA_AMD_SEGMENT_READONLY = 1,
    HSA_AMD_SEGMENT_PRIVATE = 2,
    HSA_AMD_SEGMENT_GROUP = 3
} hsa_amd_segment_t;

/* Like hsa_region_global_flag_t. */
typedef enum hsa_amd_memory_pool_global_flag_s {
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8
} hsa_amd_memory_pool_global_flag_t;

typedef enum hsa_amd_memory_pool_location_s {
    HSA_AMD_MEMORY_POOL_LOCATION_CPU = 0,
    HSA_AMD_MEMORY_POOL_LOCATION_GPU = 1
} hsa_amd_memory_pool_location_t;

/* Attributes for hsa_amd_memory_pool_get_info(). The type of the value is in brackets. */
typedef enum {
    HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,      /* [hsa_amd_segment_t] GLOBAL */
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1, /* [uint32_t] mask of hsa_amd_memory_pool_global_flag_t */
    HSA_AMD_MEMORY_POOL_INFO_SIZE = 2,         /* [size_t] the broker's capacity for the node; its pools share it */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,     /* [bool] true */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6,     /* [size_t] the size of its pages */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7,   /* [size_t] the size of its pages */
    HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15,        /* [bool] every agent can use it: true */
    HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16,           /* [size_t] the most it could give this process now */
    HSA_AMD_MEMORY_POOL_INFO_LOCATION = 17,                 /* [hsa_amd_memory_pool_location_t] CPU */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE = 18 /* [size_t] sizes that make best use of memory: 2 MiB */
} hsa_amd_memory_pool_info_t;

/* Flags of an allocation; a mask. They are for GPUs: no flag has an effect here, nor has an unknown bit. */
typedef enum hsa_amd_memory_pool_flag_s {
    HSA_AMD_MEMORY_POOL_STANDARD_FLAG = 0,
    HSA_AMD_MEMORY_POOL_PCIE_FLAG = 1,
    HSA_AMD_MEMORY_POOL_CONTIGUOUS_FLAG = 2,
    HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG = 4,
    HSA_AMD_MEMORY_POOL_UNCACHED_FLAG = 8
} hsa_amd_memory_pool_flag_t;

/*
 * Returns a property of a pool; value has room for its type. Only ALLOC_MAX_SIZE may call the broker.
 *     INVALID_ARGUMENT      value is NULL, or attribute is none of a pool
 *     INVALID_MEMORY_POOL
 */
HSA_API hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t memory_pool,
                                                  hsa_amd_memory_pool_info_t attribute, void *value);

/*
 * Calls callback for each of the agent's own pools, until it returns anything but SUCCESS, which is then returned.
 * There are three, or none on a node without memory: fine-grained, fine-grained for kernel arguments, and
 * coarse-grained. Further coarse-grained pools follow if the broker's configuration declares pools of huge pages on
 * this node alone; their granule is the huge page.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_amd_agent_iterate_memory_pools(
    hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t memory_pool, void *data), void *data);

/*
 * Allocates memory from a pool, as hsa_memory_allocate() does from a region.
 *     INVALID_ARGUMENT      size is 0, or ptr is NULL
 *     INVALID_MEMORY_POOL
 *     INVALID_ALLOCATION    size is above ALLOC_MAX_SIZE as last reported
 *     OUT_OF_RESOURCES      the pool has no room for it now
 */
HSA_API hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t memory_pool, size_t size, uint32_t flags,
                                                  void **ptr);

/* The same as hsa_memory_free(). */
HSA_API hsa_status_t hsa_amd_memory_pool_free(void *ptr);

/* The access of an agent to a pool. */
typedef enum {
    HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0,
    HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT = 1,
    HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT = 2 /* after hsa_amd_agents_allow_access() */
} hsa_amd_memory_pool_access_t;

typedef enum {
    HSA_AMD_LINK_INFO_TYPE_HYPERTRANSPORT = 0,
    HSA_AMD_LINK_INFO_TYPE_QPI = 1,
    HSA_AMD_LINK_INFO_TYPE_PCIE = 2,
    HSA_AMD_LINK_INFO_TYPE_INFINBAND = 3,
    HSA_AMD_LINK_INFO_TYPE_XGMI = 4
} hsa_amd_link_info_type_t;

/* A link between two nodes. Unknown values are 0. */
typedef struct hsa_amd_memory_pool_link_info_s {
    uint32_t min_latency;   /* ns */
    uint32_t max_latency;   /* ns */
    uint32_t min_bandwidth; /* MB/s */
    uint32_t max_bandwidth; /* MB/s */
    bool atomic_support_32bit;
    bool atomic_support_64bit;
    bool coherent_support;
    hsa_amd_link_info_type_t link_type;
    uint32_t numa_distance; /* as in the system's distance table: 10 is local */
} hsa_amd_memory_pool_link_info_t;

/* Attributes for hsa_amd_agent_memory_pool_get_info(). The type of the value is in brackets. */
typedef enum {
    HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0,        /* [hsa_amd_memory_pool_access_t] ALLOWED_BY_DEFAULT */
    HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS = 1, /* [uint32_t] 0 for the agent's own pools, else 1 */
    /* [hsa_amd_memory_pool_link_info_t[NUM_LINK_HOPS]]; one, of zeros, for the agent's own pools */
    HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO = 2
} hsa_amd_agent_memory_pool_info_t;

/*
 * Returns a property of an agent and a pool together; value has room for its type. It does not call the broker.
 *     INVALID_ARGUMENT      value is NULL, or attribute is none of the above
 *     INVALID_AGENT
 *     INVALID_MEMORY_POOL
 */
HSA_API hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t memory_pool,
                                                        hsa_amd_agent_memory_pool_info_t attribute, void *value);

/*
 * Lets agents use an allocation. CPU agents always can, so this only checks. If ptr is in a mapping, the agents may
 * read and write it and all mappings that follow it without a gap; other agents keep their access.
 *     INVALID_ARGUMENT     num_agents is 0, agents or ptr is NULL, or flags is not NULL
 *     INVALID_AGENT        one of agents
 *     INVALID_ALLOCATION   ptr is not the address of an allocation or attached memory, nor in a mapping
 */
HSA_API hsa_status_t hsa_amd_agents_allow_access(uint32_t num_agents, const hsa_agent_t *agents, const uint32_t *flags,
                                                 const void *ptr);

/*
 * Whether an allocation can migrate to another pool. *result becomes false: none can, see hsa_memory_assign_agent().
 *     INVALID_ARGUMENT      result is NULL
 *     INVALID_MEMORY_POOL
 *     OUT_OF_RESOURCES      both pools are valid
 */
HSA_API hsa_status_t hsa_amd_memory_pool_can_migrate(hsa_amd_memory_pool_t src_memory_pool,
                                                     hsa_amd_memory_pool_t dst_memory_pool, bool *result);

/*
 * Migrates an allocation to another pool, which is never possible.
 *     INVALID_ARGUMENT      ptr is NULL, or flags is not 0
 *     INVALID_MEMORY_POOL
 *     OUT_OF_RESOURCES      the arguments are valid
 */
HSA_API hsa_status_t hsa_amd_memory_migrate(const void *ptr, hsa_amd_memory_pool_t memory_pool, uint32_t flags);

/* ---- what is known of a pointer ---------------------------------------------------------------------------------- */

typedef enum {
    HSA_EXT_POINTER_TYPE_UNKNOWN = 0,       /* memory unknown to this runtime */
    HSA_EXT_POINTER_TYPE_HSA = 1,           /* allocated by region or pool */
    HSA_EXT_POINTER_TYPE_LOCKED = 2,        /* of the application, registered or locked */
    HSA_EXT_POINTER_TYPE_GRAPHICS = 3,      /* of hsa_amd_interop_map_buffer() */
    HSA_EXT_POINTER_TYPE_IPC = 4,           /* attached */
    HSA_EXT_POINTER_TYPE_RESERVED_ADDR = 5, /* reserved addresses without a mapping */
    HSA_EXT_POINTER_TYPE_HSA_VMEM = 6       /* a mapping in reserved addresses */
} hsa_amd_pointer_type_t;

typedef struct hsa_amd_pointer_info_s {
    uint32_t size;               /* set to sizeof by the caller; becomes the number of bytes written */
    hsa_amd_pointer_type_t type; /* if UNKNOWN, all members below are 0 */
    void *agentBaseAddress;      /* start of the memory for agents: NULL for reserved addresses; ptr for a mapping */
    void *hostBaseAddress;       /* start of the memory for the process; ptr for a mapping */
    size_t sizeInBytes;          /* as requested when it was allocated, attached, registered, mapped or reserved */
    void *userData;              /* from hsa_amd_pointer_info_set_userdata(), or NULL */
    hsa_agent_t agentOwner;      /* the agent that has the memory */
    uint32_t global_flags;       /* hsa_amd_memory_pool_global_flag_t of its pool; see also hsa_ext_memoryd.h */
    bool registered;             /* false for addresses reserved with ..._NO_REGISTER */
    uint32_t alloc_flags;        /* hsa_amd_memory_pool_flag_t of the allocation from a pool */
} hsa_amd_pointer_info_t;

/*
 * Describes the memory that contains an address. The struct may grow at its end: of a smaller one, from older headers,
 * only its part is written; of a larger one, the part that is known here. If alloc, num_agents_accessible and
 * accessible are not NULL, *accessible becomes an array of the agents with access, which alloc allocates and the caller
 * frees; it is NULL if there are none. For memory that another process made, the first call asks the broker.
 *     INVALID_ARGUMENT   ptr or info is NULL, or info->size is 0
 *     OUT_OF_RESOURCES   alloc returned NULL
 */
HSA_API hsa_status_t hsa_amd_pointer_info(const void *ptr, hsa_amd_pointer_info_t *info, void *(*alloc)(size_t),
                                          uint32_t *num_agents_accessible, hsa_agent_t **accessible);

/*
 * Sets the userData that hsa_amd_pointer_info() returns for the memory that contains ptr.
 *     INVALID_ARGUMENT   ptr is NULL, or nothing of this runtime is there
 */
HSA_API hsa_status_t hsa_amd_pointer_info_set_userdata(const void *ptr, void *userdata);

/*
 * Called with the registered pointer, in the thread that frees, before its call returns. By then the runtime does not
 * know the memory any more; the memory of an allocation can still be accessed. The callback may call all functions
 * here.
 */
typedef void (*hsa_amd_deallocation_callback_t)(void *ptr, void *user_data);

/*
 * Registers a callback for when the allocation that contains ptr is freed, attached memory is detached for the last
 * time, or a mapping is unmapped. Any number of them are called in the order of registration.
 *     INVALID_ARGUMENT     ptr or callback is NULL
 *     INVALID_ALLOCATION   ptr is in nothing of the kind
 */
HSA_API hsa_status_t hsa_amd_register_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback,
                                                            void *user_data);

/*
 * Undoes one registration.
 *     INVALID_ARGUMENT   ptr or callback is NULL, or they were not registered together
 */
HSA_API hsa_status_t hsa_amd_deregister_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback);

/* ---- filling and copying ----------------------------------------------------------------------------------------- */

/*
 * Writes `value` count times from ptr on, into memory of this runtime.
 *     INVALID_ARGUMENT     ptr is NULL or no multiple of 4, or the memory may not be written, as for hsa_memory_copy()
 *     INVALID_ALLOCATION   a part of the range is in no allocation, attached memory, mapping or registered range
 */
HSA_API hsa_status_t hsa_amd_memory_fill(void *ptr, uint32_t value, size_t count);

/*
 * Copies like hsa_memory_copy() in a thread of its own, after all dep_signals are 0, and then decrements
 * completion_signal. It sets the signal to -1 instead if the copy fails: hsa_memory_copy() would refuse it, or one of
 * dep_signals becomes negative or is destroyed. It returns before the copy is done. The agents are those that have the
 * memory. The last hsa_shut_down() waits for copies that have begun.
 *     INVALID_ARGUMENT   dst or src is NULL, or dep_signals does not go with num_dep_signals
 *     INVALID_AGENT
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent,
                                               size_t size, uint32_t num_dep_signals, const hsa_signal_t *dep_signals,
                                               hsa_signal_t completion_signal);

/* Copy engines of GPUs, one bit each. */
typedef enum hsa_amd_sdma_engine_id {
    HSA_AMD_SDMA_ENGINE_0 = 0x1,
    HSA_AMD_SDMA_ENGINE_1 = 0x2,
    HSA_AMD_SDMA_ENGINE_2 = 0x4,
    HSA_AMD_SDMA_ENGINE_3 = 0x8,
    HSA_AMD_SDMA_ENGINE_4 = 0x10,
    HSA_AMD_SDMA_ENGINE_5 = 0x20,
    HSA_AMD_SDMA_ENGINE_6 = 0x40,
    HSA_AMD_SDMA_ENGINE_7 = 0x80,
    HSA_AMD_SDMA_ENGINE_8 = 0x100,
    HSA_AMD_SDMA_ENGINE_9 = 0x200,
    HSA_AMD_SDMA_ENGINE_10 = 0x400,
    HSA_AMD_SDMA_ENGINE_11 = 0x800,
    HSA_AMD_SDMA_ENGINE_12 = 0x1000,
    HSA_AMD_SDMA_ENGINE_13 = 0x2000,
    HSA_AMD_SDMA_ENGINE_14 = 0x4000,
    HSA_AMD_SDMA_ENGINE_15 = 0x8000
} hsa_amd_sdma_engine_id_t;

/*
 * Copies like hsa_amd_memory_async_copy(). There are no engines here, so neither engine_id nor force_copy_on_sdma makes
 * a difference.
 *     INVALID_ARGUMENT   likewise, or engine_id has not just one bit
 *     INVALID_AGENT
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_memory_async_copy_on_engine(void *dst, hsa_agent_t dst_agent, const void *src,
                                                         hsa_agent_t src_agent, size_t size, uint32_t num_dep_signals,
                                                         const hsa_signal_t *dep_signals,
                                                         hsa_signal_t completion_signal,
                                                         hsa_amd_sdma_engine_id_t engine_id, bool force_copy_on_sdma);

/*
 * Returns the engines that are free for copies between two agents: none, *engine_ids_mask becomes 0.
 *     INVALID_ARGUMENT    engine_ids_mask is NULL
 *     INVALID_AGENT
 *     OUT_OF_RESOURCES    the arguments are valid
 */
HSA_API hsa_status_t hsa_amd_memory_copy_engine_status(hsa_agent_t dst_agent, hsa_agent_t src_agent,
                                                       uint32_t *engine_ids_mask);

/*
 * Returns the preferred engines for that: none, *recommended_ids_mask becomes 0.
 *     INVALID_ARGUMENT    recommended_ids_mask is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_amd_memory_get_preferred_copy_engine(hsa_agent_t dst_agent, hsa_agent_t src_agent,
                                                              uint32_t *recommended_ids_mask);

/* Memory as rows of `pitch` bytes, and slices of `slice` bytes. */
typedef struct hsa_pitched_ptr_s {
    void *base;
    size_t pitch;
    size_t slice;
} hsa_pitched_ptr_t;

/* The direction of a copy; it makes no difference here. */
typedef enum {
    hsaHostToHost = 0,
    hsaHostToDevice = 1,
    hsaDeviceToHost = 2,
    hsaDeviceToDevice = 3
} hsa_amd_copy_direction_t;

/*
 * Copies a box of bytes, as hsa_amd_memory_async_copy() copies a range: range->x bytes of each of range->y rows of
 * range->z slices, from src at src_offset to dst at dst_offset, which also count in bytes, rows and slices. The two
 * boxes do not overlap. Bytes between the rows are neither accessed nor checked. If a dimension of the range is 0,
 * nothing is copied, and completion_signal is decremented. All memory is the host's, so every dir is accepted.
 *     INVALID_ARGUMENT   dst, dst_offset, src, src_offset or range is NULL; dep_signals does not go with
 *                        num_dep_signals; dir is none; base, pitch or slice of dst or src is no multiple of 4; the
 *                        range is wider than a pitch, or a slice that is not 0 has fewer rows; range->z is above 1
 *                        and a slice is 0; or an address is beyond all memory
 *     INVALID_AGENT      copy_agent
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t *dst, const hsa_dim3_t *dst_offset,
                                                    const hsa_pitched_ptr_t *src, const hsa_dim3_t *src_offset,
                                                    const hsa_dim3_t *range, hsa_agent_t copy_agent,
                                                    hsa_amd_copy_direction_t dir, uint32_t num_dep_signals,
                                                    const hsa_signal_t *dep_signals, hsa_signal_t completion_signal);

/* The start and end of a copy, in ticks of HSA_SYSTEM_INFO_TIMESTAMP. */
typedef struct hsa_amd_profiling_async_copy_time_s {
    uint64_t start;
    uint64_t end;
} hsa_amd_profiling_async_copy_time_t;

/* Sets whether copies are timed that this process requests from now on. */
HSA_API hsa_status_t hsa_amd_profiling_async_copy_enable(bool enable);

/*
 * Returns the time of the last timed copy that has decremented the signal.
 *     INVALID_ARGUMENT   time is NULL
 *     INVALID_SIGNAL
 *     ERROR              there was none
 */
HSA_API hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                           hsa_amd_profiling_async_copy_time_t *time);

/*
 * Lets agents use memory that the application allocated. CPU agents always can: the memory becomes known as with
 * hsa_memory_register(), and *agent_ptr becomes host_ptr. num_agent 0 means all agents. If exactly the same range is
 * locked several times, it must be unlocked as often. A range that overlaps locked or registered ones can be locked
 * too: hsa_amd_pointer_info() continues to report those.
 *     INVALID_ARGUMENT   host_ptr or agent_ptr is NULL, size is 0, agents does not go with num_agent, or a part of the
 *                        range is memory of this runtime, or reserved by it, and a part is not
 *     INVALID_AGENT      one of agents
 */
HSA_API hsa_status_t hsa_amd_memory_lock(void *host_ptr, size_t size, hsa_agent_t *agents, int num_agent,
                                         void **agent_ptr);

/*
 * The same, with the properties of a pool.
 *     INVALID_ARGUMENT      likewise, or flags is not 0
 *     INVALID_AGENT
 *     INVALID_MEMORY_POOL
 */
HSA_API hsa_status_t hsa_amd_memory_lock_to_pool(void *host_ptr, size_t size, hsa_agent_t *agents, int num_agent,
                                                 hsa_amd_memory_pool_t pool, uint32_t flags, void **agent_ptr);

/* Unlocks the range of that address. For other addresses, and NULL, it does nothing and returns SUCCESS. */
HSA_API hsa_status_t hsa_amd_memory_unlock(void *host_ptr);

/* ---- sharing allocations with processes -------------------------------------------------------------------------- */

/* A handle with which a process attaches an allocation: 32 opaque bytes, memoryd's token. They can be compared, copied
 * and sent. */
typedef struct hsa_amd_ipc_memory_s {
    uint32_t handle[8];
} hsa_amd_ipc_memory_t;

/*
 * Returns the handle of an allocation: the same bytes each time, which are never those of another allocation. Every
 * process of the machine that has them can attach the allocation as long as it exists: until it is freed and detached
 * everywhere. memclient_open_token() accepts the bytes too.
 *     INVALID_ARGUMENT   ptr or handle is NULL, ptr is not the address of an allocation, or len neither its size as
 *                        asked for nor that rounded up to pages
 */
HSA_API hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t len, hsa_amd_ipc_memory_t *handle);

/*
 * Maps the allocation, at its address in the other process if that is free here, with the access that the token grants.
 * Attaching it again, even by another handle of it, returns the same address, which must be detached as often. Memory
 * that this process made through HSA itself is attached at another address. Handles of memclient_share() work too.
 * num_agents 0 means all agents.
 *     INVALID_ARGUMENT   handle or mapped_ptr is NULL, mapping_agents is NULL and num_agents is not 0, the handle is
 *                        not valid or no longer so, or len is not the allocation's
 *     INVALID_AGENT      one of mapping_agents
 */
HSA_API hsa_status_t hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t *handle, size_t len, uint32_t num_agents,
                                               const hsa_agent_t *mapping_agents, void **mapped_ptr);

/*
 * Detaches memory.
 *     INVALID_ARGUMENT   mapped_ptr is NULL or not the address of attached memory
 */
HSA_API hsa_status_t hsa_amd_ipc_memory_detach(void *mapped_ptr);

/* Kinds of descriptors of hsa_amd_portable_export_dmabuf_v2(). */
#if defined(__cplusplus) && __cplusplus >= 201103L
typedef enum hsa_amd_dma_buf_mapping_type_s : int {
#else
typedef enum hsa_amd_dma_buf_mapping_type_s {
#endif
    HSA_AMD_DMABUF_MAPPING_TYPE_NONE = 0,
    HSA_AMD_DMABUF_MAPPING_TYPE_PCIE = 1
} hsa_amd_dma_buf_mapping_type_t;

/*
 * Returns a descriptor of the memory that contains [ptr, ptr + size), and the offset of ptr in it. It is memoryd's
 * shareable handle of the memory: a memfd, which can be mapped and imported, not a dma-buf of the kernel. It keeps the
 * contents alive, and the caller closes it.
 *     INVALID_ARGUMENT     ptr, dmabuf or offset is NULL, or size is 0
 *     INVALID_ALLOCATION   the range is not in one allocation or mapping
 */
HSA_API hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *dmabuf, uint64_t *offset);

/* The same. flags is a hsa_amd_dma_buf_mapping_type_t, which makes no difference here. */
HSA_API hsa_status_t hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *dmabuf, uint64_t *offset,
                                                       uint64_t flags);

/*
 * Closes such a descriptor, as close() does.
 *     RESOURCE_FREE   it is no open descriptor
 */
HSA_API hsa_status_t hsa_amd_portable_close_dmabuf(int dmabuf);

/*
 * Maps the memory of a descriptor: of hsa_amd_portable_export_dmabuf(), or another shareable handle of memoryd. *size
 * and *ptr become those of the whole memory. There is no metadata: *metadata_size becomes 0 and *metadata NULL, if they
 * are not NULL.
 *     INVALID_ARGUMENT     num_agents is 0, agents, size or ptr is NULL, flags is not 0, or it is no open descriptor
 *     INVALID_AGENT        one of agents
 *     INVALID_ALLOCATION   it is no descriptor of memoryd's memory
 */
HSA_API hsa_status_t hsa_amd_interop_map_buffer(uint32_t num_agents, hsa_agent_t *agents, int interop_handle,
                                                uint32_t flags, size_t *size, void **ptr, size_t *metadata_size,
                                                const void **metadata);

/* Unmaps it. NULL and other addresses are ignored, with SUCCESS. */
HSA_API hsa_status_t hsa_amd_interop_unmap_buffer(void *ptr);

/* ---- virtual memory ---------------------------------------------------------------------------------------------- */

/*
 * Addresses, memory and access are separate: a program reserves a range of addresses, creates memory as a *handle*,
 * maps handles into the range, and gives agents access to mappings. All sizes, offsets and addresses are multiples of
 * the page size.
 *
 * A handle counts its references (create, import and retain add one; release drops one) and its mappings. This process
 * frees its memory when both are 0. Descriptors, and other processes that imported it, keep it independently.
 */
typedef struct hsa_amd_vmem_alloc_handle_s {
    uint64_t handle;
} hsa_amd_vmem_alloc_handle_t;

typedef enum {
    MEMORY_TYPE_NONE = 0,  /* on the pool's node if it has room, else on another */
    MEMORY_TYPE_PINNED = 1 /* only on the pool's node */
} hsa_amd_memory_type_t;

/* The access of an agent to a mapping. */
typedef struct hsa_amd_memory_access_desc_s {
    hsa_access_permission_t permissions;
    hsa_agent_t agent_handle;
} hsa_amd_memory_access_desc_t;

typedef enum hsa_amd_vmem_address_reserve_flag_s {
    HSA_AMD_VMEM_ADDRESS_NO_REGISTER = 1 /* only reported by hsa_amd_pointer_info() */
} hsa_amd_vmem_address_reserve_flag_t;

/*
 * Reserves addresses. They take no memory, whatever their size, and are inaccessible. `address` is only a request, 0
 * for none; if it is not available, the range is elsewhere, aligned to 2 MiB from a size of 2 MiB on. All processes of
 * the machine keep the range free, unless it is outside of memoryd's arena or the arena is full: then only this process
 * does. flags: unknown ones are ignored. hsa_amd_vmem_address_free() gives the range back.
 *     INVALID_ARGUMENT   va is NULL, or size is 0 or no multiple of the page size
 *     OUT_OF_RESOURCES   the kernel has no such range of addresses left
 */
HSA_API hsa_status_t hsa_amd_vmem_address_reserve(void **va, size_t size, uint64_t address, uint64_t flags);

/*
 * The same with an alignment: a power of two, at least the page size; 0: as above.
 *     INVALID_ARGUMENT   likewise, or the alignment is none
 */
HSA_API hsa_status_t hsa_amd_vmem_address_reserve_align(void **va, size_t size, uint64_t address, uint64_t alignment,
                                                        uint64_t flags);

/*
 * Gives a whole reserved range back.
 *     INVALID_ARGUMENT     va is NULL, or size is not what was reserved
 *     INVALID_ALLOCATION   va is not the start of a reserved range
 *     RESOURCE_FREE        something is mapped in it; also if its handle was released
 */
HSA_API hsa_status_t hsa_amd_vmem_address_free(void *va, size_t size);

/*
 * Creates memory from a pool, zeroed and committed, with one reference. flags are ignored.
 *     INVALID_ARGUMENT     memory_handle is NULL, size is 0 or no multiple of the pool's granule, type is none, or
 *                          the pool is not valid
 *     INVALID_ALLOCATION   size is above ALLOC_MAX_SIZE as last reported, or the pool (a region's handle) is none
 *                          that can be allocated from
 *     OUT_OF_RESOURCES     there is no room for it now
 */
HSA_API hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool, size_t size, hsa_amd_memory_type_t type,
                                                uint64_t flags, hsa_amd_vmem_alloc_handle_t *memory_handle);

/*
 * Drops a reference. Mappings stay. Without references the handle is invalid, until hsa_amd_vmem_retain_alloc_handle()
 * adds one.
 *     INVALID_ALLOCATION   the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_handle_release(hsa_amd_vmem_alloc_handle_t memory_handle);

/*
 * Maps [in_offset, in_offset + size) of a handle at va, inside of one reserved range. No agent has access until
 * hsa_amd_vmem_set_access(). A handle may be mapped any number of times, in parts, each with its own access. flags are
 * ignored. It does not call the broker if the handle is mapped in this process or was used recently.
 *     INVALID_ARGUMENT   va is NULL; size is 0 or reaches beyond the handle's end; va, size or in_offset is no multiple
 *                        of the page size; the range is not inside of one reserved range, or something is mapped in
 *                        it; or the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_map(void *va, size_t size, size_t in_offset,
                                      hsa_amd_vmem_alloc_handle_t memory_handle, uint64_t flags);

/*
 * Unmaps one mapping, or several whole ones that follow each other without a gap. The addresses stay reserved. Memory
 * without references and mappings is freed.
 *     INVALID_ARGUMENT     va is NULL, or size is 0 or no multiple of the page size
 *     INVALID_ALLOCATION   no mapping begins at va, or the range has a gap or ends inside of a mapping
 */
HSA_API hsa_status_t hsa_amd_vmem_unmap(void *va, size_t size);

/*
 * Gives agents access to one mapping, or to several whole ones that follow each other without a gap. The process has
 * the access of all agents together. If an agent is listed twice, the last entry counts. It does not call the broker.
 *
 * In the document profile, the list replaces the previous one of each mapping: other agents lose their access. In the
 * rocr profile, other agents keep it.
 *     INVALID_ARGUMENT     va or desc is NULL, size is 0 or no multiple of the page size, desc_cnt is 0, a permission
 *                          is none, the range is not inside of one reserved range, or an agent is to write to memory
 *                          that was imported by a descriptor for reading only, or is published
 *     INVALID_AGENT        one in desc; nothing is changed
 *     INVALID_ALLOCATION   no mapping begins at va, or the range has a gap or ends inside of a mapping
 */
HSA_API hsa_status_t hsa_amd_vmem_set_access(void *va, size_t size, const hsa_amd_memory_access_desc_t *desc,
                                             size_t desc_cnt);

/*
 * Returns the access of an agent to the mapping that contains va. It does not call the broker. If it fails, *perms
 * becomes NONE.
 *
 * An agent that was not in the list of the mapping's last hsa_amd_vmem_set_access() is an error in the document
 * profile. In the rocr profile its access is NONE.
 *     INVALID_ARGUMENT     va or perms is NULL
 *     INVALID_AGENT
 *     INVALID_ALLOCATION   nothing is mapped there, or as above
 */
HSA_API hsa_status_t hsa_amd_vmem_get_access(void *va, hsa_access_permission_t *perms, hsa_agent_t agent_handle);

/*
 * Returns a new descriptor of a handle's memory, which is close-on-exec and which the caller closes. It can be sent to
 * other processes, and keeps the memory alive, as handles do. memclient_import_fd() accepts it too. Imported handles
 * can be exported. flags are ignored. If it fails, *dmabuf_fd becomes -1.
 *     INVALID_ARGUMENT     dmabuf_fd is NULL
 *     INVALID_ALLOCATION   the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_export_shareable_handle(int *dmabuf_fd, hsa_amd_vmem_alloc_handle_t handle,
                                                          uint64_t flags);

/*
 * Returns a handle, with one reference, of the memory of such a descriptor, or of one of memclient_export_fd(). The
 * caller keeps the descriptor. If this process has a handle of the memory already, that handle gets the reference.
 *     INVALID_ARGUMENT     handle is NULL, or dmabuf_fd is negative
 *     INVALID_ALLOCATION   it is no descriptor of memoryd's memory
 */
HSA_API hsa_status_t hsa_amd_vmem_import_shareable_handle(int dmabuf_fd, hsa_amd_vmem_alloc_handle_t *handle);

/*
 * Returns the handle of the mapping that contains an address, and adds a reference to it.
 *     INVALID_ARGUMENT     memory_handle or addr is NULL
 *     INVALID_ALLOCATION   nothing is mapped there
 */
HSA_API hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_amd_vmem_alloc_handle_t *memory_handle, void *addr);

/*
 * Returns how a handle was created. In a process that imported it, the pool is the standard one of its node.
 *     INVALID_ARGUMENT     pool or type is NULL
 *     INVALID_ALLOCATION   the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_get_alloc_properties_from_handle(hsa_amd_vmem_alloc_handle_t memory_handle,
                                                                   hsa_amd_memory_pool_t *pool,
                                                                   hsa_amd_memory_type_t *type);

/* ---- attributes of ordinary memory ------------------------------------------------------------------------------- */

/* Coherence of memory. */
typedef enum hsa_amd_svm_model_s {
    HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED = 0,
    HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED = 1,
    HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE = 2 /* only returned: the range is mixed */
} hsa_amd_svm_model_t;

/*
 * Attributes of ranges of memory. In brackets: the type of the value. After it: the value where none was set. set and
 * get: where the attribute may be used.
 */
typedef enum hsa_amd_svm_attribute_s {
    HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG = 0,                   /* set, get [hsa_amd_svm_model_t] FINE_GRAINED */
    HSA_AMD_SVM_ATTRIB_READ_ONLY = 1,                     /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_HIVE_LOCAL = 2,                    /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY = 3,         /* set, get [uint64_t] log2 of pages, at most 18: 9 */
    HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION = 4,            /* set, get [hsa_agent_t] 0 */
    HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION = 5,             /* get [hsa_agent_t] 0 */
    HSA_AMD_SVM_ATTRIB_READ_MOSTLY = 6,                   /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_GPU_EXEC = 7,                      /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE = 0x200,          /* set [hsa_agent_t] */
    HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE = 0x201, /* set [hsa_agent_t] */
    HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS = 0x202,           /* set [hsa_agent_t] */
    HSA_AMD_SVM_ATTRIB_ACCESS_QUERY = 0x203               /* get [hsa_agent_t] the attribute becomes AGENT_ACCESSIBLE */
} hsa_amd_svm_attribute_t;

/* An attribute and its value, in the representation of its type. */
typedef struct hsa_amd_svm_attribute_pair_s {
    uint64_t attribute;
    uint64_t value;
} hsa_amd_svm_attribute_pair_t;

/*
 * Sets attributes of all pages that a range touches, whatever memory it is. They are for agents with their own memory:
 * CPUs can use all memory as it is, so the attributes are only stored. They are dropped by the last hsa_shut_down(),
 * not when the memory is freed.
 *     INVALID_ARGUMENT         ptr or attribute_list is NULL, size or attribute_count is 0, the range is beyond all
 *                              memory, or an attribute, or its value, is none that can be set
 *     INVALID_AGENT            as a value
 *     INCOMPATIBLE_ARGUMENTS   an attribute is there twice, or two of access for one agent; nothing is set
 */
HSA_API hsa_status_t hsa_amd_svm_attributes_set(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                                size_t attribute_count);

/*
 * Returns the attributes of all pages that a range touches: the value of each attribute in the list. Where it varies,
 * it is INDETERMINATE, 0 or false, or the smallest granularity. The value of ACCESS_QUERY is an agent.
 *     INVALID_ARGUMENT   likewise, or an attribute is none that can be asked for
 *     INVALID_AGENT      as a value
 */
HSA_API hsa_status_t hsa_amd_svm_attributes_get(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                                size_t attribute_count);

/*
 * Moves memory to an agent, after all dep_signals are 0. CPUs use memory where it is, so nothing moves;
 * HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION reports the request immediately. Then completion_signal, unless it is 0, is
 * decremented or set to -1, as by hsa_amd_memory_async_copy().
 *     INVALID_ARGUMENT   ptr is NULL, size is 0, the range is beyond all memory, or dep_signals does not go with
 *                        num_dep_signals
 *     INVALID_AGENT
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_svm_prefetch_async(void *ptr, size_t size, hsa_agent_t agent, uint32_t num_dep_signals,
                                                const hsa_signal_t *dep_signals, hsa_signal_t completion_signal);

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* Properties of a signal; a mask. */
typedef enum {
    HSA_AMD_SIGNAL_AMD_GPU_ONLY = 1, /* makes no difference here */
    HSA_AMD_SIGNAL_IPC = 2           /* for hsa_amd_ipc_signal_create() */
} hsa_amd_signal_attribute_t;

/*
 * Creates a signal like hsa_signal_create(), with properties.
 *     INVALID_ARGUMENT   likewise, or attributes has an unknown bit
 *     INVALID_AGENT      likewise
 */
HSA_API hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                                           const hsa_agent_t *consumers, uint64_t attributes, hsa_signal_t *signal);

/* A handle with which a process attaches a signal: 32 opaque bytes. */
typedef hsa_amd_ipc_memory_t hsa_amd_ipc_signal_t;

/*
 * Returns the handle of a signal that was created with HSA_AMD_SIGNAL_IPC. Other processes may attach it as long as it
 * exists: until it is destroyed everywhere.
 *     INVALID_ARGUMENT   handle is NULL, or the signal was made without HSA_AMD_SIGNAL_IPC
 *     INVALID_SIGNAL
 */
HSA_API hsa_status_t hsa_amd_ipc_signal_create(hsa_signal_t signal, hsa_amd_ipc_signal_t *handle);

/*
 * Returns a signal of this process for the same value. Each process ends its own by hsa_signal_destroy().
 *     INVALID_ARGUMENT   handle or signal is NULL, or the handle is not valid or no longer so
 */
HSA_API hsa_status_t hsa_amd_ipc_signal_attach(const hsa_amd_ipc_signal_t *handle, hsa_signal_t *signal);

/*
 * Returns the address of a signal's value, for programs that read and change it by atomic instructions. It is valid as
 * long as the signal. Such changes wake nobody: in every process, waits for this signal now check it every half
 * millisecond.
 *     INVALID_ARGUMENT   value_ptr is NULL, or the signal was made without HSA_AMD_SIGNAL_AMD_GPU_ONLY and
 *                        HSA_AMD_SIGNAL_IPC
 *     INVALID_SIGNAL
 */
HSA_API hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t signal, volatile hsa_signal_value_t **value_ptr);

/*
 * Waits until any of several signals meets its condition, or about timeout_hint ticks have passed; conds and values
 * have an element for each signal. Returns the index of the signal, and the value that met the condition in
 * *satisfying_value, unless that is NULL. Handles that are no signals are ignored. UINT32_MAX: the time has passed,
 * there is no signal in the list, one was destroyed, a condition is invalid, or memory is short.
 */
HSA_API uint32_t hsa_amd_signal_wait_any(uint32_t signal_count, hsa_signal_t *signals, hsa_signal_condition_t *conds,
                                         hsa_signal_value_t *values, uint64_t timeout_hint, hsa_wait_state_t wait_hint,
                                         hsa_signal_value_t *satisfying_value);

/*
 * Waits until all of them have met their conditions, not necessarily at the same time. Returns 0 and, unless
 * satisfying_values is NULL, an element for each signal in it: the value that met the condition. Handles that are no
 * signals count as met, with the value 0. UINT32_MAX: as above, except if there is no signal in the list; nothing is
 * written.
 */
HSA_API uint32_t hsa_amd_signal_wait_all(uint32_t signal_count, hsa_signal_t *signals, hsa_signal_condition_t *conds,
                                         hsa_signal_value_t *values, uint64_t timeout_hint, hsa_wait_state_t wait_hint,
                                         hsa_signal_value_t *satisfying_values);

/* Called with the value that met the condition. True: call it again, when the condition is met again or still is. */
typedef bool (*hsa_amd_signal_handler)(hsa_signal_value_t value, void *arg);

/*
 * Registers a function that is called when a signal meets a condition. Any number of them are independent. One thread
 * of the process calls all of them, one after the other, without holding a lock. It starts with the first such call and
 * ends with the last hsa_shut_down(), which waits for the function that is being called, unless that function called
 * it; so a function must not call hsa_init() while another thread shuts down. If a signal is destroyed, its function is
 * not called any more, but may still be running. The child of a fork() has no such functions.
 *     INVALID_ARGUMENT   handler is NULL, or cond is no condition
 *     INVALID_SIGNAL
 */
HSA_API hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t cond,
                                                  hsa_signal_value_t value, hsa_amd_signal_handler handler, void *arg);

/*
 * Makes the same thread call a function once, soon.
 *     INVALID_ARGUMENT   callback is NULL
 */
HSA_API hsa_status_t hsa_amd_async_function(void (*callback)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#include "hsa_ext_amd_gpu.h"

#endif
