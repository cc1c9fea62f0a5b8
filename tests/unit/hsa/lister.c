/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists what HSA says of the machine: the system, its agents, their pools, caches and instruction sets, with all that
 * the listing tools of other HSA runtimes ask for. As those do, it ends with an error at the first status that is not
 * SUCCESS.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#define CHECK(call) check((call), #call)

#define ASK(type, get_info, of, attribute)                       \
    __extension__({                                              \
        type value_;                                             \
        check(get_info((of), (attribute), &value_), #attribute); \
        value_;                                                  \
    })
#define AGENT(type, attribute) ASK(type, hsa_agent_get_info, agent, HSA_AGENT_INFO_##attribute)
#define AMD_AGENT(type, attribute) \
    ASK(type, hsa_agent_get_info, agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_##attribute)
#define POOL(type, attribute)  ASK(type, hsa_amd_memory_pool_get_info, pool, HSA_AMD_MEMORY_POOL_INFO_##attribute)
#define CACHE(type, attribute) ASK(type, hsa_cache_get_info, cache, HSA_CACHE_INFO_##attribute)

static hsa_agent_t all[64];
static unsigned n_all;

static void check(hsa_status_t status, const char *what)
{
    const char *text = "no status";

    if (status == HSA_STATUS_SUCCESS)
        return;
    (void)hsa_status_string(status, &text);
    fprintf(stderr, "%s: 0x%x, %s\n", what, (unsigned)status, text);
    exit(1);
}

static void show_system(void)
{
    uint16_t major, minor, ext_major, ext_minor;
    uint64_t now, frequency, longest;
    hsa_endianness_t endianness;
    hsa_machine_model_t model;
    const char *build;
    bool mwaitx, dmabuf, vmem, xnack, svm, by_default;
    uint8_t extensions[128];

    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MINOR, &minor));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR, &ext_major));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR, &ext_minor));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT, &longest));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_ENDIANNESS, &endianness));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_MACHINE_MODEL, &model));
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_EXTENSIONS, extensions));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, &build));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, &svm));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT, &by_default));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_MWAITX_ENABLED, &mwaitx));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED, &dmabuf));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED, &vmem));
    CHECK(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_XNACK_ENABLED, &xnack));
    printf("runtime %u.%u extensions %u.%u build %s\n", major, minor, ext_major, ext_minor, build);
    printf("timestamp %" PRIu64 " frequency %" PRIu64 " longest wait %" PRIu64 "\n", now, frequency, longest);
    printf("model %s endianness %s\n", model == HSA_MACHINE_MODEL_LARGE ? "large" : "small",
           endianness == HSA_ENDIANNESS_LITTLE ? "little" : "big");
    printf("mwaitx %d dmabuf %d vmem %d xnack %d svm %d accessible %d\n", mwaitx, dmabuf, vmem, xnack, svm, by_default);
}

static void show_links(hsa_amd_memory_pool_t pool)
{
    for (unsigned i = 0; i < n_all; i++) {
        hsa_amd_memory_pool_access_t access;
        uint32_t hops;

        CHECK(hsa_amd_agent_memory_pool_get_info(all[i], pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access));
        CHECK(hsa_amd_agent_memory_pool_get_info(all[i], pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS, &hops));
        printf("    agent %u: access %d hops %u", i, (int)access, hops);
        if (hops) {
            hsa_amd_memory_pool_link_info_t *links = calloc(hops, sizeof(*links));

            if (!links)
                exit(1);
            CHECK(hsa_amd_agent_memory_pool_get_info(all[i], pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO, links));
            for (uint32_t k = 0; k < hops; k++)
                printf(" distance %u coherent %d", links[k].numa_distance, links[k].coherent_support);
            free(links);
        }
        printf("\n");
    }
}

static hsa_status_t show_pool(hsa_amd_memory_pool_t pool, void *data)
{
    (void)data;
    printf("  pool segment %d flags %u size %zu allocatable %d granule %zu alignment %zu for all %d max %zu "
           "location %d recommended %zu\n",
           (int)POOL(hsa_amd_segment_t, SEGMENT), POOL(uint32_t, GLOBAL_FLAGS), POOL(size_t, SIZE),
           POOL(bool, RUNTIME_ALLOC_ALLOWED), POOL(size_t, RUNTIME_ALLOC_GRANULE),
           POOL(size_t, RUNTIME_ALLOC_ALIGNMENT), POOL(bool, ACCESSIBLE_BY_ALL), POOL(size_t, ALLOC_MAX_SIZE),
           (int)POOL(hsa_amd_memory_pool_location_t, LOCATION), POOL(size_t, RUNTIME_ALLOC_REC_GRANULE));
    show_links(pool);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t show_cache(hsa_cache_t cache, void *data)
{
    char *name = malloc(CACHE(uint32_t, NAME_LENGTH) + 1);

    (void)data;
    if (!name)
        exit(1);
    CHECK(hsa_cache_get_info(cache, HSA_CACHE_INFO_NAME, name));
    printf("  cache %s level %u bytes %u\n", name, CACHE(uint8_t, LEVEL), CACHE(uint32_t, SIZE));
    free(name);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t show_isa(hsa_isa_t isa, void *data)
{
    char name[1024];

    (void)data;
    CHECK(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, name));
    printf("  isa %s\n", name);
    return HSA_STATUS_SUCCESS;
}

static void show_device(hsa_agent_t agent)
{
    char uuid[21], product[64];
    uint8_t properties[8];

    CHECK(hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_UUID, uuid));
    CHECK(hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_PRODUCT_NAME, product));
    CHECK(hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES, properties));
    printf("  uuid %s product %s apu %d\n", uuid, product, hsa_flag_isset64(properties, 0));
    printf("  cacheline %u units %u MHz %u driver node %u watch points %u\n", AMD_AGENT(uint32_t, CACHELINE_SIZE),
           AMD_AGENT(uint32_t, COMPUTE_UNIT_COUNT), AMD_AGENT(uint32_t, MAX_CLOCK_FREQUENCY),
           AMD_AGENT(uint32_t, DRIVER_NODE_ID), AMD_AGENT(uint32_t, MAX_ADDRESS_WATCH_POINTS));
    printf("  chip %u bdf %u revision %u waves %u simds %u engines %u arrays %u host access %d\n",
           AMD_AGENT(uint32_t, CHIP_ID), AMD_AGENT(uint32_t, BDFID), AMD_AGENT(uint32_t, ASIC_REVISION),
           AMD_AGENT(uint32_t, MAX_WAVES_PER_CU), AMD_AGENT(uint32_t, NUM_SIMDS_PER_CU),
           AMD_AGENT(uint32_t, NUM_SHADER_ENGINES), AMD_AGENT(uint32_t, NUM_SHADER_ARRAYS_PER_SE),
           AMD_AGENT(bool, SVM_DIRECT_HOST_ACCESS));
    printf("  free %" PRIu64 "\n", AMD_AGENT(uint64_t, MEMORY_AVAIL));
}

static hsa_status_t show_agent(hsa_agent_t agent, void *data)
{
    char name[64], vendor[64];
    uint32_t caches[4];

    (void)data;
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name));
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_VENDOR_NAME, vendor));
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_CACHE_SIZE, caches));
    printf("node %u device %d name %s vendor %s\n", AGENT(uint32_t, NODE), (int)AGENT(hsa_device_type_t, DEVICE), name,
           vendor);
    printf("  feature %u model %d profile %d rounding %d queues %u %u %u %u\n", AGENT(uint32_t, FEATURE),
           (int)AGENT(hsa_machine_model_t, MACHINE_MODEL), (int)AGENT(hsa_profile_t, PROFILE),
           (int)AGENT(hsa_default_float_rounding_mode_t, DEFAULT_FLOAT_ROUNDING_MODE), AGENT(uint32_t, QUEUES_MAX),
           AGENT(uint32_t, QUEUE_MIN_SIZE), AGENT(uint32_t, QUEUE_MAX_SIZE), AGENT(hsa_queue_type32_t, QUEUE_TYPE));
    printf("  caches %u %u %u %u\n", caches[0], caches[1], caches[2], caches[3]);
    show_device(agent);
    CHECK(hsa_amd_agent_iterate_memory_pools(agent, show_pool, NULL));
    CHECK(hsa_agent_iterate_caches(agent, show_cache, NULL));
    CHECK(hsa_agent_iterate_isas(agent, show_isa, NULL));
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t note_agent(hsa_agent_t agent, void *data)
{
    (void)data;
    if (n_all < sizeof(all) / sizeof(all[0]))
        all[n_all++] = agent;
    return HSA_STATUS_SUCCESS;
}

int main(void)
{
    CHECK(hsa_init());
    show_system();
    CHECK(hsa_iterate_agents(note_agent, NULL));
    CHECK(hsa_iterate_agents(show_agent, NULL));
    CHECK(hsa_shut_down());
    return 0;
}
