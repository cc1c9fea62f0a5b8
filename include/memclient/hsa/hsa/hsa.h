/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HSA runtime for memory: what a program written to HSA 1.x needs to find the machine's NUMA nodes as CPU agents,
 * and to allocate, copy, hand over and share memory on them. Its memory is memoryd's, see memclient(3).
 *
 *     static hsa_status_t first(hsa_agent_t agent, void *found)
 *     {
 *         *(hsa_agent_t *)found = agent;
 *         return HSA_STATUS_INFO_BREAK;
 *     }
 *
 *     hsa_agent_t agent;
 *     hsa_init();
 *     hsa_iterate_agents(first, &agent);
 *
 * Build with `pkg-config --cflags --libs memclient-hsa`. Names, values and layouts are those of other HSA runtimes, so
 * programs need not be changed, nor compiled again. The text is about this implementation and told in full in
 * memclient-hsa(3). Virtual memory, memory pools, IPC and what else is AMD's is in hsa_ext_amd.h; what is ours alone
 * in hsa_ext_memoryd.h. No agent here runs kernels: what those need is in hsa_kernels.h, and refused.
 *
 * Statuses. Besides those named below, every function, except where it says otherwise, may return
 *     NOT_INITIALIZED    hsa_init() was not called, or as many hsa_shut_down() as hsa_init()
 *     OUT_OF_RESOURCES   the broker cannot be reached, refuses by one of its limits, or this process has no memory
 *                        for records or no descriptor left; memclient_error() of the same thread has a sentence
 *     ERROR              the kernel or the broker failed in a way that no other status names
 * (ERROR is HSA_STATUS_ERROR; of the others, HSA_STATUS_ERROR_ is left out here and below). Arguments are looked at in
 * this order: whether the runtime is initialised, NULL pointers, zero sizes and values out of range, then handles in
 * the order of the parameters.
 * A function that fails has changed nothing, and leaves its output parameters as they were except where it says so.
 * A handle that was never given out, or is of another kind, is recognised as invalid, whatever its value.
 *
 * Threads. Every function may be called from any thread at any time, also from a callback. Callbacks are called in the
 * calling thread with no lock held. Nothing here is async-signal-safe, except hsa_status_string().
 *
 * fork(). The child has an uninitialised runtime and begins with hsa_init(). What the parent had mapped stays mapped
 * there, shared with the parent, but the child's runtime does not know those addresses.
 *
 * Sizes and lengths are in bytes.
 */
#ifndef HSA_RUNTIME_INC_HSA_H_
#define HSA_RUNTIME_INC_HSA_H_

#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#define HSA_VERSION_1_0 1

#undef HSA_LARGE_MODEL
#if defined(__LP64__) || defined(_LP64)
#define HSA_LARGE_MODEL
#endif

#undef HSA_LITTLE_ENDIAN
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HSA_LITTLE_ENDIAN
#endif

#ifndef HSA_CALL
#define HSA_CALL
#endif
#ifndef HSA_API
#define HSA_API __attribute__((__visibility__("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------- statuses */

/* What functions return, and callbacks too. hsa_ext_amd.h adds values that are no members of the type. */
typedef enum {
    HSA_STATUS_SUCCESS = 0x0,
    HSA_STATUS_INFO_BREAK = 0x1, /* for callbacks: stop iterating; nothing is wrong */
    HSA_STATUS_ERROR = 0x1000,   /* something that no other value names */
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
    HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002,
    HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003, /* no such allocation, mapping or handle, or none possible there */
    HSA_STATUS_ERROR_INVALID_AGENT = 0x1004,
    HSA_STATUS_ERROR_INVALID_REGION = 0x1005,
    HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006,
    HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007,
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
    HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009,
    HSA_STATUS_ERROR_RESOURCE_FREE = 0x100A, /* it cannot be freed, for example since it is in use */
    HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B,
    HSA_STATUS_ERROR_REFCOUNT_OVERFLOW = 0x100C,
    HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100D,
    HSA_STATUS_ERROR_INVALID_INDEX = 0x100E,
    HSA_STATUS_ERROR_INVALID_ISA = 0x100F,
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010,
    HSA_STATUS_ERROR_INVALID_EXECUTABLE = 0x1011,
    HSA_STATUS_ERROR_FROZEN_EXECUTABLE = 0x1012,
    HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013,
    HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED = 0x1014,
    HSA_STATUS_ERROR_VARIABLE_UNDEFINED = 0x1015,
    HSA_STATUS_ERROR_EXCEPTION = 0x1016,
    HSA_STATUS_ERROR_INVALID_ISA_NAME = 0x1017,
    HSA_STATUS_ERROR_INVALID_CODE_SYMBOL = 0x1018,
    HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019,
    HSA_STATUS_ERROR_INVALID_FILE = 0x1020,
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021,
    HSA_STATUS_ERROR_INVALID_CACHE = 0x1022,
    HSA_STATUS_ERROR_INVALID_WAVEFRONT = 0x1023,
    HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP = 0x1024,
    HSA_STATUS_ERROR_INVALID_RUNTIME_STATE = 0x1025,
    HSA_STATUS_ERROR_FATAL = 0x1026
} hsa_status_t;

/*
 * What a status means: its name, a colon and a sentence, a static string. Knows hsa_ext_amd.h's statuses as well. Works
 * without hsa_init() and makes no call.
 *     INVALID_ARGUMENT   status_string is NULL, or no status has this value
 */
HSA_API hsa_status_t hsa_status_string(hsa_status_t status, const char **status_string);

/* -------------------------------------------------------------------------------------------- common definitions */

typedef struct hsa_dim3_s {
    uint32_t x;
    uint32_t y;
    uint32_t z;
} hsa_dim3_t;

/* What an agent may do with memory: a mask of reading (1) and writing (2). */
typedef enum {
    HSA_ACCESS_PERMISSION_NONE = 0, /* of hsa_ext_amd.h's functions only */
    HSA_ACCESS_PERMISSION_RO = 1,
    HSA_ACCESS_PERMISSION_WO = 2, /* processors cannot forbid reading only: it reads as well */
    HSA_ACCESS_PERMISSION_RW = 3
} hsa_access_permission_t;

/* A file descriptor. */
typedef int hsa_file_t;

typedef enum { HSA_ENDIANNESS_LITTLE = 0, HSA_ENDIANNESS_BIG = 1 } hsa_endianness_t;

/* Small: 32-bit addresses. Large: 64-bit. */
typedef enum { HSA_MACHINE_MODEL_SMALL = 0, HSA_MACHINE_MODEL_LARGE = 1 } hsa_machine_model_t;

typedef enum { HSA_PROFILE_BASE = 0, HSA_PROFILE_FULL = 1 } hsa_profile_t;

/* How far a memory fence reaches. Named by programs; nothing here takes one. */
typedef enum { HSA_FENCE_SCOPE_NONE = 0, HSA_FENCE_SCOPE_AGENT = 1, HSA_FENCE_SCOPE_SYSTEM = 2 } hsa_fence_scope_t;

/* ---------------------------------------------------------------------------------------------------- the runtime */

/*
 * Initialises the runtime, or counts it up. The first call finds the broker as memclient_open() tells (MEMORYD_SOCKET,
 * MEMORYD_AUTOSTART), and the machine's nodes; both stay as they were found until the last hsa_shut_down(). Exact
 * however many threads call it.
 *     OUT_OF_RESOURCES    no broker can be reached, or it has no node with memory; nothing is initialised
 *     INVALID_ARGUMENT    MEMORYD_HSA_PROFILE is set to no profile, see hsa_ext_memoryd.h; nothing is initialised
 *     REFCOUNT_OVERFLOW   it was called INT32_MAX times
 */
HSA_API hsa_status_t hsa_init(void);

/*
 * Counts the runtime down. The last call unmaps and frees all memory of this runtime in this process, its reservations,
 * handles and signals too (memory that another process imported or attached lives on there), so nothing may use them
 * any more; it waits for other threads to leave the runtime. Deallocation callbacks are not called. Then hsa_init()
 * may begin anew. OUT_OF_RESOURCES is never returned.
 *     NOT_INITIALIZED    it was called as often as hsa_init()
 */
HSA_API hsa_status_t hsa_shut_down(void);

/* What hsa_system_get_info() can tell. In brackets: the type of the value. */
typedef enum {
    HSA_SYSTEM_INFO_VERSION_MAJOR = 0,       /* [uint16_t] of HSA: 1 */
    HSA_SYSTEM_INFO_VERSION_MINOR = 1,       /* [uint16_t] */
    HSA_SYSTEM_INFO_TIMESTAMP = 2,           /* [uint64_t] now: CLOCK_MONOTONIC in nanoseconds */
    HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3, /* [uint64_t] its ticks in a second: 1 000 000 000 */
    HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4,     /* [uint64_t] the longest wait for a signal: UINT64_MAX, without end */
    HSA_SYSTEM_INFO_ENDIANNESS = 5,          /* [hsa_endianness_t] */
    HSA_SYSTEM_INFO_MACHINE_MODEL = 6,       /* [hsa_machine_model_t] */
    HSA_SYSTEM_INFO_EXTENSIONS = 7,          /* [uint8_t[128]] a bit for each hsa_extension_t: none is set */
    HSA_AMD_SYSTEM_INFO_BUILD_VERSION = 0x200,             /* [const char *] of this library; static */
    HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED = 0x201,             /* [bool] hsa_amd_svm_...() work: true */
    HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT = 0x202, /* [bool] agents can use all memory: true */
    HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED = 0x203,            /* [bool] false */
    HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED = 0x204,          /* [bool] hsa_amd_portable_export_dmabuf() works: true */
    HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED = 0x205, /* [bool] hsa_amd_vmem_...() work: true */
    HSA_AMD_SYSTEM_INFO_XNACK_ENABLED = 0x206,             /* [bool] false */
    HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR = 0x207,         /* [uint16_t] HSA_AMD_INTERFACE_VERSION_MAJOR */
    HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR = 0x208          /* [uint16_t] HSA_AMD_INTERFACE_VERSION_MINOR */
} hsa_system_info_t;

/*
 * Tells a property of the system; value has room for its type. Makes no call.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none of the above
 */
HSA_API hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void *value);

/* Extensions that HSA_SYSTEM_INFO_EXTENSIONS and HSA_AGENT_INFO_EXTENSIONS have bits for. */
typedef enum {
    HSA_EXTENSION_FINALIZER = 0,
    HSA_EXTENSION_IMAGES = 1,
    HSA_EXTENSION_PERFORMANCE_COUNTERS = 2,
    HSA_EXTENSION_PROFILING_EVENTS = 3,
    HSA_EXTENSION_STD_LAST = 3,
    HSA_AMD_FIRST_EXTENSION = 0x200,
    HSA_EXTENSION_AMD_PROFILER = 0x200,
    HSA_EXTENSION_AMD_LOADER = 0x201,
    HSA_EXTENSION_AMD_AQLPROFILE = 0x202,
    HSA_EXTENSION_AMD_PC_SAMPLING = 0x203,
    HSA_AMD_LAST_EXTENSION = 0x203
} hsa_extension_t;

/*
 * The name of an extension: of its enumerator, static.
 *     INVALID_ARGUMENT   name is NULL, or extension is none of the above
 */
HSA_API hsa_status_t hsa_extension_get_name(uint16_t extension, const char **name);

/*
 * Whether there is an extension: *result. There is none, of any version. In the second form *version_minor would be its
 * newest version; it is left as it is.
 *     INVALID_ARGUMENT   result or version_minor is NULL, or extension is none of the above
 */
HSA_API hsa_status_t hsa_system_extension_supported(uint16_t extension, uint16_t version_major,
                                                    uint16_t version_minor, bool *result);
HSA_API hsa_status_t hsa_system_major_extension_supported(uint16_t extension, uint16_t version_major,
                                                          uint16_t *version_minor, bool *result);

/*
 * Would write the functions of an extension into a table.
 *     INVALID_ARGUMENT   table is NULL, table_length is 0, or extension is none of the above
 *     ERROR              there is no such extension, as there is none
 */
HSA_API hsa_status_t hsa_system_get_extension_table(uint16_t extension, uint16_t version_major,
                                                    uint16_t version_minor, void *table);
HSA_API hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t version_major,
                                                          size_t table_length, void *table);

/* --------------------------------------------------------------------------------------------------------- agents */

/* An agent: here, a NUMA node with its processors and memory. 0 is no agent. Equal handles are the same agent. */
typedef struct hsa_agent_s {
    uint64_t handle;
} hsa_agent_t;

/* What an agent can run; a bit mask. CPU agents have neither. */
typedef enum { HSA_AGENT_FEATURE_KERNEL_DISPATCH = 1, HSA_AGENT_FEATURE_AGENT_DISPATCH = 2 } hsa_agent_feature_t;

typedef enum {
    HSA_DEVICE_TYPE_CPU = 0,
    HSA_DEVICE_TYPE_GPU = 1,
    HSA_DEVICE_TYPE_DSP = 2,
    HSA_DEVICE_TYPE_AIE = 3
} hsa_device_type_t;

typedef enum {
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0,
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_ZERO = 1,
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR = 2
} hsa_default_float_rounding_mode_t;

typedef enum {
    HSA_QUEUE_TYPE_MULTI = 0,
    HSA_QUEUE_TYPE_SINGLE = 1,
    HSA_QUEUE_TYPE_COOPERATIVE = 2
} hsa_queue_type_t;
typedef uint32_t hsa_queue_type32_t;

/* An instruction set. No agent here has one that programs could be made for: 0. */
typedef struct hsa_isa_s {
    uint64_t handle;
} hsa_isa_t;

/*
 * What hsa_agent_get_info() can tell. In brackets: the type of the value. Those of hsa_amd_agent_info_t are passed as
 * this type too. Where a CPU has nothing to tell, the value is 0.
 */
typedef enum {
    HSA_AGENT_INFO_NAME = 0,        /* [char[64]] the processor's model, with NULs to the end */
    HSA_AGENT_INFO_VENDOR_NAME = 1, /* [char[64]] "CPU", likewise */
    HSA_AGENT_INFO_FEATURE = 2,     /* [uint32_t] mask of hsa_agent_feature_t: 0 */
    HSA_AGENT_INFO_MACHINE_MODEL = 3, /* [hsa_machine_model_t] */
    HSA_AGENT_INFO_PROFILE = 4,       /* [hsa_profile_t] FULL */
    HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5, /* [hsa_default_float_rounding_mode_t] NEAR */
    HSA_AGENT_INFO_WAVEFRONT_SIZE = 6,     /* [uint32_t] 0 */
    HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 7,  /* [uint16_t[3]] 0 */
    HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8, /* [uint32_t] 0 */
    HSA_AGENT_INFO_GRID_MAX_DIM = 9,       /* [hsa_dim3_t] 0 */
    HSA_AGENT_INFO_GRID_MAX_SIZE = 10,     /* [uint32_t] 0 */
    HSA_AGENT_INFO_FBARRIER_MAX_SIZE = 11, /* [uint32_t] 0 */
    HSA_AGENT_INFO_QUEUES_MAX = 12,        /* [uint32_t] 0: there are no queues */
    HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13,    /* [uint32_t] 0 */
    HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14,    /* [uint32_t] 0 */
    HSA_AGENT_INFO_QUEUE_TYPE = 15,        /* [hsa_queue_type32_t] MULTI */
    HSA_AGENT_INFO_NODE = 16,              /* [uint32_t] number of the NUMA node */
    HSA_AGENT_INFO_DEVICE = 17,            /* [hsa_device_type_t] CPU */
    HSA_AGENT_INFO_CACHE_SIZE = 18,        /* [uint32_t[4]] bytes of the data caches of level 1 to 4; 0 = none */
    HSA_AGENT_INFO_ISA = 19,               /* [hsa_isa_t] 0 */
    HSA_AGENT_INFO_EXTENSIONS = 20,        /* [uint8_t[128]] a bit for each hsa_extension_t: none is set */
    HSA_AGENT_INFO_VERSION_MAJOR = 21,     /* [uint16_t] of HSA that the agent follows: 1 */
    HSA_AGENT_INFO_VERSION_MINOR = 22,     /* [uint16_t] 1 */
    HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 23, /* [uint32_t] mask, a bit for each mode: NEAR */
    HSA_AGENT_INFO_FAST_F16_OPERATION = 24, /* [bool] false */
    HSA_AGENT_INFO_LAST = INT32_MAX         /* no attribute; makes the type wide enough for others' */
} hsa_agent_info_t;

/*
 * Calls callback for each agent, in the order of their nodes, until it returns something else than SUCCESS; that is
 * returned then. `data` is passed on. The order is the same every time.
 *     INVALID_ARGUMENT   callback is NULL
 */
HSA_API hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data), void *data);

/*
 * Tells a property of an agent; value has room for its type. Only HSA_AMD_AGENT_INFO_MEMORY_AVAIL may call the broker.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none that a CPU agent has
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void *value);

/*
 * Whether an agent has an extension, as hsa_system_extension_supported() tells of the system.
 *     INVALID_ARGUMENT   likewise
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_extension_supported(uint16_t extension, hsa_agent_t agent, uint16_t version_major,
                                                   uint16_t version_minor, bool *result);
HSA_API hsa_status_t hsa_agent_major_extension_supported(uint16_t extension, hsa_agent_t agent,
                                                         uint16_t version_major, uint16_t *version_minor,
                                                         bool *result);

/* A cache of an agent. 0 is none. */
typedef struct hsa_cache_s {
    uint64_t handle;
} hsa_cache_t;

/* What hsa_cache_get_info() can tell. In brackets: the type of the value. */
typedef enum {
    HSA_CACHE_INFO_NAME_LENGTH = 0, /* [uint32_t] bytes of the name without its NUL */
    HSA_CACHE_INFO_NAME = 1,        /* [char[NAME_LENGTH + 1]] */
    HSA_CACHE_INFO_LEVEL = 2,       /* [uint8_t] 1 for the one next to the processor */
    HSA_CACHE_INFO_SIZE = 3         /* [uint32_t] bytes; 0 = not known */
} hsa_cache_info_t;

/*
 * Calls callback for each data cache of an agent, as hsa_iterate_agents() does for agents.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_iterate_caches(hsa_agent_t agent,
                                              hsa_status_t (*callback)(hsa_cache_t cache, void *data), void *data);

/*
 * Tells a property of a cache; value has room for its type. Makes no call.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none of the above
 *     INVALID_CACHE
 */
HSA_API hsa_status_t hsa_cache_get_info(hsa_cache_t cache, hsa_cache_info_t attribute, void *value);

/* What would be asked of an instruction set. */
typedef enum {
    HSA_ISA_INFO_NAME_LENGTH = 0,
    HSA_ISA_INFO_NAME = 1,
    HSA_ISA_INFO_CALL_CONVENTION_COUNT = 2,
    HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE = 3,
    HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONTS_PER_COMPUTE_UNIT = 4,
    HSA_ISA_INFO_MACHINE_MODELS = 5,
    HSA_ISA_INFO_PROFILES = 6,
    HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES = 7,
    HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 8,
    HSA_ISA_INFO_FAST_F16_OPERATION = 9,
    HSA_ISA_INFO_WORKGROUP_MAX_DIM = 12,
    HSA_ISA_INFO_WORKGROUP_MAX_SIZE = 13,
    HSA_ISA_INFO_GRID_MAX_DIM = 14,
    HSA_ISA_INFO_GRID_MAX_SIZE = 16,
    HSA_ISA_INFO_FBARRIER_MAX_SIZE = 17
} hsa_isa_info_t;

/*
 * Calls callback for each instruction set of an agent: CPU agents have none, so never.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t isa, void *data),
                                            void *data);

/*
 * Tells a property of an instruction set. There is none, so it never succeeds.
 *     INVALID_ARGUMENT   value is NULL
 *     INVALID_ISA
 */
HSA_API hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void *value);

/* -------------------------------------------------------------------------------------------------------- signals */

/* A number that threads, and with hsa_amd_ipc_signal_create() processes, may change and wait for. 0 is none. */
typedef struct hsa_signal_s {
    uint64_t handle;
} hsa_signal_t;

#ifdef HSA_LARGE_MODEL
typedef int64_t hsa_signal_value_t;
#else
typedef int32_t hsa_signal_value_t;
#endif

/* When a wait is over: the signal's value compared with the one given is */
typedef enum {
    HSA_SIGNAL_CONDITION_EQ = 0, /* equal to it */
    HSA_SIGNAL_CONDITION_NE = 1, /* another */
    HSA_SIGNAL_CONDITION_LT = 2, /* less than it */
    HSA_SIGNAL_CONDITION_GTE = 3 /* not less than it */
} hsa_signal_condition_t;

/* How a thread waits; a hint. */
typedef enum {
    HSA_WAIT_STATE_BLOCKED = 0, /* asleep, when it takes longer */
    HSA_WAIT_STATE_ACTIVE = 1   /* awake, which is quicker */
} hsa_wait_state_t;

/*
 * Makes a signal. The agents that will wait for it are not asked for more than that each is valid; num_consumers 0 =
 * all. It lives until hsa_signal_destroy(), at most until the last hsa_shut_down().
 *     INVALID_ARGUMENT   signal is NULL, num_consumers is not 0 and consumers is NULL, or an agent is there twice
 *     INVALID_AGENT      a consumer is not valid
 */
HSA_API hsa_status_t hsa_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                                       const hsa_agent_t *consumers, hsa_signal_t *signal);

/*
 * Destroys it. Who waits for it returns; a copy that waits for it fails, one that was to set it is made all the same.
 *     INVALID_ARGUMENT   signal is 0
 *     INVALID_SIGNAL     it is no signal of this process
 */
HSA_API hsa_status_t hsa_signal_destroy(hsa_signal_t signal);

/*
 * The signal's value. scacquire and acquire (its older name): what was written before the value was stored with release
 * is seen afterwards. `signal` is valid, since no status can be returned; for another the value is 0.
 */
HSA_API hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal);
HSA_API hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal);
HSA_API hsa_signal_value_t hsa_signal_load_acquire(hsa_signal_t signal);

/* Sets the value and wakes who waits. screlease and release (its older name): after what was written before. */
HSA_API void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_store_release(hsa_signal_t signal, hsa_signal_value_t value);

/* Sets the value, and wakes nobody: who waits sees it when it looks the next time, which may be never. */
HSA_API void hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_silent_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);

/*
 * Changes the value in one step, whoever else does at the same time, and wakes who waits. The orders are those of loads
 * and stores; scacq_screl and acq_rel (its older name) are both. A value that becomes too large goes on with the
 * smallest. Of a handle that is no signal nothing is changed.
 */
HSA_API void hsa_signal_add_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_add_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_add_acquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_add_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_add_release(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_add_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_add_acq_rel(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_subtract_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_subtract_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_subtract_acquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_subtract_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_subtract_release(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_subtract_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_subtract_acq_rel(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_and_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_and_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_and_acquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_and_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_and_release(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_and_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_and_acq_rel(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_or_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_or_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_or_acquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_or_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_or_release(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_or_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_or_acq_rel(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_xor_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_xor_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_xor_acquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_xor_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_xor_release(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_xor_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_xor_acq_rel(hsa_signal_t signal, hsa_signal_value_t value);

/* Likewise sets the value, and returns what it was before; 0 for a handle that is no signal. */
HSA_API hsa_signal_value_t hsa_signal_exchange_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_acquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_release(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_acq_rel(hsa_signal_t signal, hsa_signal_value_t value);

/* Likewise sets the value if it is `expected`. Returns what it was before: `expected` means that it was set. */
HSA_API hsa_signal_value_t hsa_signal_cas_relaxed(hsa_signal_t signal, hsa_signal_value_t expected,
                                                  hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_cas_scacquire(hsa_signal_t signal, hsa_signal_value_t expected,
                                                    hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_cas_acquire(hsa_signal_t signal, hsa_signal_value_t expected,
                                                  hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_cas_screlease(hsa_signal_t signal, hsa_signal_value_t expected,
                                                    hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_cas_release(hsa_signal_t signal, hsa_signal_value_t expected,
                                                  hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_cas_scacq_screl(hsa_signal_t signal, hsa_signal_value_t expected,
                                                      hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_cas_acq_rel(hsa_signal_t signal, hsa_signal_value_t expected,
                                                  hsa_signal_value_t value);

/*
 * Waits until the value meets the condition, or about timeout_hint ticks (HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY) are
 * over, UINT64_MAX = without end. Returns the value last seen: compare it, since the wait may have ended by time.
 */
HSA_API hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                     hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                                     hsa_wait_state_t wait_state_hint);
HSA_API hsa_signal_value_t hsa_signal_wait_relaxed(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                   hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                                   hsa_wait_state_t wait_state_hint);
HSA_API hsa_signal_value_t hsa_signal_wait_acquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                                   hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                                   hsa_wait_state_t wait_state_hint);

/* A list of signals, to wait for any of them. 0 is none. */
typedef struct hsa_signal_group_s {
    uint64_t handle;
} hsa_signal_group_t;

/*
 * Makes a group. It keeps none of its signals: they are destroyed on their own. It lives until
 * hsa_signal_group_destroy(), at most until the last hsa_shut_down(). The agents that will wait are not asked for more
 * than that each is valid; num_consumers 0 = all.
 *     INVALID_ARGUMENT   num_signals is 0, signals or signal_group is NULL, or num_consumers is not 0 and consumers is
 *                        NULL
 *     INVALID_SIGNAL     one of signals
 *     INVALID_AGENT      one of consumers
 */
HSA_API hsa_status_t hsa_signal_group_create(uint32_t num_signals, const hsa_signal_t *signals,
                                             uint32_t num_consumers, const hsa_agent_t *consumers,
                                             hsa_signal_group_t *signal_group);

/*
 * Destroys a group, not its signals. Who waits for it goes on waiting.
 *     INVALID_SIGNAL_GROUP
 */
HSA_API hsa_status_t hsa_signal_group_destroy(hsa_signal_group_t signal_group);

/*
 * Waits until one of the group's signals meets its condition; conditions and compare_values have an item for each
 * signal, in their order. *signal is that signal, *value what it was.
 *     INVALID_ARGUMENT       a pointer is NULL, a condition is none, no signal of the group is valid any more, or one
 *                            is destroyed meanwhile
 *     INVALID_SIGNAL_GROUP
 */
HSA_API hsa_status_t hsa_signal_group_wait_any_scacquire(hsa_signal_group_t signal_group,
                                                         const hsa_signal_condition_t *conditions,
                                                         const hsa_signal_value_t *compare_values,
                                                         hsa_wait_state_t wait_state_hint, hsa_signal_t *signal,
                                                         hsa_signal_value_t *value);
HSA_API hsa_status_t hsa_signal_group_wait_any_relaxed(hsa_signal_group_t signal_group,
                                                       const hsa_signal_condition_t *conditions,
                                                       const hsa_signal_value_t *compare_values,
                                                       hsa_wait_state_t wait_state_hint, hsa_signal_t *signal,
                                                       hsa_signal_value_t *value);

/* --------------------------------------------------------------------------------------------------------- memory */

/* A kind of memory that an agent can use. 0 is none. A global region is a memory pool as well, with the same handle. */
typedef struct hsa_region_s {
    uint64_t handle;
} hsa_region_t;

/* What a region is for. Only memory of the global segment can be allocated. */
typedef enum {
    HSA_REGION_SEGMENT_GLOBAL = 0,
    HSA_REGION_SEGMENT_READONLY = 1, /* constants of kernels */
    HSA_REGION_SEGMENT_PRIVATE = 2,  /* of one work-item of a kernel */
    HSA_REGION_SEGMENT_GROUP = 3,    /* of one work-group of a kernel */
    HSA_REGION_SEGMENT_KERNARG = 4   /* not used: arguments of kernels are in the global segment */
} hsa_region_segment_t;

/* Kinds of global memory; a bit mask. */
typedef enum {
    HSA_REGION_GLOBAL_FLAG_KERNARG = 1,        /* may hold kernels' arguments; is fine-grained too */
    HSA_REGION_GLOBAL_FLAG_FINE_GRAINED = 2,   /* all agents see each other's writes at once */
    HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED = 4, /* one agent at a time owns a buffer, see hsa_memory_assign_agent() */
    HSA_REGION_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8 /* never here */
} hsa_region_global_flag_t;

/*
 * What hsa_region_get_info() can tell. In brackets: the type of the value. Those of hsa_amd_region_info_t are passed as
 * this type too.
 */
#if defined(__cplusplus) && __cplusplus >= 201103L
typedef enum : int {
#else
typedef enum {
#endif
    HSA_REGION_INFO_SEGMENT = 0,      /* [hsa_region_segment_t] */
    HSA_REGION_INFO_GLOBAL_FLAGS = 1, /* [uint32_t] mask of hsa_region_global_flag_t; 0 outside of the global segment */
    HSA_REGION_INFO_SIZE = 2,         /* [size_t] global: the broker's capacity for the node; its regions share it */
    /* [size_t] Global: the most that hsa_memory_allocate() could give this process now, never more than SIZE. Group
     * and private: for a kernel. */
    HSA_REGION_INFO_ALLOC_MAX_SIZE = 4,
    HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED = 5,   /* [bool] hsa_memory_allocate() takes it: of the global segment */
    HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE = 6,   /* [size_t] sizes are rounded up to multiples of it: its pages' */
    HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT = 7, /* [size_t] addresses are multiples of it, a power of 2 */
    HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE = 8 /* [uint32_t] private: for a kernel; others: 0 */
} hsa_region_info_t;

/*
 * Tells a property of a region; value has room for its type. Only ALLOC_MAX_SIZE may call the broker.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none of a region
 *     INVALID_REGION
 */
HSA_API hsa_status_t hsa_region_get_info(hsa_region_t region, hsa_region_info_t attribute, void *value);

/*
 * Calls callback for each region that the agent can use, until it returns something else than SUCCESS; that is
 * returned then. First the agent's own: global fine-grained, global fine-grained for kernels' arguments, global
 * coarse-grained (none of them if the node has no memory of the broker's), read-only, group, private; then the global
 * ones of the other agents, in their order.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_iterate_regions(hsa_agent_t agent,
                                               hsa_status_t (*callback)(hsa_region_t region, void *data), void *data);

/*
 * Allocates zeroed memory, rounded up to the region's granule, on the region's node and nowhere else; *ptr is aligned
 * to the region's alignment, and to 2 MiB from that size on. It is committed: touching it never fails for want of
 * memory.
 * It belongs to the application until hsa_memory_free(), at most until the last hsa_shut_down(), and may be used by
 * every agent. Coarse-grained memory is owned by the region's agent first, for reading and writing.
 *     INVALID_ARGUMENT     ptr is NULL, or size is 0
 *     INVALID_REGION
 *     INVALID_ALLOCATION   RUNTIME_ALLOC_ALLOWED is false, or size is above ALLOC_MAX_SIZE as the region last told
 *     OUT_OF_RESOURCES     the region has no room for it now
 */
HSA_API hsa_status_t hsa_memory_allocate(hsa_region_t region, size_t size, void **ptr);

/*
 * Frees what hsa_memory_allocate() or hsa_amd_memory_pool_allocate() gave, after calling its deallocation callbacks,
 * see hsa_amd_register_deallocation_callback(). NULL is ignored. Memory that another process has attached lives on.
 *     INVALID_ALLOCATION   ptr is no such address, an address inside of such memory, or was freed already
 *     INVALID_ARGUMENT     ptr was given by hsa_amd_ipc_memory_attach(), see hsa_amd_ipc_memory_detach()
 * HSA leaves undefined what happens to such pointers; nothing happens here.
 */
HSA_API hsa_status_t hsa_memory_free(void *ptr);

/*
 * Copies `size` bytes; the ranges do not overlap. Each may be any memory of the process, coarse-grained memory if
 * its owner may read what is copied from, or write what is copied to. Large copies are made by several threads.
 *     INVALID_ARGUMENT   dst or src is NULL, even if size is 0; or memory of this runtime may not be read or written
 *                        so, by its owner or, where it is a mapping, by any agent. Nothing is copied then
 */
HSA_API hsa_status_t hsa_memory_copy(void *dst, const void *src, size_t size);

/*
 * Makes an agent the owner of coarse-grained memory. Here that is real: the pages move to the owner's node, unless
 * another process is using some of them or they are huge pages of the system, and `access` becomes what this process
 * may do with them (a thread that does more gets SIGSEGV). The address, the contents and the mappings of other
 * processes stay. For fine-grained memory nothing is done; memory that is not HSA's counts as such, as in ROCr.
 *     INVALID_ARGUMENT     ptr is NULL, or access is not RO, WO or RW
 *     INVALID_AGENT
 *     INVALID_ALLOCATION   ptr is inside of a coarse-grained allocation, not where it begins
 *     OUT_OF_RESOURCES     the other node has no room for it: it stays with its owner
 */
HSA_API hsa_status_t hsa_memory_assign_agent(void *ptr, hsa_agent_t agent, hsa_access_permission_t access);

/*
 * Tells the runtime of memory that it did not allocate: hsa_amd_pointer_info() knows it then as LOCKED. NULL, memory of
 * HSA, and the very same range again have no effect. It stays the application's, which keeps it until
 * hsa_memory_deregister().
 *     INVALID_ARGUMENT   size is 0 and ptr is not NULL, or the range overlaps another registration, or memory of HSA,
 *                        in part
 */
HSA_API hsa_status_t hsa_memory_register(void *ptr, size_t size);

/* Undoes that, for the very same range; of any other, and of NULL, there is nothing to undo: SUCCESS. */
HSA_API hsa_status_t hsa_memory_deregister(void *ptr, size_t size);

#ifdef __cplusplus
}
#endif

#include "hsa_kernels.h"

#endif
