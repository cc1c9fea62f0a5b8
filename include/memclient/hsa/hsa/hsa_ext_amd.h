/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD's extensions of HSA, as far as they are about memory: pools, access, what is known of a pointer, memory shared
 * with other processes, virtual memory, and signals for copies. What hsa.h says of statuses, threads, fork() and units
 * holds here too.
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
 * Where releases of AMD's runtime (ROCr) differ from their own documents, this one follows the documents, and what
 * programs rely on beyond them. Two answers cannot be both, and depend on the profile, document or rocr: see
 * hsa_amd_vmem_set_access(), hsa_amd_vmem_get_access() and hsa_ext_memoryd.h.
 */
#ifndef HSA_RUNTIME_EXT_AMD_H_
#define HSA_RUNTIME_EXT_AMD_H_

#include "hsa.h"
#include "hsa_ext_image.h"

/* The version of the extensions' interface that this is up to; HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR and _MINOR. */
#define HSA_AMD_INTERFACE_VERSION_MAJOR 1
#define HSA_AMD_INTERFACE_VERSION_MINOR 16

#ifdef __cplusplus
extern "C" {
#endif

/* More statuses. Their type is not hsa_status_t: compare after a cast. */
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

/* --------------------------------------------------------------------------------------------------------- agents */

typedef enum { HSA_IOMMU_SUPPORT_NONE = 0, HSA_IOMMU_SUPPORT_V2 = 1 } hsa_amd_iommu_version_t;

/* Registers of a GPU. NULL, NULL for a CPU. */
typedef struct hsa_amd_hdp_flush_s {
    uint32_t *HDP_MEM_FLUSH_CNTL;
    uint32_t *HDP_REG_FLUSH_CNTL;
} hsa_amd_hdp_flush_t;

/* Bit numbers are those of this mask's bits, in HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES. */
typedef enum hsa_amd_agent_memory_properties_s {
    HSA_AMD_MEMORY_PROPERTY_AGENT_IS_APU = 1
} hsa_amd_agent_memory_properties_t;

/* The clocks of an agent, read at one moment. */
typedef struct hsa_amd_clock_counters_s {
    uint64_t gpu_clock_counter;      /* 0 */
    uint64_t cpu_clock_counter;      /* as HSA_SYSTEM_INFO_TIMESTAMP */
    uint64_t system_clock_counter;   /* the same */
    uint64_t system_clock_frequency; /* as HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY */
} hsa_amd_clock_counters_t;

/*
 * More that hsa_agent_get_info() can tell. In brackets: the type of the value, and what a CPU agent says if that is
 * always the same. [-]: a CPU agent has none, INVALID_ARGUMENT.
 */
typedef enum hsa_amd_agent_info_s {
    HSA_AMD_AGENT_INFO_CHIP_ID = 0xA000,                /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xA001,         /* [uint32_t] bytes */
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xA002,     /* [uint32_t] processors of the node */
    HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xA003,    /* [uint32_t] MHz; 0 = not known */
    HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xA004,         /* [uint32_t] number of the NUMA node */
    HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS = 0xA005, /* [uint32_t] 1 */
    HSA_AMD_AGENT_INFO_BDFID = 0xA006,                  /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_MEMORY_WIDTH = 0xA007,           /* [-] */
    HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY = 0xA008,   /* [-] */
    HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xA009,           /* [char[64]] the processor's model */
    HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xA00A,       /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xA00B,       /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES = 0xA00C,     /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE = 0xA00D, /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_HDP_FLUSH = 0xA00E,              /* [hsa_amd_hdp_flush_t] NULL, NULL */
    HSA_AMD_AGENT_INFO_DOMAIN = 0xA00F,                 /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xA010,     /* [bool] false */
    HSA_AMD_AGENT_INFO_UUID = 0xA011,                   /* [char[21]] "CPU-" and 16 hexadecimal digits */
    HSA_AMD_AGENT_INFO_ASIC_REVISION = 0xA012,          /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS = 0xA013, /* [bool] true */
    HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT = 0xA014, /* [uint32_t] as COMPUTE_UNIT_COUNT */
    /* [uint64_t] bytes of ordinary pages that the agent's pools together could still give this process, now */
    HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xA015,
    HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xA016,    /* [uint64_t] as HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY */
    HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID = 0xA107,         /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_UCODE_VERSION = 0xA108,          /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION = 0xA109,     /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SDMA_ENG = 0xA10A,           /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG = 0xA10B,      /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_IOMMU_SUPPORT = 0xA110,          /* [hsa_amd_iommu_version_t] NONE */
    HSA_AMD_AGENT_INFO_NUM_XCC = 0xA111,                /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_DRIVER_UID = 0xA112,             /* [uint32_t] 0 */
    HSA_AMD_AGENT_INFO_NEAREST_CPU = 0xA113,            /* [hsa_agent_t] itself, or if it has no processors, another */
    HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES = 0xA114,      /* [uint8_t[8]] for hsa_flag_isset64(): none is set */
    HSA_AMD_AGENT_INFO_AQL_EXTENSIONS = 0xA115,         /* [uint8_t[8]] none is set */
    HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX = 0xA116,      /* [uint64_t] 0 */
    HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT = 0xA117,  /* [uint64_t] 0 */
    HSA_AMD_AGENT_INFO_CLOCK_COUNTERS = 0xA118,         /* [hsa_amd_clock_counters_t] */
    HSA_AMD_AGENT_INFO_PM4_EMULATION = 0xA119,          /* [-] */
    HSA_AMD_AGENT_INFO_LUID = 0xA11A                    /* [-] */
} hsa_amd_agent_info_t;

/* More that hsa_region_get_info() can tell. */
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

/* ---------------------------------------------------------------------------------------------------------- pools */

/* A memory pool: a kind of memory of one agent. 0 is none. A pool is a global region too, with the same handle. */
typedef struct hsa_amd_memory_pool_s {
    uint64_t handle;
} hsa_amd_memory_pool_t;

typedef enum {
    HSA_AMD_SEGMENT_GLOBAL = 0,
    HSA_AMD_SEGMENT_READONLY = 1,
    HSA_AMD_SEGMENT_PRIVATE = 2,
    HSA_AMD_SEGMENT_GROUP = 3
} hsa_amd_segment_t;

/* As hsa_region_global_flag_t. */
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

/* What hsa_amd_memory_pool_get_info() can tell. In brackets: the type of the value. */
typedef enum {
    HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,      /* [hsa_amd_segment_t] GLOBAL */
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1, /* [uint32_t] mask of hsa_amd_memory_pool_global_flag_t */
    HSA_AMD_MEMORY_POOL_INFO_SIZE = 2,         /* [size_t] the broker's capacity for the node; its pools share it */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,   /* [bool] true */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6,   /* [size_t] the size of its pages */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7, /* [size_t] the size of its pages */
    HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15,      /* [bool] every agent can use it: true */
    HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16,         /* [size_t] the most it could give this process now */
    HSA_AMD_MEMORY_POOL_INFO_LOCATION = 17,               /* [hsa_amd_memory_pool_location_t] CPU */
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE = 18 /* [size_t] sizes that make best use of memory: 2 MiB */
} hsa_amd_memory_pool_info_t;

/* Wishes for an allocation; a bit mask. They are for GPUs: no bit has an effect here, unknown ones neither. */
typedef enum hsa_amd_memory_pool_flag_s {
    HSA_AMD_MEMORY_POOL_STANDARD_FLAG = 0,
    HSA_AMD_MEMORY_POOL_PCIE_FLAG = 1,
    HSA_AMD_MEMORY_POOL_CONTIGUOUS_FLAG = 2,
    HSA_AMD_MEMORY_POOL_EXECUTABLE_FLAG = 4,
    HSA_AMD_MEMORY_POOL_UNCACHED_FLAG = 8
} hsa_amd_memory_pool_flag_t;

/*
 * Tells a property of a pool; value has room for its type. Only ALLOC_MAX_SIZE may call the broker.
 *     INVALID_ARGUMENT      value is NULL, or attribute is none of a pool
 *     INVALID_MEMORY_POOL
 */
HSA_API hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t memory_pool,
                                                  hsa_amd_memory_pool_info_t attribute, void *value);

/*
 * Calls callback for each of the agent's own pools, until it returns something else than SUCCESS; that is returned
 * then. There are three, or none on a node without memory: fine-grained, fine-grained for kernels' arguments,
 * coarse-grained. Behind them, coarse-grained too, come pools of huge pages on this node alone that the broker's
 * configuration declares; their granule is the huge page.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_amd_agent_iterate_memory_pools(
    hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t memory_pool, void *data), void *data);

/*
 * Allocates memory of a pool, as hsa_memory_allocate() does of a region.
 *     INVALID_ARGUMENT      size is 0, or ptr is NULL
 *     INVALID_MEMORY_POOL
 *     INVALID_ALLOCATION    size is above ALLOC_MAX_SIZE as the pool last told
 *     OUT_OF_RESOURCES      the pool has no room for it now
 */
HSA_API hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t memory_pool, size_t size, uint32_t flags,
                                                  void **ptr);

/* The same as hsa_memory_free(). */
HSA_API hsa_status_t hsa_amd_memory_pool_free(void *ptr);

/* Whether an agent can use memory of a pool. */
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

/* A link between two nodes. 0 where it is not known. */
typedef struct hsa_amd_memory_pool_link_info_s {
    uint32_t min_latency;   /* ns */
    uint32_t max_latency;   /* ns */
    uint32_t min_bandwidth; /* MB/s */
    uint32_t max_bandwidth; /* MB/s */
    bool atomic_support_32bit;
    bool atomic_support_64bit;
    bool coherent_support;
    hsa_amd_link_info_type_t link_type;
    uint32_t numa_distance; /* as the system's distance table has it: 10 is local */
} hsa_amd_memory_pool_link_info_t;

/* What hsa_amd_agent_memory_pool_get_info() can tell. In brackets: the type of the value. */
typedef enum {
    HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0,        /* [hsa_amd_memory_pool_access_t] ALLOWED_BY_DEFAULT */
    HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS = 1, /* [uint32_t] 0 for the agent's own pools, else 1 */
    /* [hsa_amd_memory_pool_link_info_t[NUM_LINK_HOPS]], but one, of zeros, for the agent's own pools */
    HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO = 2
} hsa_amd_agent_memory_pool_info_t;

/*
 * Tells a property of an agent and a pool together; value has room for its type. Makes no call.
 *     INVALID_ARGUMENT      value is NULL, or attribute is none of the above
 *     INVALID_AGENT
 *     INVALID_MEMORY_POOL
 */
HSA_API hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t memory_pool,
                                                        hsa_amd_agent_memory_pool_info_t attribute, void *value);

/*
 * Lets agents use an allocation. CPU agents always can, so this only checks. Of virtual memory it gives the agents, in
 * addition to those that have access, reading and writing of the mapping at ptr and of all that follow without a gap.
 *     INVALID_ARGUMENT     num_agents is 0, agents or ptr is NULL, or flags is not NULL
 *     INVALID_AGENT        one of agents
 *     INVALID_ALLOCATION   ptr is not the address of an allocation or attached memory, nor in a mapping
 */
HSA_API hsa_status_t hsa_amd_agents_allow_access(uint32_t num_agents, const hsa_agent_t *agents,
                                                 const uint32_t *flags, const void *ptr);

/*
 * Whether an allocation could be moved to another pool. None can; see hsa_memory_assign_agent(). *result is false.
 *     INVALID_ARGUMENT      result is NULL
 *     INVALID_MEMORY_POOL
 *     OUT_OF_RESOURCES      both pools are valid
 */
HSA_API hsa_status_t hsa_amd_memory_pool_can_migrate(hsa_amd_memory_pool_t src_memory_pool,
                                                     hsa_amd_memory_pool_t dst_memory_pool, bool *result);

/*
 * Would move an allocation to another pool. It never does.
 *     INVALID_ARGUMENT      ptr is NULL, or flags is not 0
 *     INVALID_MEMORY_POOL
 *     OUT_OF_RESOURCES      the arguments are valid
 */
HSA_API hsa_status_t hsa_amd_memory_migrate(const void *ptr, hsa_amd_memory_pool_t memory_pool, uint32_t flags);

/* ------------------------------------------------------------------------------------- what is known of a pointer */

typedef enum {
    HSA_EXT_POINTER_TYPE_UNKNOWN = 0,       /* not of this runtime */
    HSA_EXT_POINTER_TYPE_HSA = 1,           /* allocated by region or pool */
    HSA_EXT_POINTER_TYPE_LOCKED = 2,        /* the application's, registered or locked */
    HSA_EXT_POINTER_TYPE_GRAPHICS = 3,      /* of hsa_amd_interop_map_buffer() */
    HSA_EXT_POINTER_TYPE_IPC = 4,           /* attached */
    HSA_EXT_POINTER_TYPE_RESERVED_ADDR = 5, /* reserved addresses, nothing mapped */
    HSA_EXT_POINTER_TYPE_HSA_VMEM = 6       /* a mapping in reserved addresses */
} hsa_amd_pointer_type_t;

typedef struct hsa_amd_pointer_info_s {
    uint32_t size;               /* set by the caller, to sizeof; then to how many bytes of the struct were written */
    hsa_amd_pointer_type_t type; /* UNKNOWN: all below is 0 */
    void *agentBaseAddress;      /* where it begins, for agents: NULL for reserved addresses; of a mapping, ptr */
    void *hostBaseAddress;       /* where it begins, for the process; of a mapping, ptr */
    size_t sizeInBytes;          /* as asked for when it was allocated, attached, registered, mapped or reserved */
    void *userData;              /* of hsa_amd_pointer_info_set_userdata(), or NULL */
    hsa_agent_t agentOwner;      /* whose memory it is */
    uint32_t global_flags;       /* hsa_amd_memory_pool_global_flag_t of its pool; see also hsa_ext_memoryd.h */
    bool registered;             /* agents can use it: false for addresses reserved with ..._NO_REGISTER */
    uint32_t alloc_flags;        /* hsa_amd_memory_pool_flag_t as given when it was allocated from a pool */
} hsa_amd_pointer_info_t;

/*
 * What is at an address, any within it. The struct may grow at its end: of one that is smaller, as older headers have
 * it, the part that is there is written; of one that is larger, what is known here. If alloc, num_agents_accessible and
 * accessible are not NULL, *accessible gets an array, made by alloc (which the caller frees its way), of the agents
 * that may use it; it is NULL when there are none. Calls the broker for memory that another process has made, the first
 * time.
 *     INVALID_ARGUMENT   ptr or info is NULL, or info->size is 0
 *     OUT_OF_RESOURCES   alloc returned NULL
 */
HSA_API hsa_status_t hsa_amd_pointer_info(const void *ptr, hsa_amd_pointer_info_t *info, void *(*alloc)(size_t),
                                          uint32_t *num_agents_accessible, hsa_agent_t **accessible);

/*
 * Sets what hsa_amd_pointer_info() tells as userData of what is around ptr.
 *     INVALID_ARGUMENT   ptr is NULL, or nothing of this runtime is there
 */
HSA_API hsa_status_t hsa_amd_pointer_info_set_userdata(const void *ptr, void *userdata);

/*
 * Called with the pointer that was registered, in the thread that frees, before its call returns, when what was there
 * is unknown to the runtime already; an allocation's memory can still be used then. It may call everything here.
 */
typedef void (*hsa_amd_deallocation_callback_t)(void *ptr, void *user_data);

/*
 * Has a callback called when the allocation around ptr is freed, attached memory detached for the last time, or a
 * mapping unmapped; any number of them, in the order of registration.
 *     INVALID_ARGUMENT     ptr or callback is NULL
 *     INVALID_ALLOCATION   ptr is in nothing of the kind
 */
HSA_API hsa_status_t hsa_amd_register_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback,
                                                            void *user_data);

/*
 * Undoes that, once.
 *     INVALID_ARGUMENT   ptr or callback is NULL, or they were not registered together
 */
HSA_API hsa_status_t hsa_amd_deregister_deallocation_callback(void *ptr, hsa_amd_deallocation_callback_t callback);

/* ------------------------------------------------------------------------------------------- filling and copying */

/*
 * Writes `value` count times, into memory of this runtime that holds so much from ptr on.
 *     INVALID_ARGUMENT     ptr is NULL or no multiple of 4, or the memory may not be written, as for hsa_memory_copy()
 *     INVALID_ALLOCATION   a part of the range is in no allocation, attached memory, mapping or registered range
 */
HSA_API hsa_status_t hsa_amd_memory_fill(void *ptr, uint32_t value, size_t count);

/*
 * Copies as hsa_memory_copy() does, in a thread that ends with it, after all dep_signals are 0, and then counts
 * completion_signal down by 1. It is set to -1 instead if the copy failed: what hsa_memory_copy() refuses, or a signal
 * to wait for became negative or was destroyed. Returns before it is done. The agents say whose memory it is. The last
 * hsa_shut_down() waits for copies that have begun.
 *     INVALID_ARGUMENT   dst or src is NULL, or dep_signals does not go with num_dep_signals
 *     INVALID_AGENT
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src,
                                               hsa_agent_t src_agent, size_t size, uint32_t num_dep_signals,
                                               const hsa_signal_t *dep_signals, hsa_signal_t completion_signal);

/* Engines that copy, of GPUs; a bit each. */
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
 * Copies as hsa_amd_memory_async_copy() does. There are no engines here, so it makes no difference which one is asked
 * for, nor force_copy_on_sdma.
 *     INVALID_ARGUMENT   likewise, or engine_id has not just one bit
 *     INVALID_AGENT
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_memory_async_copy_on_engine(
    void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent, size_t size, uint32_t num_dep_signals,
    const hsa_signal_t *dep_signals, hsa_signal_t completion_signal, hsa_amd_sdma_engine_id_t engine_id,
    bool force_copy_on_sdma);

/*
 * Which engines are free for copies from one agent to another: none, *engine_ids_mask is 0.
 *     INVALID_ARGUMENT    engine_ids_mask is NULL
 *     INVALID_AGENT
 *     OUT_OF_RESOURCES    the arguments are valid
 */
HSA_API hsa_status_t hsa_amd_memory_copy_engine_status(hsa_agent_t dst_agent, hsa_agent_t src_agent,
                                                       uint32_t *engine_ids_mask);

/*
 * Which engines would be best for that: no preference, *recommended_ids_mask is 0.
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

/* From where to where; makes no difference here. */
typedef enum {
    hsaHostToHost = 0,
    hsaHostToDevice = 1,
    hsaDeviceToHost = 2,
    hsaDeviceToDevice = 3
} hsa_amd_copy_direction_t;

/*
 * Copies a box of bytes, as hsa_amd_memory_async_copy() copies a range: range->x bytes of each of range->y rows of
 * range->z slices, from src at src_offset to dst at dst_offset, which count in bytes, rows and slices as well. The two
 * do not overlap. Bytes between the rows are left alone, and asked of nobody's permission. If a part of the range is 0,
 * nothing is copied, and completion_signal is counted down. All memory here is the host's, so every dir is welcome.
 *     INVALID_ARGUMENT   dst, dst_offset, src, src_offset or range is NULL; dep_signals does not go with
 *                        num_dep_signals; dir is none; base, pitch or slice of dst or src is no multiple of 4; the
 *                        range is wider than a pitch, or a slice that is not 0 has fewer rows; range->z is above 1
 *                        and a slice is 0; or an address is beyond all memory
 *     INVALID_AGENT      copy_agent
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_memory_async_copy_rect(
    const hsa_pitched_ptr_t *dst, const hsa_dim3_t *dst_offset, const hsa_pitched_ptr_t *src,
    const hsa_dim3_t *src_offset, const hsa_dim3_t *range, hsa_agent_t copy_agent, hsa_amd_copy_direction_t dir,
    uint32_t num_dep_signals, const hsa_signal_t *dep_signals, hsa_signal_t completion_signal);

/* When a copy began and ended, in ticks of HSA_SYSTEM_INFO_TIMESTAMP. */
typedef struct hsa_amd_profiling_async_copy_time_s {
    uint64_t start;
    uint64_t end;
} hsa_amd_profiling_async_copy_time_t;

/* Whether copies of the process that are asked for from now on are timed. */
HSA_API hsa_status_t hsa_amd_profiling_async_copy_enable(bool enable);

/*
 * When the last copy was made that was timed and has counted the signal down.
 *     INVALID_ARGUMENT   time is NULL
 *     INVALID_SIGNAL
 *     ERROR              there was none
 */
HSA_API hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                           hsa_amd_profiling_async_copy_time_t *time);

/*
 * Lets agents use memory that the application allocated. CPU agents always can: it becomes known as by
 * hsa_memory_register(), and *agent_ptr is host_ptr. num_agent 0 = all. Locked again, the very same range is unlocked
 * as often. A range that overlaps others which are locked or registered can be locked too: hsa_amd_pointer_info() goes
 * on telling of those.
 *     INVALID_ARGUMENT   host_ptr or agent_ptr is NULL, size is 0, agents does not go with num_agent, or a part of the
 *                        range is memory of this runtime, or reserved by it, and a part is not
 *     INVALID_AGENT      one of agents
 */
HSA_API hsa_status_t hsa_amd_memory_lock(void *host_ptr, size_t size, hsa_agent_t *agents, int num_agent,
                                         void **agent_ptr);

/*
 * Likewise, with the properties of a pool.
 *     INVALID_ARGUMENT      likewise, or flags is not 0
 *     INVALID_AGENT
 *     INVALID_MEMORY_POOL
 */
HSA_API hsa_status_t hsa_amd_memory_lock_to_pool(void *host_ptr, size_t size, hsa_agent_t *agents, int num_agent,
                                                 hsa_amd_memory_pool_t pool, uint32_t flags, void **agent_ptr);

/* Undoes that, for the address that was locked. Of any other, and of NULL, there is nothing to undo: SUCCESS. */
HSA_API hsa_status_t hsa_amd_memory_unlock(void *host_ptr);

/* ------------------------------------------------------------------------------ sharing allocations with processes */

/* What lets a process attach an allocation: 32 opaque bytes, memoryd's token of it. Compare, copy and send them. */
typedef struct hsa_amd_ipc_memory_s {
    uint32_t handle[8];
} hsa_amd_ipc_memory_t;

/*
 * Gives the handle of an allocation: the same bytes each time, and of no other allocation ever. Every process of the
 * machine that has them may attach it, as long as it exists: until it is freed and detached everywhere.
 * memclient_open_token() takes the bytes too.
 *     INVALID_ARGUMENT   ptr or handle is NULL, ptr is not the address of an allocation, or len neither its size as
 *                        asked for nor that rounded up to pages
 */
HSA_API hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t len, hsa_amd_ipc_memory_t *handle);

/*
 * Maps the allocation, at the address that it has in the other process if nothing else is there here, and reading and
 * writing as the token grants. Attached again, also by another handle of it, it is the same address, and is detached as
 * often. What this process made by HSA itself is attached elsewhere. A handle made by memclient_share() works too.
 * num_agents 0 = all.
 *     INVALID_ARGUMENT   handle or mapped_ptr is NULL, mapping_agents is NULL and num_agents is not 0, the handle is
 *                        not valid or no longer so, or len is not the allocation's
 *     INVALID_AGENT      one of mapping_agents
 */
HSA_API hsa_status_t hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t *handle, size_t len, uint32_t num_agents,
                                               const hsa_agent_t *mapping_agents, void **mapped_ptr);

/*
 * Undoes that.
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
 * A descriptor of the memory in which [ptr, ptr + size) lies, and where in it ptr is. It is memoryd's shareable handle
 * of the memory (a memfd, which can be mapped and imported, not a dma-buf of the kernel), keeps the contents alive, and
 * is the caller's to close.
 *     INVALID_ARGUMENT     ptr, dmabuf or offset is NULL, or size is 0
 *     INVALID_ALLOCATION   the range is not in one allocation or mapping
 */
HSA_API hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *dmabuf, uint64_t *offset);

/* Likewise. flags is a hsa_amd_dma_buf_mapping_type_t, which makes no difference here. */
HSA_API hsa_status_t hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *dmabuf, uint64_t *offset,
                                                       uint64_t flags);

/*
 * Closes such a descriptor; close() does it too.
 *     RESOURCE_FREE   it is no open descriptor
 */
HSA_API hsa_status_t hsa_amd_portable_close_dmabuf(int dmabuf);

/*
 * Maps the memory of a descriptor: of hsa_amd_portable_export_dmabuf() or another shareable handle of memoryd. *size is
 * all of it, *ptr where. There is no metadata: *metadata_size is 0 and *metadata NULL, if they are asked for.
 *     INVALID_ARGUMENT     num_agents is 0, agents, size or ptr is NULL, flags is not 0, or it is no open descriptor
 *     INVALID_AGENT        one of agents
 *     INVALID_ALLOCATION   it is no descriptor of memoryd's memory
 */
HSA_API hsa_status_t hsa_amd_interop_map_buffer(uint32_t num_agents, hsa_agent_t *agents, int interop_handle,
                                                uint32_t flags, size_t *size, void **ptr, size_t *metadata_size,
                                                const void **metadata);

/* Undoes that. NULL and other addresses are ignored: SUCCESS. */
HSA_API hsa_status_t hsa_amd_interop_unmap_buffer(void *ptr);

/* ------------------------------------------------------------------------------------------------- virtual memory */

/*
 * Addresses, memory and permissions on their own: a range of addresses is reserved, memory is created as a *handle*,
 * handles are mapped into the range, and agents are given access to mappings. All sizes, offsets and addresses are
 * multiples of the page size.
 *
 * A handle counts its references (create, import and retain: 1 each; release takes 1) and its mappings. Its memory is
 * freed when both are 0, in this process; other processes that imported it and descriptors of it keep it on their own.
 */
typedef struct hsa_amd_vmem_alloc_handle_s {
    uint64_t handle;
} hsa_amd_vmem_alloc_handle_t;

typedef enum {
    MEMORY_TYPE_NONE = 0,  /* on the pool's node if it has room, else on another one */
    MEMORY_TYPE_PINNED = 1 /* on the pool's node or not at all */
} hsa_amd_memory_type_t;

/* What an agent may do with a mapping. */
typedef struct hsa_amd_memory_access_desc_s {
    hsa_access_permission_t permissions;
    hsa_agent_t agent_handle;
} hsa_amd_memory_access_desc_t;

typedef enum hsa_amd_vmem_address_reserve_flag_s {
    HSA_AMD_VMEM_ADDRESS_NO_REGISTER = 1 /* hsa_amd_pointer_info() tells it; no other difference here */
} hsa_amd_vmem_address_reserve_flag_t;

/*
 * Reserves addresses; they take no memory, whatever their size, and are inaccessible. `address` is a wish, 0 = none; if
 * it cannot be had, the range is elsewhere, aligned to 2 MiB if it is as large as that. Ranges are kept free in all
 * processes of the machine, except that one outside of memoryd's arena, or made when the arena is full, is this
 * process's alone. flags: unknown ones are ignored. The range is given back with hsa_amd_vmem_address_free().
 *     INVALID_ARGUMENT   va is NULL, or size is 0 or no multiple of the page size
 *     OUT_OF_RESOURCES   the kernel has no such range of addresses left
 */
HSA_API hsa_status_t hsa_amd_vmem_address_reserve(void **va, size_t size, uint64_t address, uint64_t flags);

/*
 * Likewise, aligned: a power of two, not less than the page size; 0 = as above.
 *     INVALID_ARGUMENT   likewise, or the alignment is none
 */
HSA_API hsa_status_t hsa_amd_vmem_address_reserve_align(void **va, size_t size, uint64_t address,
                                                        uint64_t alignment, uint64_t flags);

/*
 * Gives a reserved range back, the whole of it.
 *     INVALID_ARGUMENT     va is NULL, or size is not what was reserved
 *     INVALID_ALLOCATION   va is not the start of a reserved range
 *     RESOURCE_FREE        something is mapped in it; also if its handle was released
 */
HSA_API hsa_status_t hsa_amd_vmem_address_free(void *va, size_t size);

/*
 * Creates memory of a pool, zeroed and committed, with one reference. flags are ignored.
 *     INVALID_ARGUMENT     memory_handle is NULL, size is 0 or no multiple of the pool's granule, type is none, or
 *                          the pool is not valid
 *     INVALID_ALLOCATION   size is above ALLOC_MAX_SIZE as the pool last told, or the pool (a region's handle) is none
 *                          that can be allocated from
 *     OUT_OF_RESOURCES     there is no room for it now
 */
HSA_API hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool, size_t size, hsa_amd_memory_type_t type,
                                                uint64_t flags, hsa_amd_vmem_alloc_handle_t *memory_handle);

/*
 * Takes a reference away. Mappings stay; without references the handle is not valid any more, until
 * hsa_amd_vmem_retain_alloc_handle() gives it one again.
 *     INVALID_ALLOCATION   the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_handle_release(hsa_amd_vmem_alloc_handle_t memory_handle);

/*
 * Maps [in_offset, in_offset + size) of a handle at va, inside of one reserved range. No agent has access until
 * hsa_amd_vmem_set_access(). A handle may be mapped any number of times, in parts, each with permissions of its own.
 * flags are ignored. Makes no call to the broker if the handle is mapped in this process or was used lately.
 *     INVALID_ARGUMENT   va is NULL; size is 0 or reaches beyond the handle's end; va, size or in_offset is no multiple
 *                        of the page size; the range is not inside of one reserved range, or something is mapped in
 *                        it; or the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_map(void *va, size_t size, size_t in_offset,
                                      hsa_amd_vmem_alloc_handle_t memory_handle, uint64_t flags);

/*
 * Unmaps one mapping, or several whole ones that follow each other without a gap. The addresses stay reserved. Memory
 * that no reference is left of is freed.
 *     INVALID_ARGUMENT     va is NULL, or size is 0 or no multiple of the page size
 *     INVALID_ALLOCATION   no mapping begins at va, or the range has a gap or ends inside of a mapping
 */
HSA_API hsa_status_t hsa_amd_vmem_unmap(void *va, size_t size);

/*
 * Gives agents access to one mapping, or to several whole ones that follow each other without a gap. What the process
 * may do with them is what any agent may; the last entry counts where an agent is there twice. Makes no call.
 *
 * In the document profile, the list replaces the former one of each mapping: agents that are not in it have no access
 * any more. In the rocr profile, agents that are not in it keep what they have.
 *     INVALID_ARGUMENT     va or desc is NULL, size is 0 or no multiple of the page size, desc_cnt is 0, a permission
 *                          is none, the range is not inside of one reserved range, or an agent is to write to memory
 *                          that was imported by a descriptor for reading only, or is published
 *     INVALID_AGENT        one in desc; nothing is changed
 *     INVALID_ALLOCATION   no mapping begins at va, or the range has a gap or ends inside of a mapping
 */
HSA_API hsa_status_t hsa_amd_vmem_set_access(void *va, size_t size, const hsa_amd_memory_access_desc_t *desc,
                                             size_t desc_cnt);

/*
 * What an agent may do with the mapping around va. Makes no call. *perms is NONE if the call fails.
 *
 * In the document profile, it is an error to ask for an agent that was not in the list of the mapping's last
 * hsa_amd_vmem_set_access(). In the rocr profile the answer is NONE.
 *     INVALID_ARGUMENT     va or perms is NULL
 *     INVALID_AGENT
 *     INVALID_ALLOCATION   nothing is mapped there, or as above
 */
HSA_API hsa_status_t hsa_amd_vmem_get_access(void *va, hsa_access_permission_t *perms, hsa_agent_t agent_handle);

/*
 * A descriptor of a handle's memory, a new one each time, which is the caller's to close and close-on-exec. It can be
 * sent to other processes, and keeps the memory alive, as handles do. memclient_import_fd() takes it too. Handles that
 * were imported can be exported. flags are ignored. *dmabuf_fd is -1 if the call fails.
 *     INVALID_ARGUMENT     dmabuf_fd is NULL
 *     INVALID_ALLOCATION   the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_export_shareable_handle(int *dmabuf_fd, hsa_amd_vmem_alloc_handle_t handle,
                                                          uint64_t flags);

/*
 * A handle of the memory of such a descriptor, or of one that memclient_export_fd() made, with one reference. The
 * descriptor stays the caller's. Memory that this process has a handle of gets the same handle, one reference more.
 *     INVALID_ARGUMENT     handle is NULL, or dmabuf_fd is negative
 *     INVALID_ALLOCATION   it is no descriptor of memoryd's memory
 */
HSA_API hsa_status_t hsa_amd_vmem_import_shareable_handle(int dmabuf_fd, hsa_amd_vmem_alloc_handle_t *handle);

/*
 * The handle of what is mapped at an address, any within a mapping, with one reference more.
 *     INVALID_ARGUMENT     memory_handle or addr is NULL
 *     INVALID_ALLOCATION   nothing is mapped there
 */
HSA_API hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_amd_vmem_alloc_handle_t *memory_handle, void *addr);

/*
 * How a handle was created; also in a process that imported it, where the pool is the standard one of its node.
 *     INVALID_ARGUMENT     pool or type is NULL
 *     INVALID_ALLOCATION   the handle is not valid
 */
HSA_API hsa_status_t hsa_amd_vmem_get_alloc_properties_from_handle(hsa_amd_vmem_alloc_handle_t memory_handle,
                                                                   hsa_amd_memory_pool_t *pool,
                                                                   hsa_amd_memory_type_t *type);

/* --------------------------------------------------------------------------------- attributes of ordinary memory */

/* How memory is kept coherent. */
typedef enum hsa_amd_svm_model_s {
    HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED = 0,
    HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED = 1,
    HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE = 2 /* an answer only: some of it so, some so */
} hsa_amd_svm_model_t;

/*
 * What can be said of ranges of memory. In brackets: the type of the value, and what it is of memory of which nothing
 * was said. set and get: where it may be used.
 */
typedef enum hsa_amd_svm_attribute_s {
    HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG = 0,           /* set, get [hsa_amd_svm_model_t] FINE_GRAINED */
    HSA_AMD_SVM_ATTRIB_READ_ONLY = 1,             /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_HIVE_LOCAL = 2,            /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY = 3, /* set, get [uint64_t] log2 of pages, at most 18: 9 */
    HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION = 4,    /* set, get [hsa_agent_t] 0 */
    HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION = 5,     /* get [hsa_agent_t] 0 */
    HSA_AMD_SVM_ATTRIB_READ_MOSTLY = 6,           /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_GPU_EXEC = 7,              /* set, get [bool] false */
    HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE = 0x200,  /* set [hsa_agent_t] */
    HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE = 0x201, /* set [hsa_agent_t] */
    HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS = 0x202,           /* set [hsa_agent_t] */
    HSA_AMD_SVM_ATTRIB_ACCESS_QUERY = 0x203 /* get [hsa_agent_t] the attribute becomes AGENT_ACCESSIBLE */
} hsa_amd_svm_attribute_t;

/* An attribute and its value, of which the bits are those of its type. */
typedef struct hsa_amd_svm_attribute_pair_s {
    uint64_t attribute;
    uint64_t value;
} hsa_amd_svm_attribute_pair_t;

/*
 * Says something of all pages that a range touches, of whatever memory. It is for agents with memory of their own:
 * CPUs can use all memory as it is, so nothing is done but to tell it again. It is forgotten with the last
 * hsa_shut_down(), not when the memory goes.
 *     INVALID_ARGUMENT         ptr or attribute_list is NULL, size or attribute_count is 0, the range is beyond all
 *                              memory, or an attribute, or its value, is none that can be set
 *     INVALID_AGENT            as a value
 *     INCOMPATIBLE_ARGUMENTS   an attribute is there twice, or two of access for one agent; nothing is set
 */
HSA_API hsa_status_t hsa_amd_svm_attributes_set(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                                size_t attribute_count);

/*
 * What was said of all pages that a range touches: the value of each attribute in the list. Where it is not the same
 * everywhere: INDETERMINATE, 0, false, of granularities the smallest. ACCESS_QUERY has an agent as its value.
 *     INVALID_ARGUMENT   likewise, or an attribute is none that can be asked for
 *     INVALID_AGENT      as a value
 */
HSA_API hsa_status_t hsa_amd_svm_attributes_get(void *ptr, size_t size, hsa_amd_svm_attribute_pair_t *attribute_list,
                                                size_t attribute_count);

/*
 * Would move memory to an agent, after all dep_signals are 0. CPUs use memory where it is, so nothing is moved; that it
 * was asked for, HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION tells at once. Then completion_signal, unless it is 0, is counted
 * down by 1, or set to -1, as by hsa_amd_memory_async_copy().
 *     INVALID_ARGUMENT   ptr is NULL, size is 0, the range is beyond all memory, or dep_signals does not go with
 *                        num_dep_signals
 *     INVALID_AGENT
 *     INVALID_SIGNAL     completion_signal, or one of dep_signals
 */
HSA_API hsa_status_t hsa_amd_svm_prefetch_async(void *ptr, size_t size, hsa_agent_t agent, uint32_t num_dep_signals,
                                                const hsa_signal_t *dep_signals, hsa_signal_t completion_signal);

/* -------------------------------------------------------------------------------------------------------- signals */

/* Properties of a signal; a bit mask. */
typedef enum {
    HSA_AMD_SIGNAL_AMD_GPU_ONLY = 1, /* makes no difference here */
    HSA_AMD_SIGNAL_IPC = 2           /* hsa_amd_ipc_signal_create() takes it */
} hsa_amd_signal_attribute_t;

/*
 * Makes a signal as hsa_signal_create() does, with properties.
 *     INVALID_ARGUMENT   likewise, or attributes has an unknown bit
 *     INVALID_AGENT      likewise
 */
HSA_API hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                                           const hsa_agent_t *consumers, uint64_t attributes, hsa_signal_t *signal);

/* What lets a process attach a signal: 32 opaque bytes. */
typedef hsa_amd_ipc_memory_t hsa_amd_ipc_signal_t;

/*
 * Gives the handle of a signal made with HSA_AMD_SIGNAL_IPC. Other processes may attach it as long as it exists: until
 * it is destroyed everywhere.
 *     INVALID_ARGUMENT   handle is NULL, or the signal was made without HSA_AMD_SIGNAL_IPC
 *     INVALID_SIGNAL
 */
HSA_API hsa_status_t hsa_amd_ipc_signal_create(hsa_signal_t signal, hsa_amd_ipc_signal_t *handle);

/*
 * A signal of this process that is the same one. It ends with hsa_signal_destroy() in each process on its own.
 *     INVALID_ARGUMENT   handle or signal is NULL, or the handle is not valid or no longer so
 */
HSA_API hsa_status_t hsa_amd_ipc_signal_attach(const hsa_amd_ipc_signal_t *handle, hsa_signal_t *signal);

/*
 * Where the value of a signal is, for programs that read and change it with atomic instructions of their own; as long
 * as the signal is there. Such changes wake nobody: those who wait for this signal look every half a millisecond from
 * now on, in every process.
 *     INVALID_ARGUMENT   value_ptr is NULL, or the signal was made without HSA_AMD_SIGNAL_AMD_GPU_ONLY and
 *                        HSA_AMD_SIGNAL_IPC
 *     INVALID_SIGNAL
 */
HSA_API hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t signal, volatile hsa_signal_value_t **value_ptr);

/*
 * Waits until any of several signals meets its condition, or about timeout_hint ticks are over; conds and values have
 * an item for each. Returns its index, and in *satisfying_value, unless that is NULL, the value that met it. Handles
 * that are no signals are left out. UINT32_MAX: the time is over, none of them is a signal, one was destroyed
 * meanwhile, a condition is none, or there is no memory.
 */
HSA_API uint32_t hsa_amd_signal_wait_any(uint32_t signal_count, hsa_signal_t *signals, hsa_signal_condition_t *conds,
                                         hsa_signal_value_t *values, uint64_t timeout_hint,
                                         hsa_wait_state_t wait_hint, hsa_signal_value_t *satisfying_value);

/*
 * Waits until all of them have met theirs, be it one after the other. Returns 0, and in satisfying_values, unless that
 * is NULL, an item for each: the value that met its condition. Handles that are no signals have met theirs with 0.
 * UINT32_MAX: likewise, but not if none of them is a signal; nothing is written.
 */
HSA_API uint32_t hsa_amd_signal_wait_all(uint32_t signal_count, hsa_signal_t *signals, hsa_signal_condition_t *conds,
                                         hsa_signal_value_t *values, uint64_t timeout_hint,
                                         hsa_wait_state_t wait_hint, hsa_signal_value_t *satisfying_values);

/* Called with the value that met the condition. True: it is to be called again, when the condition is met again or
 * still is. */
typedef bool (*hsa_amd_signal_handler)(hsa_signal_value_t value, void *arg);

/*
 * Has a function called when a signal meets a condition; any number of them, each on its own. One thread of the process
 * calls them all, one after the other and with no lock held. It begins with the first such call, and ends with the last
 * hsa_shut_down(), which waits for the function that is being called, unless that has called it; so a function must not
 * call hsa_init() while another thread shuts down. That of a signal that was destroyed is not called any more, but may
 * be running yet. The child of a fork() has none.
 *     INVALID_ARGUMENT   handler is NULL, or cond is no condition
 *     INVALID_SIGNAL
 */
HSA_API hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t cond,
                                                  hsa_signal_value_t value, hsa_amd_signal_handler handler, void *arg);

/*
 * Has a function called once, soon, by the same thread.
 *     INVALID_ARGUMENT   callback is NULL
 */
HSA_API hsa_status_t hsa_amd_async_function(void (*callback)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#include "hsa_ext_amd_gpu.h"

#endif
