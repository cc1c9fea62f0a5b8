/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker's start with what another one left, damaged: any byte of the ledger, its header and its journal, and the
 * descriptors that the keeper hands over.
 *
 * What is damaged was recorded once: a broker made some of everything and was killed. The input says what happens to a
 * copy of that, eight bytes for each damage. Whatever it is, the next broker starts or says why not, its sums agree,
 * it does what is asked of it and ends in order, and no descriptor is left.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ledger/ledger.h"
#include "log/log.h"
#include "mem/rights.h"
#include "sys/sys.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/keeper.h"
#include "tests/unit/broker/steps.h"

#define DAMAGE_SIZE    8
#define DAMAGES_MAX    16
#define JOURNAL_OFFSET ((off_t)LEDGER_EXTENTS_MAX * (off_t)LEDGER_EXTENT_SIZE)
#define JOURNAL_PART   ((size_t)16384)
#define RECORDS_MAX    256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct kept_things recorded;

struct world {
    int fd; /* of the copied ledger */
    char *extents;
    size_t size;
    char *journal;
    struct record *records[RECORDS_MAX];
    uint32_t sizes[RECORDS_MAX];
    unsigned n_records;
};

/* What is said about damages is of no use a thousand times. */
void __wrap_log_line(enum log_level level, const char *format, ...);
void __wrap_log_line(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

#define require(expression)                              \
    do {                                                 \
        if (!(expression)) {                             \
            fprintf(stderr, "false: %s\n", #expression); \
            abort();                                     \
        }                                                \
    } while (0)

/* ---- a copy ------------------------------------------------------------------------------------------------------ */

static void record_once(void)
{
    if (recorded.n)
        return;
    (void)steps_set_up(NULL);
    steps_run_full();
    recorded = kept_things;
    kept_things.n = 0;
}

static int copy_memory(int fd)
{
    char name[] = "fuzz-ledger";
    int copy = sys_memfd_new(name, 0);
    struct stat st;
    off_t end;

    require(copy >= 0 && fstat(fd, &st) == 0 && fchmod(copy, 0600) == 0 && ftruncate(copy, st.st_size) == 0);
    /* only what has pages */
    for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0; at = end) {
        off_t offset = at;

        end = lseek(fd, at, SEEK_HOLE);
        require(end > at);
        require(lseek(copy, at, SEEK_SET) == at && lseek(fd, at, SEEK_SET) == at);
        while (offset < end) {
            ssize_t n = copy_file_range(fd, NULL, copy, NULL, (size_t)(end - offset), 0);

            require(n > 0);
            offset += n;
        }
    }
    require(fcntl(copy, F_ADD_SEALS, fcntl(fd, F_GET_SEALS)) == 0);
    return copy;
}

static void find_records(struct world *world)
{
    const struct ledger_header *header = (const struct ledger_header *)(const void *)world->extents;

    for (uint32_t extent = 1; extent < world->size / LEDGER_EXTENT_SIZE; extent++) {
        uint32_t record_size = header->record_sizes[header->kinds[extent]];

        for (size_t at = 0; record_size && at + record_size <= LEDGER_EXTENT_SIZE; at += record_size) {
            struct record *record = (struct record *)(void *)(world->extents + extent * LEDGER_EXTENT_SIZE + at);

            if (record->state == RECORD_FREE || world->n_records == RECORDS_MAX)
                continue;
            world->sizes[world->n_records] = record_size;
            world->records[world->n_records++] = record;
        }
    }
}

/* A buffer's copy is another file. */
static void tell_record(struct world *world, uint64_t id, int fd)
{
    struct stat st;

    require(fstat(fd, &st) == 0);
    for (unsigned i = 0; i < world->n_records; i++)
        if (world->records[i]->kind == RECORD_BUFFER && world->records[i]->id == id) {
            struct buffer_record *record = (struct buffer_record *)(void *)world->records[i];

            record->inode = st.st_ino;
            record->watch = -1;
        }
}

static void begin(struct world *world)
{
    const struct ledger_header *header;

    *world = (struct world){.fd = -1};
    for (size_t i = 0; i < recorded.n; i++)
        if (recorded.fds[i].key.kind == KEEPER_LEDGER)
            world->fd = copy_memory(recorded.fds[i].fd);
    world->journal = mmap(NULL, JOURNAL_PART, PROT_READ | PROT_WRITE, MAP_SHARED, world->fd, JOURNAL_OFFSET);
    require(world->journal != MAP_FAILED);
    header = mmap(NULL, sizeof(*header), PROT_READ, MAP_SHARED, world->fd, 0);
    require(header != MAP_FAILED);
    world->size = header->n_extents * (size_t)LEDGER_EXTENT_SIZE;
    require(munmap((void *)(uintptr_t)header, sizeof(*header)) == 0);
    world->extents = mmap(NULL, world->size, PROT_READ | PROT_WRITE, MAP_SHARED, world->fd, 0);
    require(world->extents != MAP_FAILED);
    find_records(world);
    kept_hold(KEEPER_LEDGER, 0, world->fd);
    for (size_t i = 0; i < recorded.n; i++) {
        const struct inherited_fd *inherited = &recorded.fds[i];
        int fd = -1;

        if (inherited->key.kind == KEEPER_BUFFER) {
            fd = copy_memory(inherited->fd);
            tell_record(world, inherited->key.id, fd);
        } else if (inherited->key.kind == KEEPER_SESSION) {
            fd = fcntl(inherited->fd, F_DUPFD_CLOEXEC, 0);
        }
        if (fd >= 0)
            kept_hold((enum keeper_kind)inherited->key.kind, inherited->key.id, fd);
    }
}

/* ---- damages ----------------------------------------------------------------------------------------------------- */

static const uint64_t special[] = {0, 1, 2, 3, 0xff, 4095, 4096, 65535, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};

static void damage_thing(const uint8_t *how)
{
    struct inherited_fd *a = &kept_things.fds[how[1] % kept_things.n];
    struct inherited_fd *b = &kept_things.fds[how[2] % kept_things.n];
    int fd = -1;

    switch (how[3] % 6) {
    case 0:
        fd = a->fd;
        a->fd = b->fd;
        b->fd = fd;
        return;
    case 1: /* what is no memory */
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        break;
    case 2: /* another one's memory, twice */
        fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 0);
        break;
    case 3:
        fd = sys_memfd_new("foreign", 0);
        require(fd >= 0 && ftruncate(fd, how[4] * 4096) == 0);
        break;
    case 4:
        kept_drop((enum keeper_kind)a->key.kind, a->key.id);
        return;
    case 5:
        a->key.id ^= how[4];
        return;
    }
    (void)fd_close(a->fd);
    a->fd = fd;
}

static void damage(struct world *world, const uint8_t *how)
{
    struct ledger_header *header = (struct ledger_header *)(void *)world->extents;
    struct record *record = world->records[how[1] % world->n_records];
    uint32_t size = world->sizes[how[1] % world->n_records];
    uint64_t value = special[how[4] % (sizeof(special) / sizeof(*special))];
    size_t at = how[2] | (size_t)how[3] << 8;

    switch (how[0] % 8) {
    case 0: /* a bit of a record */
        ((char *)record)[at % size] ^= (char)(1 << how[4] % 8);
        break;
    case 1: /* a number of a record */
        memcpy((char *)record + at % (size - 3) / 4 * 4, &value, how[5] % 2 && at % (size - 3) + 8 < size ? 8 : 4);
        break;
    case 2: /* its state */
        record->state = how[4] % 6;
        break;
    case 3: /* two of one kind are one */
        if (world->sizes[how[2] % world->n_records] == size)
            memmove(record, world->records[how[2] % world->n_records], size);
        break;
    case 4: /* the header, with or without its checksum's part */
        at = how[5] % 2 ? at % sizeof(*header) : offsetof(struct ledger_header, next_id) + at % 64;
        world->extents[at] = (char)how[4];
        break;
    case 5: /* a change that was not committed */
        header->journal = how[4] * 8 + how[5] % 2;
        for (size_t i = 0; i < 64; i++)
            world->journal[(at + i) % JOURNAL_PART] = (char)how[6 + i % 2];
        break;
    case 6:
        memcpy(world->journal + at % 512, &value, sizeof(value));
        header->journal = 8 * (1 + how[5]);
        break;
    case 7:
        if (kept_things.n)
            damage_thing(how);
        break;
    }
}

/* ---- the next broker --------------------------------------------------------------------------------------------- */

static uint32_t faults(uint64_t session)
{
    struct check_result result;

    require(CALL(session, op_check, &result) == 0);
    for (uint32_t i = 0; result.faults && i < result.n_sentences; i++)
        fprintf(stderr, "check: %s\n", result.sentences[i]);
    return result.faults;
}

static void live(void)
{
    uint64_t session = host_session_of(11, getpid(), getuid()), buffer;

    require(session != 0);
    require(host_alloc(session, 4096, 0, &buffer) == 0);
    require(faults(session) == 0);
    require(host_release(session, buffer) == 0);
    require(faults(session) == 0);
}

static void unmap(const struct world *world)
{
    require(munmap(world->extents, world->size) == 0 && munmap(world->journal, JOURNAL_PART) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;
    unsigned before;

    record_once();
    before = fd_count();
    host_reset(1);
    begin(&world);
    for (size_t i = 0; i < size / DAMAGE_SIZE && i < DAMAGES_MAX; i++)
        damage(&world, data + i * DAMAGE_SIZE);
    unmap(&world);
    generation_adopt();
    if (host_status == 0)
        live();
    else
        require(host_status == BROKER_E_LEDGER);
    generation_finish();
    require(fd_count() == before);
    return 0;
}
