/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fuse.h"

#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE 65536

struct fuse_counts {
    unsigned flushes; /* atomic, as are the next */
    unsigned reads;
    unsigned writes;
};

/* Where the server has its file, in its own view of the file system. */
static void fuse_path(char path[static PATH_MAX], const char *root, pid_t server)
{
    const char *folder = getenv("TMPDIR");

    (void)snprintf(path, PATH_MAX, "%s%s/fuse.%d", root, folder ? folder : "/tmp", (int)server);
}

static void fuse_reply(int device, uint64_t unique, int error, const void *data, size_t size)
{
    char packet[256];
    const struct fuse_out_header head = {.len = (uint32_t)(sizeof(head) + size), .error = -error, .unique = unique};

    memcpy(packet, &head, sizeof(head));
    if (size)
        memcpy(packet + sizeof(head), data, size);
    /* who asked may have given up */
    CHECK(write(device, packet, head.len) == (ssize_t)head.len || errno == ENOENT);
}

static void fuse_answer(int device, const struct fuse_in_header *head, const struct fuse *fuse)
{
    struct fuse_counts *counts = fuse->counts;
    const struct fuse_attr attributes = {
        .ino = FUSE_ROOT_ID, .size = FILE_SIZE, .mode = S_IFREG | 0666, .nlink = 1, .blksize = 4096};
    const struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
                                       .minor = 31,
                                       .max_background = 16,
                                       .max_write = 4096,
                                       .time_gran = 1,
                                       .flags = fuse->caches ? FUSE_WRITEBACK_CACHE : 0};
    const struct fuse_attr_out attr = {.attr_valid = 3600, .attr = attributes};
    const struct fuse_open_out opened = {.fh = 1};

    switch (head->opcode) {
    case FUSE_INIT:
        fuse_reply(device, head->unique, 0, &init, sizeof(init));
        break;
    case FUSE_GETATTR:
        fuse_reply(device, head->unique, 0, &attr, sizeof(attr));
        break;
    case FUSE_OPEN:
        fuse_reply(device, head->unique, 0, &opened, sizeof(opened));
        break;
    case FUSE_FLUSH: /* not answered unless it is what is written that hangs */
        if (fuse->caches)
            fuse_reply(device, head->unique, 0, NULL, 0);
        else
            __atomic_add_fetch(&counts->flushes, 1, __ATOMIC_SEQ_CST);
        break;
    case FUSE_WRITE: /* never answered */
    case FUSE_SETATTR:
        __atomic_add_fetch(&counts->writes, 1, __ATOMIC_SEQ_CST);
        break;
    case FUSE_READ: /* likewise */
        __atomic_add_fetch(&counts->reads, 1, __ATOMIC_SEQ_CST);
        break;
    case FUSE_RELEASE:
        fuse_reply(device, head->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        fuse_reply(device, head->unique, ENOSYS, NULL, 0);
        break;
    }
}

static void fuse_serve(int channel, void *context)
{
    struct fuse *fuse = context;
    static char request[1 << 18];
    struct pollfd polls[2] = {{.events = POLLIN}, {.fd = channel}};
    char options[128];
    char path[PATH_MAX];
    int device;
    int file;

    fuse_path(path, "", getpid());
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        child_skip("there is no /dev/fuse here, or no right to mount");
    file = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(file >= 0 && close(file) == 0);
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=100666,user_id=0,group_id=0,allow_other", device);
    if (mount("test", path, "fuse", 0, options) < 0)
        child_skip("FUSE cannot be mounted here");
    tell(channel);
    polls[0].fd = device;
    /* the test program, when it dies, hangs in closing the file itself, and is not dead before that is over; but its
     * end of the channel has a lower number */
    while (poll(polls, 2, -1) > 0 && !(polls[1].revents & POLLHUP)) {
        ssize_t n = polls[0].revents ? read(device, request, sizeof(request)) : 0;

        if (n >= (ssize_t)sizeof(struct fuse_in_header))
            fuse_answer(device, (const struct fuse_in_header *)(const void *)request, fuse);
        else if (n < 0 && errno != EINTR && errno != ENOENT && errno != EAGAIN)
            break;
    }
}

void fuse_start(struct fuse *fuse)
{
    test_needs_root();
    fuse->counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_mapped(fuse->counts);
    child_start(&fuse->server, fuse_serve, fuse);
    if (!(wait_for_events(fuse->server.channel, POLLIN, PATIENCE_MS) & POLLIN)) {
        child_finish(&fuse->server); /* it said why */
        fail_msg("the server of the file system ended");
    }
    child_hear(&fuse->server);
}

int fuse_open(const struct fuse *fuse)
{
    char path[PATH_MAX];
    struct stat st;
    char root[32];
    int fd;

    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)fuse->server.pid);
    fuse_path(path, root, fuse->server.pid);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        (void)fstat(fd, &st); /* or the kernel does not know that there is something to read */
    return fd;
}

void fuse_write(int fd)
{
    static const char page[4096]; /* whole, or the kernel would read the rest of it first */

    CHECK(write(fd, page, sizeof(page)) == sizeof(page));
}

unsigned fuse_flushes(const struct fuse *fuse)
{
    return __atomic_load_n(&fuse->counts->flushes, __ATOMIC_SEQ_CST);
}

unsigned fuse_writes(const struct fuse *fuse)
{
    return __atomic_load_n(&fuse->counts->writes, __ATOMIC_SEQ_CST);
}

unsigned fuse_reads(const struct fuse *fuse)
{
    return __atomic_load_n(&fuse->counts->reads, __ATOMIC_SEQ_CST);
}

void fuse_stop(struct fuse *fuse)
{
    if (fuse->server.channel >= 0)
        child_kill(&fuse->server);
    if (fuse->counts)
        (void)munmap(fuse->counts, 4096);
    *fuse = FUSE_NULL;
}
