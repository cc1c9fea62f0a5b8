/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A foreign buffer of a real dma-buf, which is what drivers of devices hand out. Needs /dev/udmabuf, which makes them
 * of memory files; the virtual machines' kernels have it.
 */
#include "tests/integration/clients.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"

/* Made by the kernel of a memory file, as a driver makes one of its device's memory. */
static int dma_buf(size_t size)
{
    _cleanup_close_ int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    _cleanup_close_ int memory = memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct udmabuf_create create = {.flags = UDMABUF_FLAGS_CLOEXEC, .size = size};
    int fd;

    if (device < 0)
        test_skip("no dma-buf can be made here: /dev/udmabuf: %s", strerror(errno));
    assert_ok(ftruncate(memory, (off_t)size));
    assert_int_equal(pwrite(memory, "frame 1", 8, 0), 8);
    assert_ok(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK));
    create.memfd = (uint32_t)memory;
    fd = ioctl(device, UDMABUF_CREATE, &create);
    assert_ok(fd);
    return fd;
}

static void a_dma_buf_goes_from_process_to_process(void **state)
{
    size_t size = 4 * page_size();
    int fd = dma_buf(size); /* first of all: where there are none there is no test */
    struct broker_process *broker = broker_for_test(NULL);
    struct memclient_context *ctx = broker_connect(broker), *other = broker_connect(broker);
    struct memclient_buffer *buf, *there;
    struct memclient_token token;
    char *p;

    assert_done(memclient_adopt_fd(ctx, fd, &buf));
    close(fd);
    assert_int_equal(memclient_buffer_size(buf), size);
    assert_done(memclient_share(buf, NULL, &token));
    broker_kill_child(broker);
    assert_done(memclient_open_token(other, &token, MEMCLIENT_ACCEPT_FOREIGN, &there));
    memclient_buffer_unref(buf);
    memclient_context_close(ctx);
    assert_done(memclient_export_fd(there, 0, &fd));
    p = map_shared(fd, size, PROT_READ | PROT_WRITE);
    assert_mapped(p);
    assert_string_equal(p, "frame 1");
    munmap(p, size);
    close(fd);
    memclient_buffer_unref(there);
    memclient_context_close(other);
    broker_finish(broker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        at_broker(a_dma_buf_goes_from_process_to_process),
    };

    return test_run(tests, NULL, NULL);
}
