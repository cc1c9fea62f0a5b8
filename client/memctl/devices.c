/* SPDX-License-Identifier: Apache-2.0 */
/* See devices.h. */
#include "memctl/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/udmabuf.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "memctl/cuda.h"
#include "memctl/measure.h"
#include "memctl/service.h"
#include "memctl/text.h"

#define UDMABUF "/dev/udmabuf"
/* The kernel's default is 64 MiB for one of them. */
#define BYTES ((size_t)16 << 20)

/* Memory that is given to a device: the broker's, or else memctl's own. */
struct sample {
    struct memclient_buffer *buf;
    int fd;
    void *map;
    int device; /* udmabuf's */
    void *copy; /* what it is copied to */
};

/* A file of shared memory that cannot shrink, as the broker's are. */
static int devices_make_file(void)
{
    _cleanup_close_ int fd = memfd_create("memctl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, (off_t)BYTES) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return -1;
    return steal_fd(&fd);
}

static bool devices_allocate(struct memclient_context *ctx, struct sample *sample)
{
    struct memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;

    options.pages = MEMCLIENT_PAGES_BASE;
    if (memclient_alloc(ctx, BYTES, &options, &sample->buf) < 0)
        return false;
    return !memclient_export_fd(sample->buf, 0, &sample->fd);
}

/* Where the broker has no room for it, the kernel has. */
static bool devices_make_sample(struct memclient_context *ctx, struct sample *sample)
{
    *sample = (struct sample){.fd = -1, .device = -1, .map = MAP_FAILED, .copy = MAP_FAILED};
    if (!ctx || !devices_allocate(ctx, sample))
        sample->fd = devices_make_file();
    if (sample->fd < 0)
        return false;
    sample->map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sample->fd, 0);
    sample->copy = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sample->map == MAP_FAILED || sample->copy == MAP_FAILED)
        return false;
    memset(sample->map, 1, BYTES);
    memset(sample->copy, 1, BYTES);
    return true;
}

static void devices_drop_sample(struct sample *sample)
{
    if (sample->map != MAP_FAILED)
        (void)munmap(sample->map, BYTES);
    if (sample->copy != MAP_FAILED)
        (void)munmap(sample->copy, BYTES);
    if (sample->fd >= 0)
        (void)close(sample->fd);
    if (sample->device >= 0)
        (void)close(sample->device);
    memclient_buffer_unref(sample->buf);
}

/* ---- udmabuf ----------------------------------------------------------------------------------------------------- */

static int devices_make_dma_buf(const struct sample *sample)
{
    struct udmabuf_create create = {.memfd = (uint32_t)sample->fd, .flags = UDMABUF_FLAGS_CLOEXEC, .size = BYTES};

    return ioctl(sample->device, UDMABUF_CREATE, &create);
}

static double devices_time_dma_buf(void *data)
{
    double begin = measure_now(), end;
    int fd = devices_make_dma_buf(data);

    if (fd < 0)
        return -1;
    end = measure_now();
    (void)close(fd);
    return end - begin;
}

static double devices_time_copy(void *data)
{
    const struct sample *sample = data;
    double begin = measure_now();

    memcpy(sample->copy, sample->map, BYTES);
    return measure_now() - begin;
}

/* Does the broker take it as a device's memory? */
static int devices_adopt(struct memclient_context *ctx, const struct sample *sample)
{
    _cleanup_close_ int fd = devices_make_dma_buf(sample);
    struct memclient_buffer *buf = NULL;
    int r;

    if (fd < 0)
        return -errno;
    r = memclient_adopt_fd(ctx, fd, &buf);
    memclient_buffer_unref(buf);
    return r;
}

/* Does this kernel have it, as a module or built in? */
static bool devices_has_module(void)
{
    static const char *const lists[] = {"modules.dep", "modules.builtin"};
    struct utsname name;

    if (uname(&name) < 0)
        return false;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        _cleanup_fclose_ FILE *file = NULL;
        char path[PATH_MAX], line[4096];

        (void)snprintf(path, sizeof(path), "/lib/modules/%s/%s", name.release, lists[i]);
        file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file))
            if (!strncmp(line, "kernel/drivers/dma-buf/udmabuf.ko", strlen("kernel/drivers/dma-buf/udmabuf.ko")))
                return true;
    }
    return false;
}

/* The line that lets this user open it: as one of its group, where that is not root's. */
static const char *devices_mend_access(char *line, size_t size)
{
    const struct passwd *user = getpwuid(geteuid());
    const struct group *group;
    struct stat st;
    char word[256];

    if (!user || stat(UDMABUF, &st) < 0)
        return NULL;
    group = st.st_gid ? getgrgid(st.st_gid) : NULL;
    (void)service_quote(user->pw_name, word, sizeof(word));
    if (group && st.st_mode & S_IWGRP)
        (void)snprintf(line, size, "usermod -a -G %s %s   # from the next login on", group->gr_name, word);
    else
        (void)snprintf(line, size, "setfacl -m u:%s:rw " UDMABUF, word);
    return line;
}

static void devices_report_no_udmabuf(struct findings *findings, struct sample *sample, int error)
{
    char cost[64] = "", line[512], why[128];
    struct measured_ways copy;
    const char *mend = NULL;

    if (measure_ways(devices_time_copy, devices_time_copy, sample, &copy))
        (void)snprintf(cost, sizeof(cost), ", %.1f ms for each 16M", copy.good * 1e3);
    (void)snprintf(why, sizeof(why), "it cannot be opened: %s", strerror(error));
    if (error != ENOENT) {
        mend = devices_mend_access(line, sizeof(line));
    } else if (devices_has_module()) {
        mend = "modprobe udmabuf && echo udmabuf >/etc/modules-load.d/udmabuf.conf";
        (void)snprintf(why, sizeof(why), "its module is not loaded");
    } else {
        (void)snprintf(why, sizeof(why), "this kernel has no module of it");
    }
    findings_report_mend(findings, UDMABUF, false, (struct remedy){.mend = mend},
                         "%s; what a buffer has gets to a device's driver only by a copy%s", why, cost);
}

static void devices_check_udmabuf(struct findings *findings, struct memclient_context *ctx, struct sample *sample)
{
    struct measured_ways ways;
    double ratio;
    int r = 0;

    sample->device = open(UDMABUF, O_RDWR | O_CLOEXEC);
    if (sample->device < 0) {
        devices_report_no_udmabuf(findings, sample, errno);
        return;
    }
    errno = 0;
    if (!measure_ways(devices_time_dma_buf, devices_time_copy, sample, &ways)) {
        findings_report(findings, UDMABUF, false, "it makes no dma-buf of shared memory: %s", strerror(errno));
        return;
    }
    ratio = ways.other / ways.good;
    if (ctx)
        r = devices_adopt(ctx, sample);
    findings_report_mend(findings, UDMABUF, !r, (struct remedy){.ratio = ratio},
                         "a device's driver can get a buffer as a dma-buf; a copy takes %.1f times as long%s%s", ratio,
                         r     ? "; but the broker adopts none: "
                         : ctx ? ", and the broker adopts one"
                               : "",
                         r ? memclient_error() : "");
}

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

static size_t devices_count(const char *pattern)
{
    glob_t found;
    size_t n = glob(pattern, GLOB_NOSORT, NULL, &found) ? 0 : found.gl_pathc;

    if (n)
        globfree(&found);
    return n;
}

struct adopted {
    uint64_t buffers, bytes;
};

static int devices_count_adopted(const struct memclient_buffer_info *info, void *data)
{
    struct adopted *adopted = data;

    if (info->flags & MEMCLIENT_BUFFER_FOREIGN) {
        adopted->buffers++;
        adopted->bytes += info->length;
    }
    return 0;
}

/* The broker's part: what programs have had it adopt of devices' memory. */
static void devices_say_adopted(struct memclient_context *ctx, char *text, size_t size)
{
    struct adopted adopted = {.buffers = 0};
    char bytes[32];

    *text = '\0';
    if (!ctx || memclient_list_buffers(ctx, devices_count_adopted, &adopted) < 0)
        return;
    format_bytes(adopted.bytes, bytes, sizeof(bytes));
    (void)snprintf(text, size, "; programs have had the broker adopt %" PRIu64 " buffer%s (%s)", adopted.buffers,
                   plural(adopted.buffers), bytes);
}

static void devices_check_cuda(struct findings *findings, const struct sample *sample, const char *adopted)
{
    struct measured_ways registered, copied;
    char why[256], cost[96] = "";

    switch (cuda_register(sample->map, BYTES, &registered, &copied, why, sizeof(why))) {
    case CUDA_REGISTERED:
        if (copied.good > 0)
            (void)snprintf(cost, sizeof(cost), ", and copies without that to the GPU %.1f times",
                           copied.other / copied.good);
        findings_report_mend(findings, "GPU", true, (struct remedy){.ratio = registered.other / registered.good},
                             "a buffer is registered with CUDA's driver; pinned memory of the driver's own takes %.1f "
                             "times as long%s%s",
                             registered.other / registered.good, cost, adopted);
        break;
    case CUDA_NO_LIBRARY:
        findings_report(findings, "GPU", false, "no buffer can be registered with it: %s%s", why, adopted);
        break;
    case CUDA_NOT_READY:
        findings_report_mend(findings, "GPU", false, (struct remedy){.mend = "nvidia-modprobe -c 0 -u"},
                             "CUDA's driver does not begin: %s%s", why, adopted);
        break;
    case CUDA_REFUSED:
        findings_report(findings, "GPU", false, "CUDA's driver registers no buffer: %s%s", why, adopted);
        break;
    }
}

static void devices_check_gpu(struct findings *findings, const struct sample *sample, const char *adopted)
{
    size_t others = devices_count("/dev/dri/renderD*");

    if (devices_count("/dev/nvidia[0-9]*"))
        devices_check_cuda(findings, sample, adopted);
    else if (others)
        findings_report(
            findings, "GPU", true,
            "%zu below /dev/dri, of whose memory the broker adopts dma-bufs; that one registers a buffer is "
            "tried with CUDA only%s",
            others, adopted);
    else
        findings_report(findings, "GPU", true, "there is none, and memoryd needs none%s", adopted);
}

void devices_check(struct findings *findings, struct memclient_context *ctx)
{
    struct sample sample;
    char adopted[96];

    /* before it adopts one of these */
    devices_say_adopted(ctx, adopted, sizeof(adopted));
    if (devices_make_sample(ctx, &sample)) {
        devices_check_udmabuf(findings, ctx, &sample);
        devices_check_gpu(findings, &sample, adopted);
    }
    devices_drop_sample(&sample);
}
