/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HSA runtime for memory: what programs written to HSA 1.x need to find the NUMA nodes of the machine as CPU
 * agents, and to allocate, copy and share memory on them. The memory comes from memoryd, see memclient(3).
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
 * programs need neither be changed nor compiled again. The comments describe this implementation, and memclient-hsa(3)
 * describes it as a whole. hsa_ext_amd.h has virtual memory, memory pools, IPC and AMD's other extensions;
 * hsa_ext_memoryd.h has what only this library offers. No agent here runs kernels: the functions for kernels are in
 * hsa_kernels.h, and fail.
 *
 * Statuses. Unless stated otherwise, every function may return these besides those that it lists:
 *     NOT_INITIALIZED    hsa_init() was not called, or as many hsa_shut_down() as hsa_init()
 *     OUT_OF_RESOURCES   the broker cannot be reached, refuses by one of its limits, or this process has no memory
 *                        for records or no descriptor left; memclient_error() of the same thread has a sentence
 *     ERROR              the kernel or the broker failed in a way that no other status names
 * (ERROR is HSA_STATUS_ERROR; the prefix HSA_STATUS_ERROR_ of the others is left out here and below.) Arguments are
 * checked in this order: whether the runtime is initialised; NULL pointers, zero sizes and values out of range;
 * handles, in the order of the parameters. A function that fails changes nothing, and leaves its output parameters as
 * they were unless stated otherwise. A handle that was never returned, or is of another kind, is recognised as invalid,
 * whatever its value.
 *
 * Threads. Every function may be called from any thread at any time, including callbacks. The calling thread calls
 * callbacks, without holding a lock. Only hsa_status_string() is async-signal-safe.
 *
 * fork(). The child has an uninitialised runtime, and begins with hsa_init(). The parent's mappings stay, shared with
 * the parent, but the child's runtime does not know their addresses.
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

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

/* What functions and callbacks return. hsa_ext_amd.h adds values that are not members of the type. */
typedef enum {
    HSA_STATUS_SUCCESS = 0x0,
    HSA_STATUS_INFO_BREAK = 0x1, /* from callbacks: stops the iteration without an error */
    HSA_STATUS_ERROR = 0x1000,   /* an error without a value of its own */
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
    HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002,
    HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003, /* no such allocation, mapping or handle, or none is possible there */
    HSA_STATUS_ERROR_INVALID_AGENT = 0x1004,
    HSA_STATUS_ERROR_INVALID_REGION = 0x1005,
    HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006,
    HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007,
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
    HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009,
    HSA_STATUS_ERROR_RESOURCE_FREE = 0x100A, /* it cannot be freed, for example because it is in use */
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
 * Returns a static string for a status, of hsa_ext_amd.h too: its name, a colon and a sentence. It does not need
 * hsa_init(), and does not call the broker.
 *     INVALID_ARGUMENT   status_string is NULL, or no status has this value
 */
HSA_API hsa_status_t hsa_status_string(hsa_status_t status, const char **status_string);

/* ---- common definitions ------------------------------------------------------------------------------------------ */

typedef struct hsa_dim3_s {
    uint32_t x;
    uint32_t y;
    uint32_t z;
} hsa_dim3_t;

/* The access of an agent to memory: a mask of reading (1) and writing (2). */
typedef enum {
    HSA_ACCESS_PERMISSION_NONE = 0, /* only for the functions of hsa_ext_amd.h */
    HSA_ACCESS_PERMISSION_RO = 1,
    HSA_ACCESS_PERMISSION_WO = 2, /* also readable: processors cannot forbid reading alone */
    HSA_ACCESS_PERMISSION_RW = 3
} hsa_access_permission_t;

/* A file descriptor. */
typedef int hsa_file_t;

typedef enum { HSA_ENDIANNESS_LITTLE = 0, HSA_ENDIANNESS_BIG = 1 } hsa_endianness_t;

/* Small: 32-bit addresses. Large: 64-bit. */
typedef enum { HSA_MACHINE_MODEL_SMALL = 0, HSA_MACHINE_MODEL_LARGE = 1 } hsa_machine_model_t;

typedef enum { HSA_PROFILE_BASE = 0, HSA_PROFILE_FULL = 1 } hsa_profile_t;

/* The scope of a memory fence. No function here takes one. */
typedef enum { HSA_FENCE_SCOPE_NONE = 0, HSA_FENCE_SCOPE_AGENT = 1, HSA_FENCE_SCOPE_SYSTEM = 2 } hsa_fence_scope_t;

/* ---- the runtime ------------------------------------------------------------------------------------------------- */

/*
 * Initialises the runtime, or increments its count. The first call connects to the broker as memclient_context_open()
 * does (MEMORYD_SOCKET, MEMORYD_AUTOSTART) and lists the nodes of the machine; both stay the same until the last
 * hsa_shut_down(). The count is exact, however many threads call.
 *     OUT_OF_RESOURCES    no broker can be reached, or it has no node with memory; nothing is initialised
 *     INVALID_ARGUMENT    MEMORYD_HSA_PROFILE is set to no profile, see hsa_ext_memoryd.h; nothing is initialised
 *     REFCOUNT_OVERFLOW   it was called INT32_MAX times
 */
HSA_API hsa_status_t hsa_init(void);

/*
 * Decrements the count of the runtime. The last call waits for other threads to leave the runtime. Then it unmaps and
 * frees all memory, reservations, handles and signals that this runtime has in this process, without calling
 * deallocation callbacks, so nothing may use them any more. Memory that another process has imported or attached stays
 * there. Afterwards hsa_init() may start again. OUT_OF_RESOURCES is never returned.
 *     NOT_INITIALIZED    it was called as often as hsa_init()
 */
HSA_API hsa_status_t hsa_shut_down(void);

/* Attributes for hsa_system_get_info(). The type of the value is in brackets. */
typedef enum {
    HSA_SYSTEM_INFO_VERSION_MAJOR = 0,         /* [uint16_t] of HSA: 1 */
    HSA_SYSTEM_INFO_VERSION_MINOR = 1,         /* [uint16_t] */
    HSA_SYSTEM_INFO_TIMESTAMP = 2,             /* [uint64_t] now: CLOCK_MONOTONIC in nanoseconds */
    HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3,   /* [uint64_t] its ticks in a second: 1 000 000 000 */
    HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4,       /* [uint64_t] the longest wait for a signal: UINT64_MAX, without end */
    HSA_SYSTEM_INFO_ENDIANNESS = 5,            /* [hsa_endianness_t] */
    HSA_SYSTEM_INFO_MACHINE_MODEL = 6,         /* [hsa_machine_model_t] */
    HSA_SYSTEM_INFO_EXTENSIONS = 7,            /* [uint8_t[128]] a bit for each hsa_extension_t: none is set */
    HSA_AMD_SYSTEM_INFO_BUILD_VERSION = 0x200, /* [const char *] of this library; static */
    HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED = 0x201, /* [bool] hsa_amd_svm_...() work: true */
    HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT = 0x202, /* [bool] agents can use all memory: true */
    HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED = 0x203,            /* [bool] false */
    HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED = 0x204,          /* [bool] hsa_amd_portable_export_dmabuf() works: true */
    HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED = 0x205, /* [bool] hsa_amd_vmem_...() work: true */
    HSA_AMD_SYSTEM_INFO_XNACK_ENABLED = 0x206,             /* [bool] false */
    HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR = 0x207,         /* [uint16_t] HSA_AMD_INTERFACE_VERSION_MAJOR */
    HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR = 0x208          /* [uint16_t] HSA_AMD_INTERFACE_VERSION_MINOR */
} hsa_system_info_t;

/*
 * Returns a property of the system; value has room for its type. It does not call the broker.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none of the above
 */
HSA_API hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void *value);

/* Extensions, for which HSA_SYSTEM_INFO_EXTENSIONS and HSA_AGENT_INFO_EXTENSIONS have bits. */
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
 * Returns the name of an extension: its enumerator, as a static string.
 *     INVALID_ARGUMENT   name is NULL, or extension is none of the above
 */
HSA_API hsa_status_t hsa_extension_get_name(uint16_t extension, const char **name);

/*
 * Sets *result to whether the extension exists: none does, in any version. The second form leaves *version_minor, for
 * the newest version, as it is.
 *     INVALID_ARGUMENT   result or version_minor is NULL, or extension is none of the above
 */
HSA_API hsa_status_t hsa_system_extension_supported(uint16_t extension, uint16_t version_major, uint16_t version_minor,
                                                    bool *result);
HSA_API hsa_status_t hsa_system_major_extension_supported(uint16_t extension, uint16_t version_major,
                                                          uint16_t *version_minor, bool *result);

/*
 * For the functions of an extension, as a table.
 *     INVALID_ARGUMENT   table is NULL, table_length is 0, or extension is none of the above
 *     ERROR              there is no such extension, as there is none
 */
HSA_API hsa_status_t hsa_system_get_extension_table(uint16_t extension, uint16_t version_major, uint16_t version_minor,
                                                    void *table);
HSA_API hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t version_major,
                                                          size_t table_length, void *table);

/* ---- agents ------------------------------------------------------------------------------------------------------ */

/* An agent: here, a NUMA node with its processors and memory. 0 is no agent. Equal handles are the same agent. */
typedef struct hsa_agent_s {
    uint64_t handle;
} hsa_agent_t;

/* What an agent can run; a mask. CPU agents have neither. */
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

typedef enum { HSA_QUEUE_TYPE_MULTI = 0, HSA_QUEUE_TYPE_SINGLE = 1, HSA_QUEUE_TYPE_COOPERATIVE = 2 } hsa_queue_type_t;
typedef uint32_t hsa_queue_type32_t;

/* An instruction set. No agent here has one for which programs could be compiled: 0. */
typedef struct hsa_isa_s {
    uint64_t handle;
} hsa_isa_t;

/*
 * Attributes for hsa_agent_get_info(), which also takes those of hsa_amd_agent_info_t as this type. The type of the
 * value is in brackets. Values that do not apply to a CPU are 0.
 */
typedef enum {
    HSA_AGENT_INFO_NAME = 0,                        /* [char[64]] the model of the processor, padded with NULs */
    HSA_AGENT_INFO_VENDOR_NAME = 1,                 /* [char[64]] "CPU", likewise */
    HSA_AGENT_INFO_FEATURE = 2,                     /* [uint32_t] mask of hsa_agent_feature_t: 0 */
    HSA_AGENT_INFO_MACHINE_MODEL = 3,               /* [hsa_machine_model_t] */
    HSA_AGENT_INFO_PROFILE = 4,                     /* [hsa_profile_t] FULL */
    HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5, /* [hsa_default_float_rounding_mode_t] NEAR */
    HSA_AGENT_INFO_WAVEFRONT_SIZE = 6,              /* [uint32_t] 0 */
    HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 7,           /* [uint16_t[3]] 0 */
    HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8,          /* [uint32_t] 0 */
    HSA_AGENT_INFO_GRID_MAX_DIM = 9,                /* [hsa_dim3_t] 0 */
    HSA_AGENT_INFO_GRID_MAX_SIZE = 10,              /* [uint32_t] 0 */
    HSA_AGENT_INFO_FBARRIER_MAX_SIZE = 11,          /* [uint32_t] 0 */
    HSA_AGENT_INFO_QUEUES_MAX = 12,                 /* [uint32_t] 0: there are no queues */
    HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13,             /* [uint32_t] 0 */
    HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14,             /* [uint32_t] 0 */
    HSA_AGENT_INFO_QUEUE_TYPE = 15,                 /* [hsa_queue_type32_t] MULTI */
    HSA_AGENT_INFO_NODE = 16,                       /* [uint32_t] number of the NUMA node */
    HSA_AGENT_INFO_DEVICE = 17,                     /* [hsa_device_type_t] CPU */
    HSA_AGENT_INFO_CACHE_SIZE = 18,    /* [uint32_t[4]] bytes of the data caches of level 1 to 4; 0 = none */
    HSA_AGENT_INFO_ISA = 19,           /* [hsa_isa_t] 0 */
    HSA_AGENT_INFO_EXTENSIONS = 20,    /* [uint8_t[128]] a bit for each hsa_extension_t: none is set */
    HSA_AGENT_INFO_VERSION_MAJOR = 21, /* [uint16_t] of HSA that the agent follows: 1 */
    HSA_AGENT_INFO_VERSION_MINOR = 22, /* [uint16_t] 1 */
    HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 23, /* [uint32_t] mask, a bit for each mode: NEAR */
    HSA_AGENT_INFO_FAST_F16_OPERATION = 24,                        /* [bool] false */
    HSA_AGENT_INFO_LAST = INT32_MAX /* no attribute; makes the type wide enough for those of others */
} hsa_agent_info_t;

/*
 * Calls callback for each agent, in the order of their nodes, until it returns anything but SUCCESS, which is then
 * returned. `data` is passed to it. The order is always the same.
 *     INVALID_ARGUMENT   callback is NULL
 */
HSA_API hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data), void *data);

/*
 * Returns a property of an agent; value has room for its type. Only HSA_AMD_AGENT_INFO_MEMORY_AVAIL may call the
 * broker.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none that a CPU agent has
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void *value);

/*
 * Whether an agent has an extension, like hsa_system_extension_supported() for the system.
 *     INVALID_ARGUMENT   likewise
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_extension_supported(uint16_t extension, hsa_agent_t agent, uint16_t version_major,
                                                   uint16_t version_minor, bool *result);
HSA_API hsa_status_t hsa_agent_major_extension_supported(uint16_t extension, hsa_agent_t agent, uint16_t version_major,
                                                         uint16_t *version_minor, bool *result);

/* A cache of an agent. 0 is none. */
typedef struct hsa_cache_s {
    uint64_t handle;
} hsa_cache_t;

/* Attributes for hsa_cache_get_info(). The type of the value is in brackets. */
typedef enum {
    HSA_CACHE_INFO_NAME_LENGTH = 0, /* [uint32_t] length of the name, without its NUL */
    HSA_CACHE_INFO_NAME = 1,        /* [char[NAME_LENGTH + 1]] */
    HSA_CACHE_INFO_LEVEL = 2,       /* [uint8_t] 1: next to the processor */
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
 * Returns a property of a cache; value has room for its type. It does not call the broker.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none of the above
 *     INVALID_CACHE
 */
HSA_API hsa_status_t hsa_cache_get_info(hsa_cache_t cache, hsa_cache_info_t attribute, void *value);

/* Attributes of an instruction set. */
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
 * Calls callback for each instruction set of an agent. CPU agents have none, so it is never called.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t isa, void *data),
                                            void *data);

/*
 * Returns a property of an instruction set. There is none, so it never succeeds.
 *     INVALID_ARGUMENT   value is NULL
 *     INVALID_ISA
 */
HSA_API hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void *value);

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* A number that threads, and with hsa_amd_ipc_signal_create() processes, can change and wait for. 0 is no signal. */
typedef struct hsa_signal_s {
    uint64_t handle;
} hsa_signal_t;

#ifdef HSA_LARGE_MODEL
typedef int64_t hsa_signal_value_t;
#else
typedef int32_t hsa_signal_value_t;
#endif

/* Conditions that end a wait: compared with the given value, the signal's value is */
typedef enum {
    HSA_SIGNAL_CONDITION_EQ = 0, /* equal to it */
    HSA_SIGNAL_CONDITION_NE = 1, /* different */
    HSA_SIGNAL_CONDITION_LT = 2, /* less than it */
    HSA_SIGNAL_CONDITION_GTE = 3 /* not less than it */
} hsa_signal_condition_t;

/* A hint how to wait. */
typedef enum {
    HSA_WAIT_STATE_BLOCKED = 0, /* asleep, if it takes long */
    HSA_WAIT_STATE_ACTIVE = 1   /* spinning, which is faster */
} hsa_wait_state_t;

/*
 * Creates a signal. The consumers, the agents that will wait for it, are only checked; num_consumers 0 means all
 * agents. The signal exists until hsa_signal_destroy(), or at most until the last hsa_shut_down().
 *     INVALID_ARGUMENT   signal is NULL, num_consumers is not 0 and consumers is NULL, or an agent is there twice
 *     INVALID_AGENT      a consumer is not valid
 */
HSA_API hsa_status_t hsa_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                                       const hsa_agent_t *consumers, hsa_signal_t *signal);

/*
 * Destroys a signal. Waits for it return. A copy that waits for it fails; a copy that would change it is made
 * nevertheless.
 *     INVALID_ARGUMENT   signal is 0
 *     INVALID_SIGNAL     it is no signal of this process
 */
HSA_API hsa_status_t hsa_signal_destroy(hsa_signal_t signal);

/*
 * Returns the signal's value. With scacquire, or acquire (its older name), everything that was written before a store
 * with release is visible afterwards. No status can be returned: if `signal` is no signal, the value is 0.
 */
HSA_API hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal);
HSA_API hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal);
HSA_API hsa_signal_value_t hsa_signal_load_acquire(hsa_signal_t signal);

/* Sets the value and wakes all waiters. With screlease, or release (its older name), earlier writes become visible
 * first. */
HSA_API void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_store_release(hsa_signal_t signal, hsa_signal_value_t value);

/* Sets the value without waking anybody: waiters notice it at their next comparison, which may be never. */
HSA_API void hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API void hsa_signal_silent_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);

/*
 * Changes the value atomically, and wakes all waiters. The orders are those of loads and stores; scacq_screl, or
 * acq_rel (its older name), is both. The value wraps around on overflow. Nothing happens if `signal` is no signal.
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

/* Sets the value like the functions above, and returns the previous one; 0 if `signal` is no signal. */
HSA_API hsa_signal_value_t hsa_signal_exchange_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_acquire(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_screlease(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_release(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
HSA_API hsa_signal_value_t hsa_signal_exchange_acq_rel(hsa_signal_t signal, hsa_signal_value_t value);

/* Sets the value likewise, if it is `expected`. Returns the previous value: `expected` means that it was set. */
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
 * Waits until the value meets the condition, or about timeout_hint ticks (HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY) have
 * passed; UINT64_MAX means forever. Returns the last value seen, which must be compared again, since the time may have
 * run out.
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

/* A list of signals, to wait for any of them. 0 is no group. */
typedef struct hsa_signal_group_s {
    uint64_t handle;
} hsa_signal_group_t;

/*
 * Creates a group. It does not keep its signals, which are destroyed independently. The group exists until
 * hsa_signal_group_destroy(), or at most until the last hsa_shut_down(). The consumers, the agents that will wait, are
 * only checked; num_consumers 0 means all agents.
 *     INVALID_ARGUMENT   num_signals is 0, signals or signal_group is NULL, or num_consumers is not 0 and consumers is
 *                        NULL
 *     INVALID_SIGNAL     one of signals
 *     INVALID_AGENT      one of consumers
 */
HSA_API hsa_status_t hsa_signal_group_create(uint32_t num_signals, const hsa_signal_t *signals, uint32_t num_consumers,
                                             const hsa_agent_t *consumers, hsa_signal_group_t *signal_group);

/*
 * Destroys a group, but not its signals. Waits for it continue.
 *     INVALID_SIGNAL_GROUP
 */
HSA_API hsa_status_t hsa_signal_group_destroy(hsa_signal_group_t signal_group);

/*
 * Waits until one of the group's signals meets its condition. conditions and compare_values have an element for each
 * signal, in their order. *signal becomes that signal, and *value its value.
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

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/*
 * A kind of memory that an agent can use. 0 is no region. A global region is also a memory pool, with the same handle.
 */
typedef struct hsa_region_s {
    uint64_t handle;
} hsa_region_t;

/* Purposes of regions. Only memory of the global segment can be allocated. */
typedef enum {
    HSA_REGION_SEGMENT_GLOBAL = 0,
    HSA_REGION_SEGMENT_READONLY = 1, /* constants of kernels */
    HSA_REGION_SEGMENT_PRIVATE = 2,  /* of one work-item of a kernel */
    HSA_REGION_SEGMENT_GROUP = 3,    /* of one work-group of a kernel */
    HSA_REGION_SEGMENT_KERNARG = 4   /* unused: kernel arguments are in the global segment */
} hsa_region_segment_t;

/* Kinds of global memory; a mask. */
typedef enum {
    HSA_REGION_GLOBAL_FLAG_KERNARG = 1,        /* for kernel arguments; also fine-grained */
    HSA_REGION_GLOBAL_FLAG_FINE_GRAINED = 2,   /* agents see each other's writes immediately */
    HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED = 4, /* one agent at a time owns a buffer, see hsa_memory_assign_agent() */
    HSA_REGION_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8 /* never set */
} hsa_region_global_flag_t;

/*
 * Attributes for hsa_region_get_info(), which also takes those of hsa_amd_region_info_t as this type. The type of the
 * value is in brackets.
 */
#if defined(__cplusplus) && __cplusplus >= 201103L
typedef enum : int {
#else
typedef enum {
#endif
    HSA_REGION_INFO_SEGMENT = 0,      /* [hsa_region_segment_t] */
    HSA_REGION_INFO_GLOBAL_FLAGS = 1, /* [uint32_t] mask of hsa_region_global_flag_t; 0 outside of the global segment */
    HSA_REGION_INFO_SIZE = 2,         /* [size_t] global: the broker's capacity for the node, which its regions share */
    /* [size_t] Global: the largest size that hsa_memory_allocate() could return to this process now, at most SIZE.
     * Group and private: for a kernel. */
    HSA_REGION_INFO_ALLOC_MAX_SIZE = 4,
    HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED = 5,   /* [bool] for hsa_memory_allocate(): global segment */
    HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE = 6,   /* [size_t] sizes are rounded up to its multiples: the page size */
    HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT = 7, /* [size_t] addresses are its multiples; a power of 2 */
    HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE = 8 /* [uint32_t] private: for a kernel; others: 0 */
} hsa_region_info_t;

/*
 * Returns a property of a region; value has room for its type. Only ALLOC_MAX_SIZE may call the broker.
 *     INVALID_ARGUMENT   value is NULL, or attribute is none of a region
 *     INVALID_REGION
 */
HSA_API hsa_status_t hsa_region_get_info(hsa_region_t region, hsa_region_info_t attribute, void *value);

/*
 * Calls callback for each region that the agent can use, until it returns anything but SUCCESS, which is then returned.
 * The agent's own regions come first: global fine-grained, global fine-grained for kernel arguments, global
 * coarse-grained (only if the broker has memory of the node), read-only, group, private. The global regions of the
 * other agents follow, in the order of agents.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_iterate_regions(hsa_agent_t agent,
                                               hsa_status_t (*callback)(hsa_region_t region, void *data), void *data);

/*
 * Allocates zeroed memory on the region's node and on no other, rounded up to the region's granule. *ptr is aligned to
 * the region's alignment; from a size of 2 MiB on, to 2 MiB. The memory is committed: accessing it never fails for lack
 * of memory. It belongs to the application until hsa_memory_free(), or at most until the last hsa_shut_down(), and all
 * agents may use it. The region's agent is the first owner of coarse-grained memory, for reading and writing.
 *     INVALID_ARGUMENT     ptr is NULL, or size is 0
 *     INVALID_REGION
 *     INVALID_ALLOCATION   RUNTIME_ALLOC_ALLOWED is false, or size is above ALLOC_MAX_SIZE as last reported
 *     OUT_OF_RESOURCES     the region has no room for it now
 */
HSA_API hsa_status_t hsa_memory_allocate(hsa_region_t region, size_t size, void **ptr);

/*
 * Frees memory of hsa_memory_allocate() or hsa_amd_memory_pool_allocate(), after calling its deallocation callbacks,
 * see hsa_amd_register_deallocation_callback(). NULL is ignored. Other processes that have attached the memory keep it.
 *     INVALID_ALLOCATION   ptr is no such address, an address inside of such memory, or was freed already
 *     INVALID_ARGUMENT     ptr was given by hsa_amd_ipc_memory_attach(), see hsa_amd_ipc_memory_detach()
 * HSA leaves such pointers undefined; here nothing happens.
 */
HSA_API hsa_status_t hsa_memory_free(void *ptr);

/*
 * Copies `size` bytes between ranges that do not overlap. Each may be any memory of the process; the owner of
 * coarse-grained memory must be allowed to read the source or write the destination. Several threads make large copies.
 *     INVALID_ARGUMENT   dst or src is NULL, even if size is 0; or memory of this runtime may not be read or written
 *                        so, by its owner or, where it is a mapping, by any agent. Nothing is copied then
 */
HSA_API hsa_status_t hsa_memory_copy(void *dst, const void *src, size_t size);

/*
 * Makes an agent the owner of coarse-grained memory. The pages move to the owner's node, unless another process uses
 * some of them or they are huge pages set aside by the system. `access` becomes the access of this process (a thread
 * that exceeds it gets SIGSEGV). The address, the contents and the mappings of other processes stay. Nothing happens to
 * fine-grained memory, nor to memory that is not HSA's, as in ROCr.
 *     INVALID_ARGUMENT     ptr is NULL, or access is not RO, WO or RW
 *     INVALID_AGENT
 *     INVALID_ALLOCATION   ptr is inside of a coarse-grained allocation, not where it begins
 *     OUT_OF_RESOURCES     the other node has no room for it: it stays with its owner
 */
HSA_API hsa_status_t hsa_memory_assign_agent(void *ptr, hsa_agent_t agent, hsa_access_permission_t access);

/*
 * Makes memory known that the runtime did not allocate: hsa_amd_pointer_info() reports it as LOCKED. NULL, memory of
 * HSA, and exactly the same range again have no effect. The memory stays the application's, which keeps it until
 * hsa_memory_deregister().
 *     INVALID_ARGUMENT   size is 0 and ptr is not NULL, or the range overlaps another registration, or memory of HSA,
 *                        in part
 */
HSA_API hsa_status_t hsa_memory_register(void *ptr, size_t size);

/* Undoes that for exactly the same range. For other ranges, and NULL, it does nothing and returns SUCCESS. */
HSA_API hsa_status_t hsa_memory_deregister(void *ptr, size_t size);

#ifdef __cplusplus
}
#endif

#include "hsa_kernels.h"

#endif
