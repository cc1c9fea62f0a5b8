/* SPDX-License-Identifier: Apache-2.0 */
/* See stall.h. */
#include "tests/integration/hostile/stall.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/memory.h"
#include "tests/support/wait.h"

void stall_prepare(struct stall *stall)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

    stall->pages = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (stall->pages < 0 || ioctl(stall->pages, UFFDIO_API, &api) < 0)
        child_skip("there is no userfaultfd for faults of the kernel here");
    stall->page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stall->page != MAP_FAILED);
    range.range = (struct uffdio_range){.start = (uintptr_t)stall->page, .len = page_size()};
    CHECK(ioctl(stall->pages, UFFDIO_REGISTER, &range) == 0);
}

static void *stall_write(void *argument)
{
    struct stall *stall = argument;

    (void)!pwrite(stall->fd, stall->page, 8, stall->at);
    return NULL;
}

void stall_begin(struct stall *stall, int fd, off_t at)
{
    struct uffd_msg message;

    CHECK(madvise(stall->page, page_size(), MADV_DONTNEED) == 0);
    stall->fd = fd;
    stall->at = at;
    CHECK(pthread_create(&stall->thread, NULL, stall_write, stall) == 0);
    CHECK(wait_readable(stall->pages));
    CHECK(read(stall->pages, &message, sizeof(message)) == sizeof(message));
    CHECK(message.event == UFFD_EVENT_PAGEFAULT);
}

void stall_end(struct stall *stall)
{
    struct uffdio_zeropage zero = {.range = {.start = (uintptr_t)stall->page, .len = page_size()}};

    CHECK(ioctl(stall->pages, UFFDIO_ZEROPAGE, &zero) == 0);
    CHECK(pthread_join(stall->thread, NULL) == 0);
}
