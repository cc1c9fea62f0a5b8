/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels are made of and run by: queues, instruction sets, code objects, executables. hsa.h includes this file.
 *
 * No agent here runs kernels, so none of these exist. The types let programs compile that have members of them, and the
 * functions let programs link. Each function checks its arguments and fails: one that creates something with
 * NOT_SUPPORTED (of hsa_ext_amd.h) or the status named there, one that takes a handle with the status for an invalid
 * handle. No callback is called, and no output is written.
 */
#ifndef HSA_RUNTIME_KERNELS_H_
#define HSA_RUNTIME_KERNELS_H_

#include "hsa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- queues ------------------------------------------------------------------------------------------------------ */

/* The packets that a queue accepts; a mask. */
typedef enum { HSA_QUEUE_FEATURE_KERNEL_DISPATCH = 1, HSA_QUEUE_FEATURE_AGENT_DISPATCH = 2 } hsa_queue_feature_t;

/* A ring of packets for an agent. */
typedef struct hsa_queue_s {
    hsa_queue_type32_t type;
    uint32_t features;
#ifdef HSA_LARGE_MODEL
    void *base_address;
#elif defined HSA_LITTLE_ENDIAN
    void *base_address;
    uint32_t reserved0;
#else
    uint32_t reserved0;
    void *base_address;
#endif
    hsa_signal_t doorbell_signal;
    uint32_t size;
    uint32_t reserved1;
    uint64_t id;
} hsa_queue_t;

/*
 * Would create a queue, and call callback with data for its events.
 *     INVALID_ARGUMENT          queue is NULL, or size is no power of two
 *     INVALID_AGENT
 *     INVALID_QUEUE_CREATION    the arguments are valid
 */
HSA_API hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                                      void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data),
                                      void *data, uint32_t private_segment_size, uint32_t group_segment_size,
                                      hsa_queue_t **queue);

/*
 * Would create a queue that the program serves itself.
 *     INVALID_ARGUMENT          queue is NULL, or size is no power of two
 *     INVALID_REGION
 *     INVALID_QUEUE_CREATION    the arguments are valid
 */
HSA_API hsa_status_t hsa_soft_queue_create(hsa_region_t region, uint32_t size, hsa_queue_type32_t type,
                                           uint32_t features, hsa_signal_t doorbell_signal, hsa_queue_t **queue);

/*
 * Would destroy or stop a queue.
 *     INVALID_ARGUMENT    queue is NULL
 *     INVALID_QUEUE
 */
HSA_API hsa_status_t hsa_queue_destroy(hsa_queue_t *queue);
HSA_API hsa_status_t hsa_queue_inactivate(hsa_queue_t *queue);

/* The indices of a queue. They are 0, and nothing changes them. */
HSA_API uint64_t hsa_queue_load_read_index_relaxed(const hsa_queue_t *queue);
HSA_API uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue);
HSA_API uint64_t hsa_queue_load_read_index_acquire(const hsa_queue_t *queue);
HSA_API uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t *queue);
HSA_API uint64_t hsa_queue_load_write_index_scacquire(const hsa_queue_t *queue);
HSA_API uint64_t hsa_queue_load_write_index_acquire(const hsa_queue_t *queue);
HSA_API void hsa_queue_store_write_index_relaxed(const hsa_queue_t *queue, uint64_t value);
HSA_API void hsa_queue_store_write_index_screlease(const hsa_queue_t *queue, uint64_t value);
HSA_API void hsa_queue_store_write_index_release(const hsa_queue_t *queue, uint64_t value);
HSA_API void hsa_queue_store_read_index_relaxed(const hsa_queue_t *queue, uint64_t value);
HSA_API void hsa_queue_store_read_index_screlease(const hsa_queue_t *queue, uint64_t value);
HSA_API void hsa_queue_store_read_index_release(const hsa_queue_t *queue, uint64_t value);
HSA_API uint64_t hsa_queue_cas_write_index_relaxed(const hsa_queue_t *queue, uint64_t expected, uint64_t value);
HSA_API uint64_t hsa_queue_cas_write_index_scacquire(const hsa_queue_t *queue, uint64_t expected, uint64_t value);
HSA_API uint64_t hsa_queue_cas_write_index_acquire(const hsa_queue_t *queue, uint64_t expected, uint64_t value);
HSA_API uint64_t hsa_queue_cas_write_index_screlease(const hsa_queue_t *queue, uint64_t expected, uint64_t value);
HSA_API uint64_t hsa_queue_cas_write_index_release(const hsa_queue_t *queue, uint64_t expected, uint64_t value);
HSA_API uint64_t hsa_queue_cas_write_index_scacq_screl(const hsa_queue_t *queue, uint64_t expected, uint64_t value);
HSA_API uint64_t hsa_queue_cas_write_index_acq_rel(const hsa_queue_t *queue, uint64_t expected, uint64_t value);
HSA_API uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t *queue, uint64_t value);
HSA_API uint64_t hsa_queue_add_write_index_scacquire(const hsa_queue_t *queue, uint64_t value);
HSA_API uint64_t hsa_queue_add_write_index_acquire(const hsa_queue_t *queue, uint64_t value);
HSA_API uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t *queue, uint64_t value);
HSA_API uint64_t hsa_queue_add_write_index_release(const hsa_queue_t *queue, uint64_t value);
HSA_API uint64_t hsa_queue_add_write_index_scacq_screl(const hsa_queue_t *queue, uint64_t value);
HSA_API uint64_t hsa_queue_add_write_index_acq_rel(const hsa_queue_t *queue, uint64_t value);

/* ---- packets ----------------------------------------------------------------------------------------------------- */

/* Types of packets, as in their headers. */
typedef enum {
    HSA_PACKET_TYPE_VENDOR_SPECIFIC = 0,
    HSA_PACKET_TYPE_INVALID = 1,
    HSA_PACKET_TYPE_KERNEL_DISPATCH = 2,
    HSA_PACKET_TYPE_BARRIER_AND = 3,
    HSA_PACKET_TYPE_AGENT_DISPATCH = 4,
    HSA_PACKET_TYPE_BARRIER_OR = 5
} hsa_packet_type_t;

/* The offset of each field in a header, and its width in bits. */
typedef enum {
    HSA_PACKET_HEADER_TYPE = 0,
    HSA_PACKET_HEADER_BARRIER = 8,
    HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE = 9,
    HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE = 9,
    HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE = 11,
    HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE = 11
} hsa_packet_header_t;

typedef enum {
    HSA_PACKET_HEADER_WIDTH_TYPE = 8,
    HSA_PACKET_HEADER_WIDTH_BARRIER = 1,
    HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE = 2,
    HSA_PACKET_HEADER_WIDTH_ACQUIRE_FENCE_SCOPE = 2,
    HSA_PACKET_HEADER_WIDTH_SCRELEASE_FENCE_SCOPE = 2,
    HSA_PACKET_HEADER_WIDTH_RELEASE_FENCE_SCOPE = 2
} hsa_packet_header_width_t;

/* The same for the further fields of a kernel dispatch. */
typedef enum { HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS = 0 } hsa_kernel_dispatch_packet_setup_t;

typedef enum { HSA_KERNEL_DISPATCH_PACKET_SETUP_WIDTH_DIMENSIONS = 2 } hsa_kernel_dispatch_packet_setup_width_t;

#ifdef HSA_LARGE_MODEL
#define HSA_PACKET_POINTER(name, padding) void *name
#elif defined HSA_LITTLE_ENDIAN
#define HSA_PACKET_POINTER(name, padding) \
    void *name;                           \
    uint32_t padding
#else
#define HSA_PACKET_POINTER(name, padding) \
    uint32_t padding;                     \
    void *name
#endif

/* Packets of 64 bytes each: run a kernel, call an agent, wait for all of some signals, or for any. */
typedef struct hsa_kernel_dispatch_packet_s {
    uint16_t header;
    uint16_t setup;
    uint16_t workgroup_size_x;
    uint16_t workgroup_size_y;
    uint16_t workgroup_size_z;
    uint16_t reserved0;
    uint32_t grid_size_x;
    uint32_t grid_size_y;
    uint32_t grid_size_z;
    uint32_t private_segment_size;
    uint32_t group_segment_size;
    uint64_t kernel_object;
    HSA_PACKET_POINTER(kernarg_address, reserved1);
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_kernel_dispatch_packet_t;

typedef struct hsa_agent_dispatch_packet_s {
    uint16_t header;
    uint16_t type;
    uint32_t reserved0;
    HSA_PACKET_POINTER(return_address, reserved1);
    uint64_t arg[4];
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_agent_dispatch_packet_t;

typedef struct hsa_barrier_and_packet_s {
    uint16_t header;
    uint16_t reserved0;
    uint32_t reserved1;
    hsa_signal_t dep_signal[5];
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_barrier_and_packet_t;

typedef struct hsa_barrier_or_packet_s {
    uint16_t header;
    uint16_t reserved0;
    uint32_t reserved1;
    hsa_signal_t dep_signal[5];
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_barrier_or_packet_t;

#undef HSA_PACKET_POINTER

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

/* Policies for exceptions; a mask. */
typedef enum { HSA_EXCEPTION_POLICY_BREAK = 1, HSA_EXCEPTION_POLICY_DETECT = 2 } hsa_exception_policy_t;

/*
 * Returns the policies of an agent: none, *mask becomes 0.
 *     INVALID_ARGUMENT    mask is NULL, or profile is none
 *     INVALID_AGENT
 */
HSA_API hsa_status_t hsa_agent_get_exception_policies(hsa_agent_t agent, hsa_profile_t profile, uint16_t *mask);

typedef enum { HSA_FP_TYPE_16 = 1, HSA_FP_TYPE_32 = 2, HSA_FP_TYPE_64 = 4 } hsa_fp_type_t;

typedef enum { HSA_FLUSH_MODE_FTZ = 1, HSA_FLUSH_MODE_NON_FTZ = 2 } hsa_flush_mode_t;

typedef enum { HSA_ROUND_METHOD_SINGLE = 1, HSA_ROUND_METHOD_DOUBLE = 2 } hsa_round_method_t;

/* A kind of wavefront. */
typedef struct hsa_wavefront_s {
    uint64_t handle;
} hsa_wavefront_t;

typedef enum { HSA_WAVEFRONT_INFO_SIZE = 0 } hsa_wavefront_info_t;

/*
 * Would return the instruction set of a name.
 *     INVALID_ARGUMENT   name or isa is NULL
 *     INVALID_ISA_NAME   there is none of this name
 */
HSA_API hsa_status_t hsa_isa_from_name(const char *name, hsa_isa_t *isa);

/*
 * The older form of hsa_isa_get_info_alt(), with an index of the call convention.
 *     INVALID_ARGUMENT   value is NULL
 *     INVALID_ISA
 */
HSA_API hsa_status_t hsa_isa_get_info(hsa_isa_t isa, hsa_isa_info_t attribute, uint32_t index, void *value);

/*
 * Would return the policies for exceptions.
 *     INVALID_ARGUMENT   mask is NULL
 *     INVALID_ISA
 */
HSA_API hsa_status_t hsa_isa_get_exception_policies(hsa_isa_t isa, hsa_profile_t profile, uint16_t *mask);

/*
 * Would return the rounding method.
 *     INVALID_ARGUMENT   round_method is NULL
 *     INVALID_ISA
 */
HSA_API hsa_status_t hsa_isa_get_round_method(hsa_isa_t isa, hsa_fp_type_t fp_type, hsa_flush_mode_t flush_mode,
                                              hsa_round_method_t *round_method);

/*
 * Would call callback for each kind of wavefront, with data.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_ISA
 */
HSA_API hsa_status_t hsa_isa_iterate_wavefronts(hsa_isa_t isa,
                                                hsa_status_t (*callback)(hsa_wavefront_t wavefront, void *data),
                                                void *data);

/*
 * Would return whether code for one runs on the other.
 *     INVALID_ARGUMENT   result is NULL
 *     INVALID_ISA
 */
HSA_API hsa_status_t hsa_isa_compatible(hsa_isa_t code_object_isa, hsa_isa_t agent_isa, bool *result);

/*
 * Would return a property of a kind of wavefront.
 *     INVALID_ARGUMENT    value is NULL
 *     INVALID_WAVEFRONT
 */
HSA_API hsa_status_t hsa_wavefront_get_info(hsa_wavefront_t wavefront, hsa_wavefront_info_t attribute, void *value);

/* ---- code and executables ---------------------------------------------------------------------------------------- */

/* A reader of code. */
typedef struct hsa_code_object_reader_s {
    uint64_t handle;
} hsa_code_object_reader_t;

/* Code that is loaded. */
typedef struct hsa_executable_s {
    uint64_t handle;
} hsa_executable_t;

/* A part of it. */
typedef struct hsa_loaded_code_object_s {
    uint64_t handle;
} hsa_loaded_code_object_t;

/* A kernel or variable in it. */
typedef struct hsa_executable_symbol_s {
    uint64_t handle;
} hsa_executable_symbol_t;

typedef enum { HSA_EXECUTABLE_STATE_UNFROZEN = 0, HSA_EXECUTABLE_STATE_FROZEN = 1 } hsa_executable_state_t;

typedef enum {
    HSA_EXECUTABLE_INFO_PROFILE = 1,
    HSA_EXECUTABLE_INFO_STATE = 2,
    HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 3
} hsa_executable_info_t;

typedef enum {
    HSA_SYMBOL_KIND_VARIABLE = 0,
    HSA_SYMBOL_KIND_KERNEL = 1,
    HSA_SYMBOL_KIND_INDIRECT_FUNCTION = 2
} hsa_symbol_kind_t;

typedef enum { HSA_SYMBOL_LINKAGE_MODULE = 0, HSA_SYMBOL_LINKAGE_PROGRAM = 1 } hsa_symbol_linkage_t;

typedef enum { HSA_VARIABLE_ALLOCATION_AGENT = 0, HSA_VARIABLE_ALLOCATION_PROGRAM = 1 } hsa_variable_allocation_t;

typedef enum { HSA_VARIABLE_SEGMENT_GLOBAL = 0, HSA_VARIABLE_SEGMENT_READONLY = 1 } hsa_variable_segment_t;

typedef enum {
    HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0,
    HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH = 1,
    HSA_EXECUTABLE_SYMBOL_INFO_NAME = 2,
    HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH = 3,
    HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME = 4,
    HSA_EXECUTABLE_SYMBOL_INFO_AGENT = 20,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS = 21,
    HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE = 5,
    HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION = 17,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION = 6,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT = 7,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT = 8,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE = 9,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST = 10,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK = 15,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION = 18,
    HSA_EXECUTABLE_SYMBOL_INFO_INDIRECT_FUNCTION_OBJECT = 23,
    HSA_EXECUTABLE_SYMBOL_INFO_INDIRECT_FUNCTION_CALL_CONVENTION = 16
} hsa_executable_symbol_info_t;

/*
 * Would create a reader of code from a file or from memory.
 *     INVALID_ARGUMENT   a pointer is NULL, size is 0, or file is negative
 *     NOT_SUPPORTED
 */
HSA_API hsa_status_t hsa_code_object_reader_create_from_file(hsa_file_t file,
                                                             hsa_code_object_reader_t *code_object_reader);
HSA_API hsa_status_t hsa_code_object_reader_create_from_memory(const void *code_object, size_t size,
                                                               hsa_code_object_reader_t *code_object_reader);

/*
 * Would destroy one.
 *     INVALID_CODE_OBJECT_READER
 */
HSA_API hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t code_object_reader);

/*
 * Would create an executable, to load code into.
 *     INVALID_ARGUMENT   executable is NULL
 *     NOT_SUPPORTED
 */
HSA_API hsa_status_t hsa_executable_create(hsa_profile_t profile, hsa_executable_state_t executable_state,
                                           const char *options, hsa_executable_t *executable);
HSA_API hsa_status_t hsa_executable_create_alt(hsa_profile_t profile,
                                               hsa_default_float_rounding_mode_t default_float_rounding_mode,
                                               const char *options, hsa_executable_t *executable);

/*
 * Would destroy or freeze one.
 *     INVALID_EXECUTABLE
 */
HSA_API hsa_status_t hsa_executable_destroy(hsa_executable_t executable);
HSA_API hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options);

/*
 * Would load code into one.
 *     INVALID_AGENT
 *     INVALID_EXECUTABLE
 */
HSA_API hsa_status_t hsa_executable_load_program_code_object(hsa_executable_t executable,
                                                             hsa_code_object_reader_t code_object_reader,
                                                             const char *options,
                                                             hsa_loaded_code_object_t *loaded_code_object);
HSA_API hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                           hsa_code_object_reader_t code_object_reader,
                                                           const char *options,
                                                           hsa_loaded_code_object_t *loaded_code_object);

/*
 * Would return a property of one, or validate it.
 *     INVALID_ARGUMENT   value or result is NULL
 *     INVALID_EXECUTABLE
 */
HSA_API hsa_status_t hsa_executable_get_info(hsa_executable_t executable, hsa_executable_info_t attribute, void *value);
HSA_API hsa_status_t hsa_executable_validate(hsa_executable_t executable, uint32_t *result);
HSA_API hsa_status_t hsa_executable_validate_alt(hsa_executable_t executable, const char *options, uint32_t *result);

/*
 * Would define the address of a variable of it.
 *     INVALID_ARGUMENT   variable_name is NULL
 *     INVALID_AGENT
 *     INVALID_EXECUTABLE
 */
HSA_API hsa_status_t hsa_executable_global_variable_define(hsa_executable_t executable, const char *variable_name,
                                                           void *address);
HSA_API hsa_status_t hsa_executable_agent_global_variable_define(hsa_executable_t executable, hsa_agent_t agent,
                                                                 const char *variable_name, void *address);
HSA_API hsa_status_t hsa_executable_readonly_variable_define(hsa_executable_t executable, hsa_agent_t agent,
                                                             const char *variable_name, void *address);

/*
 * Would find a symbol in one.
 *     INVALID_ARGUMENT   symbol_name or symbol is NULL
 *     INVALID_EXECUTABLE
 */
HSA_API hsa_status_t hsa_executable_get_symbol(hsa_executable_t executable, const char *module_name,
                                               const char *symbol_name, hsa_agent_t agent, int32_t call_convention,
                                               hsa_executable_symbol_t *symbol);
HSA_API hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *symbol_name,
                                                       const hsa_agent_t *agent, hsa_executable_symbol_t *symbol);

/*
 * Would call callback for each of its symbols, with data.
 *     INVALID_ARGUMENT   callback is NULL
 *     INVALID_AGENT
 *     INVALID_EXECUTABLE
 */
HSA_API hsa_status_t hsa_executable_iterate_symbols(
    hsa_executable_t executable,
    hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data), void *data);
HSA_API hsa_status_t hsa_executable_iterate_agent_symbols(
    hsa_executable_t executable, hsa_agent_t agent,
    hsa_status_t (*callback)(hsa_executable_t exec, hsa_agent_t agent, hsa_executable_symbol_t symbol, void *data),
    void *data);
HSA_API hsa_status_t hsa_executable_iterate_program_symbols(
    hsa_executable_t executable,
    hsa_status_t (*callback)(hsa_executable_t exec, hsa_executable_symbol_t symbol, void *data), void *data);

/*
 * Would return a property of a symbol.
 *     INVALID_ARGUMENT   value is NULL
 *     INVALID_EXECUTABLE_SYMBOL
 */
HSA_API hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t executable_symbol,
                                                    hsa_executable_symbol_info_t attribute, void *value);

/* ---- code objects, which readers have replaced ------------------------------------------------------------------- */

/* Code that is not loaded. */
typedef struct hsa_code_object_s {
    uint64_t handle;
} hsa_code_object_t;

/* A kernel or variable in it. */
typedef struct hsa_code_symbol_s {
    uint64_t handle;
} hsa_code_symbol_t;

/* An argument of the program's callback. */
typedef struct hsa_callback_data_s {
    uint64_t handle;
} hsa_callback_data_t;

typedef enum { HSA_CODE_OBJECT_TYPE_PROGRAM = 0 } hsa_code_object_type_t;

typedef enum {
    HSA_CODE_OBJECT_INFO_VERSION = 0,
    HSA_CODE_OBJECT_INFO_TYPE = 1,
    HSA_CODE_OBJECT_INFO_ISA = 2,
    HSA_CODE_OBJECT_INFO_MACHINE_MODEL = 3,
    HSA_CODE_OBJECT_INFO_PROFILE = 4,
    HSA_CODE_OBJECT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5
} hsa_code_object_info_t;

typedef enum {
    HSA_CODE_SYMBOL_INFO_TYPE = 0,
    HSA_CODE_SYMBOL_INFO_NAME_LENGTH = 1,
    HSA_CODE_SYMBOL_INFO_NAME = 2,
    HSA_CODE_SYMBOL_INFO_MODULE_NAME_LENGTH = 3,
    HSA_CODE_SYMBOL_INFO_MODULE_NAME = 4,
    HSA_CODE_SYMBOL_INFO_LINKAGE = 5,
    HSA_CODE_SYMBOL_INFO_IS_DEFINITION = 17,
    HSA_CODE_SYMBOL_INFO_VARIABLE_ALLOCATION = 6,
    HSA_CODE_SYMBOL_INFO_VARIABLE_SEGMENT = 7,
    HSA_CODE_SYMBOL_INFO_VARIABLE_ALIGNMENT = 8,
    HSA_CODE_SYMBOL_INFO_VARIABLE_SIZE = 9,
    HSA_CODE_SYMBOL_INFO_VARIABLE_IS_CONST = 10,
    HSA_CODE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11,
    HSA_CODE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12,
    HSA_CODE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13,
    HSA_CODE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14,
    HSA_CODE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK = 15,
    HSA_CODE_SYMBOL_INFO_KERNEL_CALL_CONVENTION = 18,
    HSA_CODE_SYMBOL_INFO_INDIRECT_FUNCTION_CALL_CONVENTION = 16,
    HSA_CODE_SYMBOL_INFO_KERNEL_WAVEFRONT_SIZE = 19
} hsa_code_symbol_info_t;

/*
 * Would load one into an executable.
 *     INVALID_AGENT
 *     INVALID_EXECUTABLE
 */
HSA_API hsa_status_t hsa_executable_load_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                     hsa_code_object_t code_object, const char *options);

/*
 * Would create a code object from bytes.
 *     INVALID_ARGUMENT   a pointer, options excepted, is NULL, or the size is 0
 *     NOT_SUPPORTED
 */
HSA_API hsa_status_t hsa_code_object_deserialize(void *serialized_code_object, size_t serialized_code_object_size,
                                                 const char *options, hsa_code_object_t *code_object);

/*
 * Would serialise one, into memory of alloc_callback, which gets callback_data; or destroy it.
 *     INVALID_CODE_OBJECT
 */
HSA_API hsa_status_t hsa_code_object_serialize(hsa_code_object_t code_object,
                                               hsa_status_t (*alloc_callback)(size_t size, hsa_callback_data_t data,
                                                                              void **address),
                                               hsa_callback_data_t callback_data, const char *options,
                                               void **serialized_code_object, size_t *serialized_code_object_size);
HSA_API hsa_status_t hsa_code_object_destroy(hsa_code_object_t code_object);

/*
 * Would return a property of one, find a symbol in it, or call callback for each symbol, with data.
 *     INVALID_ARGUMENT   value, symbol_name, symbol or callback is NULL
 *     INVALID_CODE_OBJECT
 */
HSA_API hsa_status_t hsa_code_object_get_info(hsa_code_object_t code_object, hsa_code_object_info_t attribute,
                                              void *value);
HSA_API hsa_status_t hsa_code_object_get_symbol(hsa_code_object_t code_object, const char *symbol_name,
                                                hsa_code_symbol_t *symbol);
HSA_API hsa_status_t hsa_code_object_get_symbol_from_name(hsa_code_object_t code_object, const char *module_name,
                                                          const char *symbol_name, hsa_code_symbol_t *symbol);
HSA_API hsa_status_t hsa_code_object_iterate_symbols(hsa_code_object_t code_object,
                                                     hsa_status_t (*callback)(hsa_code_object_t code_object,
                                                                              hsa_code_symbol_t symbol, void *data),
                                                     void *data);

/*
 * Would return a property of a symbol.
 *     INVALID_ARGUMENT   value is NULL
 *     INVALID_CODE_SYMBOL
 */
HSA_API hsa_status_t hsa_code_symbol_get_info(hsa_code_symbol_t code_symbol, hsa_code_symbol_info_t attribute,
                                              void *value);

#ifdef __cplusplus
}
#endif

#endif
