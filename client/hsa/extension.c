/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for extensions. There is none: AMD's additions to HSA's core do not count as extensions in this sense. */
#include <memclient/hsa/hsa/hsa_ext_amd.h>

#include "hsa/runtime.h"

/* clang-format off */
#define EXTENSION(name) {name, #name}
/* clang-format on */

static const struct {
    uint16_t number;
    const char *name;
} extensions[] = {
    EXTENSION(HSA_EXTENSION_FINALIZER),
    EXTENSION(HSA_EXTENSION_IMAGES),
    EXTENSION(HSA_EXTENSION_PERFORMANCE_COUNTERS),
    EXTENSION(HSA_EXTENSION_PROFILING_EVENTS),
    EXTENSION(HSA_EXTENSION_AMD_PROFILER),
    EXTENSION(HSA_EXTENSION_AMD_LOADER),
    EXTENSION(HSA_EXTENSION_AMD_AQLPROFILE),
    EXTENSION(HSA_EXTENSION_AMD_PC_SAMPLING),
};

/* NULL if there is no such extension. */
static const char *extension_name(uint16_t extension)
{
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        if (extensions[i].number == extension)
            return extensions[i].name;
    return NULL;
}

hsa_status_t hsa_extension_get_name(uint16_t extension, const char **name)
{
    hsa_status_t status = check(name && extension_name(extension), HSA_STATUS_SUCCESS);

    if (!status)
        *name = extension_name(extension);
    return status;
}

hsa_status_t hsa_system_extension_supported(uint16_t extension, uint16_t version_major, uint16_t version_minor,
                                            bool *result)
{
    return hsa_system_major_extension_supported(extension, version_major, &version_minor, result);
}

hsa_status_t hsa_system_major_extension_supported(uint16_t extension, uint16_t version_major, uint16_t *version_minor,
                                                  bool *result)
{
    hsa_status_t status = check(version_minor && result && extension_name(extension), HSA_STATUS_SUCCESS);

    if (!status)
        *result = false;
    return status;
}

hsa_status_t hsa_agent_extension_supported(uint16_t extension, hsa_agent_t agent, uint16_t version_major,
                                           uint16_t version_minor, bool *result)
{
    return hsa_agent_major_extension_supported(extension, agent, version_major, &version_minor, result);
}

hsa_status_t hsa_agent_major_extension_supported(uint16_t extension, hsa_agent_t agent, uint16_t version_major,
                                                 uint16_t *version_minor, bool *result)
{
    hsa_status_t status = check_agent(version_minor && result && extension_name(extension), agent, HSA_STATUS_SUCCESS);

    if (!status)
        *result = false;
    return status;
}

hsa_status_t hsa_system_get_extension_table(uint16_t extension, uint16_t version_major, uint16_t version_minor,
                                            void *table)
{
    return hsa_system_get_major_extension_table(extension, version_major, 1, table);
}

hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t version_major, size_t table_length,
                                                  void *table)
{
    return check(table && table_length && extension_name(extension), HSA_STATUS_ERROR);
}

hsa_status_t hsa_agent_get_exception_policies(hsa_agent_t agent, hsa_profile_t profile, uint16_t *mask)
{
    hsa_status_t status =
        check_agent(mask && (profile == HSA_PROFILE_BASE || profile == HSA_PROFILE_FULL), agent, HSA_STATUS_SUCCESS);

    if (!status)
        *mask = 0;
    return status;
}
