/* SPDX-License-Identifier: Apache-2.0 */
/* See keeper.h. */
#include "tests/unit/broker/keeper.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/link.h"
#include "keeper/packet.h"
#include "ledger/ledger.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"

struct kept_things kept_things;
pid_t keeper_test;

static char *mapped;
#define MAPPED ((size_t)(64 * LEDGER_EXTENT_SIZE))

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

struct inherited_fd *kept_find(enum keeper_kind kind, uint64_t id)
{
    for (size_t i = 0; i < kept_things.n; i++)
        if (kept_things.fds[i].key.kind == (uint32_t)kind && kept_things.fds[i].key.id == id)
            return &kept_things.fds[i];
    return NULL;
}

void kept_drop(enum keeper_kind kind, uint64_t id)
{
    struct inherited_fd *inherited = kept_find(kind, id);

    if (!inherited)
        return;
    (void)fd_close(inherited->fd);
    *inherited = kept_things.fds[--kept_things.n];
}

void kept_hold(enum keeper_kind kind, uint64_t id, int fd)
{
    kept_drop(kind, id);
    assert_true(kept_things.n < KEPT_MAX);
    kept_things.fds[kept_things.n++] = (struct inherited_fd){.key = KEEPER_KEY(kind, id), .fd = fd};
}

void generation_forget(void)
{
    while (kept_things.n)
        kept_drop((enum keeper_kind)kept_things.fds[0].key.kind, kept_things.fds[0].key.id);
}

/* ---- a broker in a child ----------------------------------------------------------------------------------------- */

static void (*child_body_)(void);
static int child_socket;

static void broker_in_child(void **state)
{
    assert_int_equal(keeper_link_new(&host.keeper, child_socket), 0);
    host.inherited = kept_things.fds;
    host.n_inherited = kept_things.n;
    host_start();
    child_body_();
    assert_ok(raise(SIGKILL));
}

static void run_child(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(broker_in_child)};

    assert_ok(prctl(PR_SET_PDEATHSIG, SIGKILL));
    /* only what is wrong, which goes to the standard error */
    assert_non_null(freopen("/dev/null", "w", stdout));
    /* it returns only if something was wrong, and has said what */
    (void)cmocka_run_group_tests_name("child", tests, NULL, NULL);
    _exit(1);
}

static bool serve(int socket)
{
    struct packet packet;
    struct fdset fds = FDSET_NULL;
    int r = packet_receive(socket, &packet, &fds);

    /* what comes behind a reset, or nothing yet; until the end */
    if (r)
        return recv(socket, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
    for (unsigned i = 0; i < packet.n; i++) {
        const struct keeper_key *key = &packet.keys[i];

        if (packet.type == PACKET_HOLD)
            kept_hold((enum keeper_kind)key->kind, key->id, fdset_steal(&fds, i));
        else
            kept_drop((enum keeper_kind)key->kind, key->id);
    }
    fdset_deinit(&fds);
    if (packet.type == PACKET_DROP_ASK) {
        packet.type = PACKET_DROPPED;
        (void)packet_send(socket, &packet, NULL);
    }
    return true;
}

void generation_run(void (*body)(void))
{
    int ends[2], status;
    pid_t pid;

    keeper_test = getpid();
    assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
    child_body_ = body;
    pid = fork();
    assert_ok(pid);
    if (!pid) {
        (void)fd_close(ends[0]);
        child_socket = ends[1];
        run_child();
    }
    (void)fd_close(ends[1]);
    do
        assert_true(wait_readable(ends[0]));
    while (serve(ends[0]));
    (void)fd_close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail_msg("the broker in the child ended with wait status %x", (unsigned)status);
}

/* ---- the next one ------------------------------------------------------------------------------------------------ */

void generation_adopt(void)
{
    host.keeper = NULL;
    host.inherited = kept_things.fds;
    host.n_inherited = kept_things.n;
    host_try_start();
}

void generation_finish(void)
{
    host_stop();
    for (size_t i = 0; i < kept_things.n; i++)
        (void)fd_close(kept_things.fds[i].fd);
    kept_things.n = 0;
}

/* ---- the ledger -------------------------------------------------------------------------------------------------- */

struct ledger_header *kept_header(void)
{
    if (!mapped) {
        void *p = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, kept_find(KEEPER_LEDGER, 0)->fd, 0);

        assert_ptr_not_equal(p, MAP_FAILED);
        mapped = p;
    }
    return (struct ledger_header *)(void *)mapped;
}

void *kept_record(enum record_kind kind, unsigned n)
{
    struct ledger_header *header = kept_header();
    size_t size = header->record_sizes[kind];

    for (uint32_t extent = 1; extent < header->n_extents && extent < MAPPED / LEDGER_EXTENT_SIZE; extent++) {
        for (size_t at = 0; header->kinds[extent] == kind && at + size <= LEDGER_EXTENT_SIZE; at += size) {
            struct record *record = (struct record *)(void *)(mapped + extent * LEDGER_EXTENT_SIZE + at);

            if (record->state == RECORD_LIVE && !n--)
                return record;
        }
    }
    return NULL;
}

void kept_header_written(void)
{
    struct ledger_header *header = kept_header();
    const unsigned char *bytes = (const unsigned char *)header;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < offsetof(struct ledger_header, checksum); i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    header->checksum = sum;
}

void kept_unmap(void)
{
    if (mapped)
        assert_ok(munmap(mapped, MAPPED));
    mapped = NULL;
}
