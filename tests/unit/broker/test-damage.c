/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker makes of a ledger and of descriptors that are damaged: it leaves them alone, goes on with the rest, and
 * the sums are exact.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ledger/ledger.h"
#include "mem/buffer.h"
#include "mem/rights.h"
#include "sys/sys.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"
#include "tests/unit/broker/host.h"
#include "tests/unit/broker/keeper.h"
#include "tests/unit/broker/steps.h"

/* ---- damaged records --------------------------------------------------------------------------------------------- */

#define FOREIGN            (BUFFER_FOREIGN | BUFFER_NO_ADDRESS)
#define FIELD(type, field) offsetof(struct type, field), sizeof(((struct type *)NULL)->field)

static const struct {
    const char *what;
    enum record_kind kind;
    unsigned n;
    size_t offset, size;
    uint64_t value;
    unsigned quarantined;
} damages[] = {
    {"session's user", RECORD_SESSION, 1, FIELD(session_record, uid), UINT32_MAX, 1},
    {"session's process", RECORD_SESSION, 1, FIELD(session_record, pid), 0, 1},
    {"session's id", RECORD_SESSION, 1, offsetof(struct record, id), 8, UINT64_MAX, 1},
    {"session's state", RECORD_SESSION, 1, offsetof(struct record, state), 4, 77, 1},
    {"session's kind", RECORD_SESSION, 1, offsetof(struct record, kind), 4, RECORD_NAME, 1},
    {"buffer's size", RECORD_BUFFER, 0, FIELD(buffer_record, size), UINT64_MAX, 1},
    {"buffer's bytes", RECORD_BUFFER, 0, FIELD(buffer_record, bytes), 4097, 1},
    {"buffer's bytes, more than there are", RECORD_BUFFER, 0, FIELD(buffer_record, bytes), 1 << 20, 1},
    {"buffer's plan", RECORD_BUFFER, 0, FIELD(buffer_record, plan), 1, 1},
    {"buffer's inode", RECORD_BUFFER, 0, FIELD(buffer_record, inode), 1, 1},
    {"buffer's address, outside", RECORD_BUFFER, 0, FIELD(buffer_record, address), 4096, 1},
    {"buffer's address, crooked", RECORD_BUFFER, 0, FIELD(buffer_record, address), UINT64_C(0x566000000001), 1},
    {"buffer's device", RECORD_BUFFER, 0, FIELD(buffer_record, device), UINT32_MAX, 1},
    {"buffer's flags", RECORD_BUFFER, 0, FIELD(buffer_record, flags), UINT32_MAX, 1},
    {"buffer's flags, as if published", RECORD_BUFFER, 0, FIELD(buffer_record, flags), BUFFER_PUBLISHED, 1},
    {"buffer's payer", RECORD_BUFFER, 0, FIELD(buffer_record, charged_uid), UINT32_MAX, 1},
    {"buffer's pool", RECORD_BUFFER, 0, FIELD(buffer_record, pool), UINT16_MAX, 1},
    {"buffer's node", RECORD_BUFFER, 0, FIELD(buffer_record, node), 200, 1},
    {"buffer's nodes", RECORD_BUFFER, 0, FIELD(buffer_record, n_nodes), 0, 1},
    {"buffer's placement", RECORD_BUFFER, 0, FIELD(buffer_record, placement), 99, 1},
    {"buffer's state", RECORD_BUFFER, 0, FIELD(buffer_record, state), BUFFER_COMMITTING, 1},
    {"buffer's pages", RECORD_BUFFER, 0, FIELD(buffer_record, pages), PAGES_HUGETLB, 1},
    {"buffer's granule", RECORD_BUFFER, 0, FIELD(buffer_record, granule_shift), 70, 1},
    {"buffer's granule, and a multiple of 64", RECORD_BUFFER, 0, FIELD(buffer_record, granule_shift), 128 + 12, 1},
    {"buffer's watch", RECORD_BUFFER, 0, FIELD(buffer_record, watch), UINT32_MAX - 1, 1},
    {"buffer's session", RECORD_BUFFER, 0, FIELD(buffer_record, charged_session), 12345, 0},
    {"buffer's flags, as if foreign", RECORD_BUFFER, 0, FIELD(buffer_record, flags), FOREIGN, 1},
    {"foreign buffer's flags", RECORD_BUFFER, 4, FIELD(buffer_record, flags), FOREIGN | BUFFER_LAZY, 1},
    {"foreign buffer's flags, as if not", RECORD_BUFFER, 4, FIELD(buffer_record, flags), BUFFER_NO_ADDRESS, 1},
    {"foreign buffer's size", RECORD_BUFFER, 4, FIELD(buffer_record, size), 0, 1},
    {"foreign buffer's bytes", RECORD_BUFFER, 4, FIELD(buffer_record, bytes), 4096, 1},
    {"foreign buffer's inode", RECORD_BUFFER, 4, FIELD(buffer_record, inode), 1, 1},
    {"foreign buffer's device", RECORD_BUFFER, 4, FIELD(buffer_record, device), UINT32_MAX, 1},
    {"foreign buffer's plan", RECORD_BUFFER, 4, FIELD(buffer_record, plan), 1, 1},
    {"foreign buffer's nodes", RECORD_BUFFER, 4, FIELD(buffer_record, n_nodes), 1, 1},
    {"foreign buffer's address", RECORD_BUFFER, 4, FIELD(buffer_record, address), UINT64_C(0x566000000000), 1},
    {"foreign buffer's state", RECORD_BUFFER, 4, FIELD(buffer_record, state), BUFFER_DETACHED, 1},
    {"foreign buffer's watch", RECORD_BUFFER, 4, FIELD(buffer_record, watch), 1, 1},
    {"foreign buffer's granule", RECORD_BUFFER, 4, FIELD(buffer_record, granule_shift), 70, 1},
    {"foreign buffer's payer", RECORD_BUFFER, 4, FIELD(buffer_record, charged_uid), UINT32_MAX, 1},
    {"foreign buffer's pool", RECORD_BUFFER, 4, FIELD(buffer_record, pool), UINT16_MAX, 0},
    {"hold's references", RECORD_HOLD, 0, FIELD(hold_record, refs), 0, 1},
    {"hold's rights", RECORD_HOLD, 0, FIELD(hold_record, rights), 0xff, 1},
    {"hold's kind", RECORD_HOLD, 0, FIELD(hold_record, kind), 99, 1},
    {"hold's session", RECORD_HOLD, 0, FIELD(hold_record, session), 12345, 0},
    {"hold's buffer", RECORD_HOLD, 0, FIELD(hold_record, buffer), 12345, 0},
    {"token's buffer", RECORD_TOKEN, 0, FIELD(token_record, buffer), 12345, 0},
    {"token's rights", RECORD_TOKEN, 0, FIELD(token_record, rights), UINT32_MAX, 1},
    {"token's flags", RECORD_TOKEN, 0, FIELD(token_record, flags), UINT32_MAX, 1},
    {"token's uses", RECORD_TOKEN, 0, FIELD(token_record, uses_left), UINT32_MAX, 1},
    {"token's maker", RECORD_TOKEN, 0, FIELD(token_record, maker_uid), UINT32_MAX, 1},
    {"token's session", RECORD_TOKEN, 0, FIELD(token_record, session), 12345, 0},
    {"name's buffer", RECORD_NAME, 0, FIELD(name_record, buffer), 12345, 0},
    {"name's length", RECORD_NAME, 0, FIELD(name_record, length), 0, 1},
    {"name's length, beyond", RECORD_NAME, 0, FIELD(name_record, length), 300, 1},
    {"name's path", RECORD_NAME, 0, offsetof(struct name_record, path), 8, UINT64_C(0x0101010101010101), 1},
    {"name's policy", RECORD_NAME, 0, FIELD(name_record, policy), 99, 1},
    {"name's rights", RECORD_NAME, 0, FIELD(name_record, other_rights), 99, 1},
    {"name's session", RECORD_NAME, 1, FIELD(name_record, session), 12345, 0},
    {"reservation's address", RECORD_RESERVATION, 0, FIELD(reservation_record, address), 4096, 1},
    {"reservation's size", RECORD_RESERVATION, 0, FIELD(reservation_record, size), 0, 1},
    {"reservation's buffers", RECORD_RESERVATION, 0, FIELD(reservation_record, use), 99, 0},
    {"reservation's buffers, as if occupied", RECORD_RESERVATION, 0, FIELD(reservation_record, use), 0x80000001, 1},
    {"reservation's session", RECORD_RESERVATION, 0, FIELD(reservation_record, session), 12345, 0},
    {"pool's number", RECORD_POOL, 0, FIELD(pool_record, number), UINT32_MAX, 1},
    {"pool's name", RECORD_POOL, 0, offsetof(struct pool_record, name), 1, 0, 1},
    {"pool's nodes", RECORD_POOL, 0, FIELD(pool_record, n_nodes), 0, 1},
    {"pool's node", RECORD_POOL, 0, offsetof(struct pool_record, node), 1, 7, 0},
    {"pool's page size", RECORD_POOL, 0, FIELD(pool_record, page_size), 3, 1},
    {"pool's committer", RECORD_POOL, 0, FIELD(pool_record, committer), 3, 1},
};

static void damaged_records_are_left_alone(void **state)
{
    for (unsigned i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        struct status_info status;
        uint64_t used;
        char *record;

        (void)steps_set_up(NULL);
        steps_run_full();
        record = kept_record(damages[i].kind, damages[i].n);
        assert_non_null(record);
        memcpy(record + damages[i].offset, &damages[i].value, damages[i].size);
        kept_unmap();
        generation_adopt();
        assert_int_equal(host_status, 0);
        host_settle();
        steps_look(&status, &used);
        if (status.quarantined != damages[i].quarantined)
            fail_msg("%s: %llu records in quarantine", damages[i].what, (unsigned long long)status.quarantined);
        assert_int_equal(host_check(shared->observer), 0);
        generation_finish();
    }
}

/* Else its end would never be seen. */
static void a_wrong_number_of_a_watch_is_found_out_I4(void **state)
{
    struct buffer_record *record;
    uint64_t used;

    steps_run_full();
    record = kept_record(RECORD_BUFFER, 1);
    assert_int_equal(record->head.id, shared->buffers[1]);
    record->watch = 4711;
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_true(HOST_UNTIL(record->watch != 4711));
    used = host_used() - record->bytes;
    assert_int_equal(host_release(shared->sessions[0], shared->buffers[1]), 0);
    assert_int_equal(CALL(shared->sessions[0], op_name_unbind, "a/for"), 0);
    assert_true(HOST_UNTIL(host_used() == used));
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

/* ---- wrong descriptors ------------------------------------------------------------------------------------------- */

static int other_memory(size_t size, int seals)
{
    int fd = sys_memfd_new("memoryd-wrong", 0);

    assert_ok(fd);
    assert_ok(sys->fchmod(fd, 0600));
    assert_ok(sys->ftruncate(fd, (off_t)size));
    assert_ok(sys->add_seals(fd, seals));
    return fd;
}

static void lose(void)
{
    kept_drop(KEEPER_BUFFER, shared->buffers[0]);
}

static void swap(void)
{
    struct inherited_fd *a = kept_find(KEEPER_BUFFER, shared->buffers[0]);
    struct inherited_fd *b = kept_find(KEEPER_BUFFER, shared->buffers[1]);
    int fd = a->fd;

    a->fd = b->fd;
    b->fd = fd;
}

static void exchange(void)
{
    kept_hold(KEEPER_BUFFER, shared->buffers[0], other_memory(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
}

static void exchange_for_a_smaller_one(void)
{
    kept_hold(KEEPER_BUFFER, shared->buffers[0], other_memory(1, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
}

static void exchange_for_one_without_seals(void)
{
    kept_hold(KEEPER_BUFFER, shared->buffers[0], other_memory(4096, 0));
}

static void exchange_for_no_memory(void)
{
    kept_hold(KEEPER_BUFFER, shared->buffers[0], open("/dev/null", O_RDWR | O_CLOEXEC));
}

/* Other memory than was adopted, and something that would never have been. */
static void exchange_the_foreign_one(void)
{
    kept_hold(KEEPER_BUFFER, shared->buffers[4], other_memory(4096, 0));
}

static void exchange_the_foreign_one_for_no_memory(void)
{
    kept_hold(KEEPER_BUFFER, shared->buffers[4], open("/dev/null", O_RDWR | O_CLOEXEC));
}

/* As its maker may at any time. */
static void empty_the_foreign_one(void)
{
    assert_ok(ftruncate(kept_find(KEEPER_BUFFER, shared->buffers[4])->fd, 0));
}

static void lose_the_foreign_one(void)
{
    kept_drop(KEEPER_BUFFER, shared->buffers[4]);
}

static void add_more(void)
{
    kept_hold(KEEPER_BUFFER, 999, other_memory(1 << 20, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    kept_hold(KEEPER_SESSION, 998, open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void lose_process(void)
{
    kept_drop(KEEPER_SESSION, shared->sessions[0]);
}

static void exchange_process(void)
{
    kept_hold(KEEPER_SESSION, shared->sessions[0], open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void exchange_for_another_process(void)
{
    kept_hold(KEEPER_SESSION, shared->sessions[0], sys->pidfd_open(1, 0));
}

static void lose_watch(void)
{
    kept_drop(KEEPER_WATCH, 0);
}

static void exchange_watch(void)
{
    kept_hold(KEEPER_WATCH, 0, open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void wrong_descriptors_are_no_harm(void **state)
{
    static const struct {
        void (*damage)(void);
        unsigned quarantined;
        unsigned lost; /* buffers */
    } cases[] = {
        {lose, 1, 1},
        {swap, 2, 2},
        {exchange, 1, 1},
        {exchange_for_a_smaller_one, 1, 1},
        {exchange_for_one_without_seals, 1, 1},
        {exchange_for_no_memory, 1, 1},
        {exchange_the_foreign_one, 1, 1},
        {exchange_the_foreign_one_for_no_memory, 1, 1},
        {empty_the_foreign_one, 0, 0},
        {lose_the_foreign_one, 1, 1},
        {add_more, 0, 0},
        {lose_process, 0, 0},
        {exchange_process, 0, 0},
        {exchange_for_another_process, 0, 0},
        {lose_watch, 0, 0},
        {exchange_watch, 0, 0},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct status_info status;
        uint64_t used, id;
        struct inherited_fd *more;
        int fd;

        (void)steps_set_up(NULL);
        steps_run_full();
        cases[i].damage();
        generation_adopt();
        assert_int_equal(host_status, 0);
        host_settle();
        steps_look(&status, &used);
        assert_int_equal(status.quarantined, cases[i].quarantined);
        assert_int_equal(status.buffers, shared->status.buffers - cases[i].lost);
        assert_int_equal(status.sessions, shared->status.sessions);
        assert_int_equal(host_check(shared->observer), 0);
        more = kept_find(KEEPER_BUFFER, 999);
        assert_true(!more || more->fd < 0);
        if (!cases[i].lost) {
            /* it is watched again, or still: a descriptor of it is recognised */
            fd = host_export(shared->sessions[0], shared->buffers[1], RIGHT_READ);
            assert_int_equal(host_import(shared->sessions[0], fd, &id), 0);
            assert_int_equal(id, shared->buffers[1]);
            (void)fd_close(fd);
        }
        generation_finish();
    }
}

/* ---- another ledger ---------------------------------------------------------------------------------------------- */

static void a_ledger_of_another_form_is_not_touched(void **state)
{
    steps_run_full();
    kept_header()->features ^= LEDGER_FEATURES + 1;
    kept_header_written();
    generation_adopt();
    assert_int_equal(host_status, BROKER_E_LEDGER);
    host_stop();
    kept_header()->features ^= LEDGER_FEATURES + 1;
    kept_header_written();
    kept_unmap();
    host_reset(3);
    generation_adopt();
    assert_int_equal(host_status, 0);
    steps_assert_same();
    generation_finish();
}

static void a_damaged_ledger_is_put_aside_for_a_new_one(void **state)
{
    steps_run_full();
    kept_header()->broker_id ^= 1;
    kept_unmap();
    generation_adopt();
    assert_int_equal(host_status, 0);
    assert_non_null(kept_find(KEEPER_LEDGER, 1));
    shared->observer = host_session_of(9, getpid(), getuid());
    steps_look(&shared->status, &shared->used);
    assert_int_equal(shared->status.buffers, 0);
    assert_int_equal(shared->status.restarts, 0);
    assert_int_equal(host_check(shared->observer), 0);
    generation_finish();
}

#define recovers(function) cmocka_unit_test_setup_teardown(function, steps_set_up, steps_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        recovers(damaged_records_are_left_alone),
        recovers(a_wrong_number_of_a_watch_is_found_out_I4),
        recovers(wrong_descriptors_are_no_harm),
        recovers(a_ledger_of_another_form_is_not_touched),
        recovers(a_damaged_ledger_is_put_aside_for_a_new_one),
    };

    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
