/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules by which the document of clSVMAlloc() refuses allocations. Nothing else in the tree knows them. They are
 * about numbers alone, not about where devices come from or what memory is left.
 */
#include <errno.h>
#include <inttypes.h>

#include <memclient/svm.h>

#include "base/align.h"
#include "opencl/error.h"

#define ACCESS_FLAGS (MEMCLIENT_SVM_READ_WRITE | MEMCLIENT_SVM_WRITE_ONLY | MEMCLIENT_SVM_READ_ONLY)
#define ALL_FLAGS    (ACCESS_FLAGS | MEMCLIENT_SVM_FINE_GRAIN_BUFFER | MEMCLIENT_SVM_ATOMICS)

/* An allocation that all devices have to allow. */
struct request {
    const struct memclient_svm_device *devices;
    size_t n;
    uint64_t flags;
    uint64_t size;
    uint32_t alignment;
};

static int refuse_devices(const struct request *request)
{
    for (size_t i = 0; i < request->n; i++)
        if (request->devices[i].capabilities)
            return 0;
    return svm_fail(-EINVAL, "no device has shared virtual memory: the context needs another device");
}

static int refuse_unknown_flags(const struct request *request)
{
    uint64_t unknown = request->flags & ~(uint64_t)ALL_FLAGS;

    return unknown ? svm_fail(-EINVAL, "flags 0x%" PRIx64 " are not those of clSVMAlloc(): leave 0x%" PRIx64 " out",
                              request->flags, unknown)
                   : 0;
}

static int refuse_access(const struct request *request)
{
    uint64_t access = request->flags & ACCESS_FLAGS;

    return access & (access - 1)
               ? svm_fail(-EINVAL, "READ_WRITE, WRITE_ONLY and READ_ONLY exclude each other: give one of them, or none")
               : 0;
}

static int refuse_atomics_alone(const struct request *request)
{
    return request->flags & MEMCLIENT_SVM_ATOMICS && !(request->flags & MEMCLIENT_SVM_FINE_GRAIN_BUFFER)
               ? svm_fail(-EINVAL, "SVM_ATOMICS is valid only with SVM_FINE_GRAIN_BUFFER: give both")
               : 0;
}

static int refuse_incapable(const struct request *request, uint64_t flag, uint64_t capability, const char *name)
{
    if (!(request->flags & flag))
        return 0;
    for (size_t i = 0; i < request->n; i++)
        if (!(request->devices[i].capabilities & capability))
            return svm_fail(-EINVAL, "device %zu has no %s: leave that flag out", i, name);
    return 0;
}

static int refuse_fine_grain(const struct request *request)
{
    return refuse_incapable(request, MEMCLIENT_SVM_FINE_GRAIN_BUFFER, MEMCLIENT_SVM_CAN_FINE_GRAIN_BUFFER,
                            "SVM_FINE_GRAIN_BUFFER");
}

static int refuse_atomics(const struct request *request)
{
    return refuse_incapable(request, MEMCLIENT_SVM_ATOMICS, MEMCLIENT_SVM_CAN_ATOMICS, "SVM_ATOMICS");
}

static int refuse_size(const struct request *request)
{
    if (!request->size)
        return svm_fail(-EINVAL, "size 0: ask for a byte at least");
    for (size_t i = 0; i < request->n; i++)
        if (request->size > request->devices[i].max_alloc_size)
            return svm_fail(-EINVAL, "%" PRIu64 " bytes are more than device %zu allocates at once, %" PRIu64,
                            request->size, i, request->devices[i].max_alloc_size);
    return 0;
}

static int refuse_alignment(const struct request *request)
{
    if (request->alignment && !is_power_of_two(request->alignment))
        return svm_fail(-EINVAL, "alignment %" PRIu32 " is no power of two", request->alignment);
    for (size_t i = 0; i < request->n; i++)
        if (request->alignment > request->devices[i].largest_type)
            return svm_fail(-EINVAL, "alignment %" PRIu32 " is more than device %zu's largest type has, %" PRIu32,
                            request->alignment, i, request->devices[i].largest_type);
    return 0;
}

static int refuse_endian(const struct request *request)
{
    for (size_t i = 0; i < request->n; i++)
        if (request->devices[i].other_endian)
            return svm_fail(-EINVAL, "device %zu has the other byte order than the host: leave it out", i);
    return 0;
}

int memclient_svm_check(size_t n, const struct memclient_svm_device *devices, uint64_t flags, uint64_t size,
                        uint32_t alignment, enum memclient_svm_rule *broken)
{
    static int (*const rules[])(const struct request *request) = {
        [MEMCLIENT_SVM_RULE_DEVICES] = refuse_devices,
        [MEMCLIENT_SVM_RULE_UNKNOWN_FLAGS] = refuse_unknown_flags,
        [MEMCLIENT_SVM_RULE_ACCESS] = refuse_access,
        [MEMCLIENT_SVM_RULE_ATOMICS_ALONE] = refuse_atomics_alone,
        [MEMCLIENT_SVM_RULE_FINE_GRAIN] = refuse_fine_grain,
        [MEMCLIENT_SVM_RULE_ATOMICS] = refuse_atomics,
        [MEMCLIENT_SVM_RULE_SIZE] = refuse_size,
        [MEMCLIENT_SVM_RULE_ALIGNMENT] = refuse_alignment,
        [MEMCLIENT_SVM_RULE_ENDIAN] = refuse_endian,
    };
    const struct request request = {devices, devices ? n : 0, flags, size, alignment};

    for (unsigned rule = MEMCLIENT_SVM_RULE_DEVICES; rule < sizeof(rules) / sizeof(rules[0]); rule++) {
        int r = rules[rule](&request);

        if (!r)
            continue;
        if (broken)
            *broken = (enum memclient_svm_rule)rule;
        return r;
    }
    return 0;
}
