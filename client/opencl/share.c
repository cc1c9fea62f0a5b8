/* SPDX-License-Identifier: Apache-2.0 */
/* Shares allocations with other processes: the buffer that one lies in, and the part of it. */
#include <errno.h>

#include <memclient/svm.h>
#include <memclient/umf/umf.h>
#include <memclient/umf/umf/providers/provider_memoryd.h>

#include "opencl/error.h"
#include "opencl/svm.h"
#include "opencl/table.h"

static int share_find_buffer(const void *owner, const void *ptr, struct memclient_buffer **buf, uint64_t *offset,
                             uint64_t *length)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_buffer *found;
    struct entry entry;
    int r;

    if (!table_find(ptr, owner, &entry))
        return svm_fail(-EFAULT, "no allocation has %p in it", ptr);
    r = svm_native(memclient_address_query((const void *)entry.start, &info));
    if (r)
        return r;
    if (entry.start - info.offset != (uintptr_t)memclient_buffer_home(info.buffer))
        return svm_fail(-EADDRNOTAVAIL, "the buffer is not at its home, so other processes would have it elsewhere");
    /* tells the provider that others may have the buffer */
    if (entry.import || umfMemorydGetBuffer((const void *)entry.start, &found) != UMF_RESULT_SUCCESS)
        found = memclient_buffer_ref(info.buffer);
    *buf = found;
    *offset = info.offset;
    *length = entry.size;
    return 0;
}

int svm_export_fd(const void *owner, const void *ptr, unsigned rights, int *fd, uint64_t *offset, uint64_t *length)
{
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    uint64_t at, bytes;
    int r = share_find_buffer(owner, ptr, &buf, &at, &bytes);

    if (!r)
        r = svm_native(memclient_export_fd(buf, rights, fd));
    if (r)
        return r;
    *offset = at;
    *length = bytes;
    return 0;
}

int svm_share(const void *owner, const void *ptr, const struct memclient_share_options *options,
              struct memclient_token *token, uint64_t *offset, uint64_t *length)
{
    struct memclient_share_options like_fd = MEMCLIENT_SHARE_OPTIONS_INIT;
    _cleanup_(memclient_buffer_unrefp) struct memclient_buffer *buf = NULL;
    uint64_t at, bytes;
    int r = share_find_buffer(owner, ptr, &buf, &at, &bytes);

    if (r)
        return r;
    /* an importer of a descriptor may share on, and so may the opener of a token, unless the terms say otherwise */
    like_fd.rights = (memclient_buffer_rights(buf) & (MEMCLIENT_READ | MEMCLIENT_WRITE)) | MEMCLIENT_SHARE;
    r = svm_native(memclient_share(buf, options ? options : &like_fd, token));
    if (r)
        return r;
    *offset = at;
    *length = bytes;
    return 0;
}

int memclient_svm_buffer(const void *ptr, struct memclient_buffer **buf, uint64_t *offset, uint64_t *length)
{
    if (!buf || !offset || !length)
        return svm_fail(-EINVAL, "buf, offset or length is NULL");
    return share_find_buffer(NULL, ptr, buf, offset, length);
}

int memclient_svm_export_fd(const void *ptr, unsigned rights, int *fd, uint64_t *offset, uint64_t *length)
{
    if (!fd || !offset || !length)
        return svm_fail(-EINVAL, "fd, offset or length is NULL");
    return svm_export_fd(NULL, ptr, rights, fd, offset, length);
}

int memclient_svm_share(const void *ptr, const struct memclient_share_options *options, struct memclient_token *token,
                        uint64_t *offset, uint64_t *length)
{
    if (!token || !offset || !length)
        return svm_fail(-EINVAL, "token, offset or length is NULL");
    return svm_share(NULL, ptr, options, token, offset, length);
}
