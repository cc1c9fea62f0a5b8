/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that need more than one call, or another one on older kernels.
 *
 * What the kernel has is tried each time: a refused call costs less than a microsecond, and nothing has to be shared
 * between threads or reset by tests.
 */

#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/align.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "sys/text.h"

/* Some C libraries that we build with lack them; the kernel's numbers. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* 6.3 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* 5.14 */
#endif
#define HUGE_SHIFT 26

static unsigned fd_end = UINT_MAX;

void sys_set_fd_end(unsigned end)
{
    fd_end = end;
}

int sys_fd_check(int fd)
{
    if ((unsigned)fd < fd_end)
        return 0;
    errno = EMFILE;
    return -1;
}

int sys_memfd_new(const char *name, uint64_t huge)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd;

    if (huge)
        flags |= MFD_HUGETLB | (unsigned)__builtin_ctzll(huge) << HUGE_SHIFT;
    fd = sys->memfd_create(name, flags | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = sys->memfd_create(name, flags);
    return fd;
}

#define FIXED_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

int sys_memfd_new_fixed(const char *name, size_t size)
{
    _cleanup_close_ int fd = sys_memfd_new(name, 0);

    if (fd < 0 || sys->ftruncate(fd, (off_t)size) < 0 || sys->fallocate(fd, 0, 0, (off_t)size) < 0 ||
        sys->add_seals(fd, FIXED_SEALS) < 0)
        return -1;
    return steal_fd(&fd);
}

bool sys_memfd_is_fixed(int fd, size_t size)
{
    struct stat st;

    return !sys->fstat(fd, &st) && st.st_size == (off_t)size && (sys->get_seals(fd) & FIXED_SEALS) == FIXED_SEALS;
}

/*
 * The kernel writes zeros through the mapping, so that a page that is not available is an error of read(), where a
 * store would be a SIGBUS. The pages are new, so zeros are what they hold.
 */
static int populate_by_reading(char *address, size_t length)
{
    _cleanup_close_ int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    if (zero < 0)
        return -1;
    while (length) {
        ssize_t n = sys->read(zero, address, length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 && errno != EFAULT ? errno : ENOMEM;
            return -1;
        }
        address += n;
        length -= (size_t)n;
    }
    return 0;
}

/* Reading brings back what was swapped out, and makes no page where there is none. */
static bool has_page(int fd, size_t offset, void *map)
{
    unsigned char resident = 0;
    char byte;

    return pread(fd, &byte, 1, (off_t)offset) == 1 && mincore(map, 1, &resident) == 0 && resident & 1;
}

/* By the futex operation that changes a word; nobody waits for it. */
int sys_change_word(int fd, size_t offset, enum sys_change how, unsigned operand)
{
    static const int operations[] = {[SYS_SET] = FUTEX_OP_SET, [SYS_ADD] = FUTEX_OP_ADD, [SYS_SET_BITS] = FUTEX_OP_OR};
    size_t within = offset % page_size(), length = within + sizeof(uint32_t);
    char *map = sys->mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - within));
    long r = -1;
    int err;

    if (map == MAP_FAILED)
        return -1;
    if (has_page(fd, offset, map))
        r = syscall(SYS_futex, map + within, FUTEX_WAKE_OP, 0, NULL, map + within,
                    FUTEX_OP(operations[how], (int)operand, FUTEX_OP_CMP_EQ, 0));
    else
        errno = ENODATA;
    err = errno;
    (void)sys->munmap(map, length);
    errno = err;
    return r < 0 ? -1 : 0;
}

int sys_populate(void *address, size_t length)
{
    int r;

    do
        r = sys->madvise(address, length, MADV_POPULATE_WRITE);
    while (r < 0 && (errno == EINTR || errno == EAGAIN));
    if (r < 0 && errno == EINVAL)
        return populate_by_reading(address, length);
    if (r < 0 && errno == EFAULT)
        errno = ENOMEM; /* a store would have been a SIGBUS */
    return r;
}

uint64_t sys_huge_mapped(const void *address)
{
    _cleanup_fclose_ FILE *file = fopen("/proc/self/smaps", "re");
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    char start[40];
    uint64_t kib;
    bool found = false;

    if (!file)
        return 0;
    (void)snprintf(start, sizeof(start), "%08lx-", (unsigned long)(uintptr_t)address);
    while (getline(&line, &size, file) > 0) {
        if (!found)
            found = !strncmp(line, start, strlen(start));
        else if (text_number_after(line, "ShmemPmdMapped:", &kib))
            return kib * 1024;
    }
    return 0;
}

void *sys_map_aligned(int fd, uint64_t offset, size_t length, size_t alignment, int protection, int flags)
{
    size_t reserved;
    size_t odd = (size_t)(offset & (alignment - 1));
    char *whole;
    char *start;
    void *map;
    off_t off;

    if (!checked_off(offset, &off) || !checked_add_size(length, 2 * alignment, &reserved)) {
        errno = EOVERFLOW;
        return MAP_FAILED;
    }
    whole = sys->mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED)
        return MAP_FAILED;
    start = whole + (align_up((uintptr_t)whole, alignment) - (uintptr_t)whole) + odd;
    map = sys->mmap(start, length, protection, MAP_SHARED | MAP_FIXED | flags, fd, off);
    if (map == MAP_FAILED) {
        int saved = errno;

        (void)sys->munmap(whole, reserved);
        errno = saved;
        return MAP_FAILED;
    }
    if (start > whole)
        (void)sys->munmap(whole, (size_t)(start - whole));
    if (start + length < whole + reserved)
        (void)sys->munmap(start + length, (size_t)(whole + reserved - (start + length)));
    return map;
}
