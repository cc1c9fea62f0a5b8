/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of the system, and the texts of statuses.
 *
 * The timestamp is CLOCK_MONOTONIC in nanoseconds, which is the same in all processes of the machine.
 */
#include <memclient/hsa/hsa/hsa.h>
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "base/clock.h"
#include "hsa/info.h"
#include "hsa/runtime.h"

static hsa_status_t system_put_timestamp(const void *system, void *value)
{
    uint64_t now = clock_now_ns();

    memcpy(value, &now, sizeof(now));
    return HSA_STATUS_SUCCESS;
}

static const struct info system_info[] = {
    INFO_FUNCTION(HSA_SYSTEM_INFO_TIMESTAMP, system_put_timestamp),
    INFO_CONSTANT(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, uint64_t, NSEC_PER_SEC),
    INFO_CONSTANT(HSA_SYSTEM_INFO_VERSION_MAJOR, uint16_t, 1),
    INFO_CONSTANT(HSA_SYSTEM_INFO_VERSION_MINOR, uint16_t, 1),
    INFO_CONSTANT(HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT, uint64_t, UINT64_MAX),
    INFO_CONSTANT(HSA_SYSTEM_INFO_ENDIANNESS, hsa_endianness_t,
                  __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? HSA_ENDIANNESS_LITTLE : HSA_ENDIANNESS_BIG),
    INFO_CONSTANT(HSA_SYSTEM_INFO_MACHINE_MODEL, hsa_machine_model_t, MACHINE_MODEL),
    INFO_CONSTANT(HSA_SYSTEM_INFO_EXTENSIONS, uint8_t[128], 0),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, const char *, PACKAGE_STRING),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED, bool, false),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_XNACK_ENABLED, bool, false),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, bool, true),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT, bool, true),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED, bool, true),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED, bool, true),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR, uint16_t, HSA_AMD_INTERFACE_VERSION_MAJOR),
    INFO_CONSTANT(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR, uint16_t, HSA_AMD_INTERFACE_VERSION_MINOR),
};

hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void *value)
{
    return INFO_PUT(system_info, attribute, topology(), HSA_STATUS_ERROR, value);
}

/* clang-format off */
#define MEANS(name, sentence) {HSA_STATUS_##name, "HSA_STATUS_" #name ": " sentence}
/* clang-format on */

static const struct {
    uint32_t status;
    const char *text;
} meanings[] = {
    MEANS(SUCCESS, "The function has been executed."),
    MEANS(INFO_BREAK, "A callback ended the iteration before all elements were seen."),
    MEANS(ERROR, "Something failed for which there is no other status."),
    MEANS(ERROR_INVALID_ARGUMENT, "An argument has a value that the function does not accept."),
    MEANS(ERROR_INVALID_QUEUE_CREATION, "No such queue can be created."),
    MEANS(ERROR_INVALID_ALLOCATION, "There is no such allocation, or such memory cannot be allocated there."),
    MEANS(ERROR_INVALID_AGENT, "There is no such agent."),
    MEANS(ERROR_INVALID_REGION, "There is no such region."),
    MEANS(ERROR_INVALID_SIGNAL, "There is no such signal."),
    MEANS(ERROR_INVALID_QUEUE, "There is no such queue."),
    MEANS(ERROR_OUT_OF_RESOURCES, "Memory, descriptors or addresses are used up, or the broker cannot be reached."),
    MEANS(ERROR_INVALID_PACKET_FORMAT, "The packet is malformed."),
    MEANS(ERROR_RESOURCE_FREE, "It cannot be released, since it is in use or was never held."),
    MEANS(ERROR_NOT_INITIALIZED, "The runtime is not initialised; call hsa_init() first."),
    MEANS(ERROR_REFCOUNT_OVERFLOW, "The runtime has been initialised too often."),
    MEANS(ERROR_INCOMPATIBLE_ARGUMENTS, "The arguments contradict each other."),
    MEANS(ERROR_INVALID_INDEX, "The index is out of range."),
    MEANS(ERROR_INVALID_ISA, "There is no such instruction set."),
    MEANS(ERROR_INVALID_CODE_OBJECT, "There is no such code object."),
    MEANS(ERROR_INVALID_EXECUTABLE, "There is no such executable."),
    MEANS(ERROR_FROZEN_EXECUTABLE, "The executable is frozen."),
    MEANS(ERROR_INVALID_SYMBOL_NAME, "There is no symbol of this name."),
    MEANS(ERROR_VARIABLE_ALREADY_DEFINED, "The variable is already defined."),
    MEANS(ERROR_VARIABLE_UNDEFINED, "The variable is not defined."),
    MEANS(ERROR_EXCEPTION, "A kernel raised an exception."),
    MEANS(ERROR_INVALID_ISA_NAME, "There is no instruction set of this name."),
    MEANS(ERROR_INVALID_CODE_SYMBOL, "There is no such code object symbol."),
    MEANS(ERROR_INVALID_EXECUTABLE_SYMBOL, "There is no such executable symbol."),
    MEANS(ERROR_INVALID_FILE, "The file descriptor is not valid."),
    MEANS(ERROR_INVALID_CODE_OBJECT_READER, "There is no such code object reader."),
    MEANS(ERROR_INVALID_CACHE, "There is no such cache."),
    MEANS(ERROR_INVALID_WAVEFRONT, "There is no such wavefront."),
    MEANS(ERROR_INVALID_SIGNAL_GROUP, "There is no such signal group."),
    MEANS(ERROR_INVALID_RUNTIME_STATE, "The state of the runtime does not allow this."),
    MEANS(ERROR_FATAL, "The runtime or a queue cannot continue."),
    MEANS(ERROR_INVALID_MEMORY_POOL, "There is no such memory pool."),
    MEANS(ERROR_MEMORY_APERTURE_VIOLATION, "An address is outside of all memory apertures."),
    MEANS(ERROR_ILLEGAL_INSTRUCTION, "A kernel has an instruction that does not exist."),
    MEANS(ERROR_MEMORY_FAULT, "An agent accessed memory without permission, or memory that does not exist."),
    MEANS(CU_MASK_REDUCED, "The mask of compute units was reduced."),
    MEANS(ERROR_OUT_OF_REGISTERS, "The kernel needs more registers than are available."),
    MEANS(ERROR_RESOURCE_BUSY, "Others are using it."),
    MEANS(ERROR_NOT_SUPPORTED, "This is not supported here."),
};

hsa_status_t hsa_status_string(hsa_status_t status, const char **status_string)
{
    if (!status_string)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].status == (uint32_t)status) {
            *status_string = meanings[i].text;
            return HSA_STATUS_SUCCESS;
        }
    return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
