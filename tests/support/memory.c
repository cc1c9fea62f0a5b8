/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/memory.h"

#include "tests/support/settings.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t huge_page_size(void)
{
    long kib = meminfo_kib("Hugepagesize");

    return kib > 0 ? (size_t)kib * KIB : 0;
}

size_t thp_size(void)
{
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
    size_t size = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%zu", &size) != 1)
        size = 0;
    fclose(file);
    return size;
}

int memfd_new(size_t size, unsigned flags)
{
    int fd = memfd_create("memoryd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

    assert_ok(fd);
    assert_ok(ftruncate(fd, (off_t)size));
    return fd;
}

size_t memfd_allocated(int fd)
{
    struct stat st;

    assert_ok(fstat(fd, &st));
    return (size_t)st.st_blocks * 512;
}

int memfd_punch(int fd, size_t offset, size_t size)
{
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}

size_t maps_named(const char *what)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    size_t n = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        n += strstr(line, what) != NULL;
    fclose(file);
    return n;
}

void *map_shared(int fd, size_t size, int protection)
{
    return mmap(NULL, size, protection, MAP_SHARED, fd, 0);
}

char *memfd_mapped(size_t size, unsigned flags, int *fd)
{
    char *map;

    *fd = memfd_new(size, flags);
    map = map_shared(*fd, size, PROT_READ | PROT_WRITE);
    assert_mapped(map);
    return map;
}

char *memfd_mapped_thp(size_t size, int *fd)
{
    char *map;

    settings_shmem_thp();
    *fd = memfd_new(size, 0);
    map = map_aligned(*fd, size, thp_size());
    assert_ok(madvise(map, size, MADV_HUGEPAGE));
    return map;
}

char *map_aligned(int fd, size_t size, size_t alignment)
{
    char *room = mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *start;

    assert_mapped(room);
    start = (char *)(((uintptr_t)room + alignment - 1) & ~(uintptr_t)(alignment - 1));
    munmap(room, size + alignment);
    start = mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_mapped(start);
    assert_int_equal((uintptr_t)start % alignment, 0);
    return start;
}

void map_populate(char *map, size_t size)
{
    int r = madvise(map, size, MADV_POPULATE_WRITE);

    if (r < 0 && errno == EINVAL)
        test_skip("this kernel has no MADV_POPULATE_WRITE (it came with Linux 5.14)");
    assert_ok(r);
}

long meminfo_kib(const char *key)
{
    FILE *file = fopen("/proc/meminfo", "re");
    size_t length = strlen(key);
    char line[128];
    long value = -1;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            value = strtol(line + length + 1, NULL, 10);
            break;
        }
    fclose(file);
    return value;
}

/* A list like "0-1,3". */
static unsigned long node_list(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long mask = 0;
    unsigned first, last;
    char separator;

    if (file == NULL)
        return 1; /* a kernel without NUMA: everything is node 0 */
    while (fscanf(file, "%u", &first) == 1) {
        last = first;
        if (fscanf(file, "%c", &separator) == 1 && separator == '-') {
            if (fscanf(file, "%u", &last) != 1)
                break;
            if (fscanf(file, "%c", &separator) != 1)
                separator = '\n';
        }
        for (unsigned node = first; node <= last && node < NODES_MAX; node++)
            mask |= 1UL << node;
        if (separator != ',')
            break;
    }
    fclose(file);
    return mask;
}

unsigned long nodes_with_memory(void)
{
    return node_list("/sys/devices/system/node/has_memory");
}

unsigned long nodes_with_cpu(void)
{
    return node_list("/sys/devices/system/node/has_cpu");
}

int page_node(const void *address)
{
    void *page = (void *)((uintptr_t)address & ~((uintptr_t)page_size() - 1));
    int status = -ENOENT;

    if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) < 0)
        return -errno;
    return status;
}

void pages_by_node(const void *address, size_t size, size_t step, size_t counts[NODES_MAX])
{
    const volatile char *bytes = address;

    memset(counts, 0, NODES_MAX * sizeof(counts[0]));
    for (size_t i = 0; i < size; i += step) {
        int node;

        (void)bytes[i];
        node = page_node((const char *)address + i);
        assert_in_range(node, 0, NODES_MAX - 1);
        counts[node]++;
    }
}
