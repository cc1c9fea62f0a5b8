/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process wrote into shared memory before it was killed: all of it is there for the next one, in the
 * order in which it was written. A record with one commit word, stored last with release order, needs no
 * journal to survive a crash of the process. (A crash of the machine takes the memory as well.)
 */
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <stdatomic.h>
#include <unistd.h>

#define WORDS   15
#define RECORDS 1024

struct record {
    _Atomic uint64_t commit; /* the record's serial; 0 while it is being written */
    _Atomic uint64_t words[WORDS];
};

struct book {
    _Atomic uint64_t last; /* what the writer believes it has committed */
    struct record records[RECORDS];
};

static void write_until_killed(int channel, void *context)
{
    struct book *book = context;

    for (uint64_t serial = atomic_load(&book->last) + 1;; serial++) {
        struct record *record = &book->records[serial % RECORDS];

        atomic_store_explicit(&record->commit, 0, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        for (unsigned i = 0; i < WORDS; i++)
            atomic_store_explicit(&record->words[i], serial * 31 + i, memory_order_relaxed);
        atomic_store_explicit(&record->commit, serial, memory_order_release);
        atomic_store_explicit(&book->last, serial, memory_order_release);
    }
}

/* Over many kills at any moment no record is torn, none that was committed is lost, and at most one is
 * found half written. */
static void committed_records_survive_a_kill(void **state)
{
    int fd = memfd_new(sizeof(struct book), 0);

    for (unsigned round = 0; round < 100; round++) {
        struct book *book = map_shared(fd, sizeof(*book), PROT_READ | PROT_WRITE);
        uint64_t begin, last;
        unsigned unfinished = 0;
        struct child child;

        assert_mapped(book);
        begin = atomic_load(&book->last);
        child_start(&child, write_until_killed, book);
        assert_true(WAIT_UNTIL(atomic_load(&book->last) > begin + 2 * RECORDS + round * 97));
        child_kill(&child);
        munmap(book, sizeof(*book));

        book = map_shared(fd, sizeof(*book), PROT_READ | PROT_WRITE); /* as the next broker sees it */
        assert_mapped(book);
        last = atomic_load(&book->last);
        for (size_t i = 0; i < RECORDS; i++) {
            struct record *record = &book->records[i];
            uint64_t serial = atomic_load_explicit(&record->commit, memory_order_acquire);

            if (serial == 0) {
                unfinished++;
                continue;
            }
            assert_int_equal(serial % RECORDS, i);
            assert_in_range(serial, last + 1 - RECORDS, last + 1);
            for (unsigned word = 0; word < WORDS; word++)
                assert_int_equal(atomic_load(&record->words[word]), serial * 31 + word);
        }
        assert_in_range(unfinished, 0, 1);
        munmap(book, sizeof(*book));
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_records_survive_a_kill),
    };

    return test_run(tests, NULL, NULL);
}
