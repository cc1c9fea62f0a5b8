/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One handle space. Memory that one process made through any interface is handed on, as a token or as a descriptor, and
 * opened in another process through every interface that can take it: at the same address, with the same contents for
 * both, and given back in either order. After each pair the broker has nothing left.
 *
 * What came out is printed as a table; memclient(7) has it, and must have it as it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/handles/facade.h"
#include "tests/integration/observer.h"
#include "tests/support/fd.h"
#include "tests/support/test.h"

static const struct facade *const facades[] = {
    &native_facade,       &hsa_vmem_facade, &hsa_region_facade,    &umf_pool_facade,
    &umf_provider_facade, &nbla_facade,     &nbla_physical_facade, &svm_facade,
};
#define N_FACADES (sizeof(facades) / sizeof(facades[0]))

enum form { BY_TOKEN, BY_FD };

/* One pair of processes; in the memory of both. */
struct pair {
    const struct facade *maker, *opener;
    enum form form;
    bool maker_goes_first;
    struct handed handed;
};

static bool met[N_FACADES][N_FACADES][2]; /* maker, opener, form: done in both orders */

static const char from_maker[] = "made by one process", from_opener[] = "written by the other";

/* ---- the one who makes it ---------------------------------------------------------------------------------------- */

static void hand_on(const struct pair *pair, const struct memory *memory, struct handed *handed)
{
    struct memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;
    struct memclient_buffer *buf;

    CHECK(!memclient_address_query(memory->at, &info));
    buf = pair->maker->get_buffer ? pair->maker->get_buffer(memory) : memclient_buffer_ref(info.buffer);
    *handed = (struct handed){
        .fd = -1,
        .offset = info.offset,
        .buffer_bytes = memclient_buffer_bytes(buf),
        .address = (uintptr_t)memory->at,
    };
    if (pair->form == BY_FD && pair->maker->get_fd)
        pair->maker->get_fd(memory, handed);
    else if (pair->form == BY_FD)
        CHECK(!memclient_export_fd(buf, 0, &handed->fd));
    else if (pair->maker->get_token)
        pair->maker->get_token(memory, handed);
    else
        CHECK(!memclient_share(buf, NULL, &handed->token));
    memclient_buffer_unref(buf);
}

static void run_maker(int channel, void *context)
{
    struct pair *pair = context;
    struct memory memory = {0};
    struct handed handed;

    pair->maker->make(&memory);
    memcpy(memory.at, from_maker, sizeof(from_maker));
    hand_on(pair, &memory, &handed);
    CHECK(fd_send(channel, &handed, sizeof(handed), &handed.fd, handed.fd >= 0, 0) == sizeof(handed));
    hear(channel);
    if (!pair->maker_goes_first)
        CHECK(!strcmp(memory.at + MEMORY_SIZE / 2, from_opener));
    pair->maker->give_back(&memory);
}

/* ---- the one who opens it ---------------------------------------------------------------------------------------- */

static void run_opener(int channel, void *context)
{
    struct pair *pair = context;
    struct memory memory = {0};

    if (pair->form == BY_FD)
        pair->opener->open_fd(&pair->handed, &memory);
    else
        pair->opener->open_token(&pair->handed, &memory);
    fd_closep(&pair->handed.fd);
    CHECK((uintptr_t)memory.at == pair->handed.address);
    tell(channel);
    hear(channel);
    CHECK(!strcmp(memory.at, from_maker));
    memcpy(memory.at + MEMORY_SIZE / 2, from_opener, sizeof(from_opener));
    if (pair->form == BY_FD)
        pair->opener->close_fd(&memory);
    else
        pair->opener->close_token(&memory);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static void receive(const struct child *maker, struct pair *pair)
{
    struct fd_received received = fd_receive(maker->channel, &pair->handed, sizeof(pair->handed), 1, 0);

    assert_int_equal(received.size, sizeof(pair->handed));
    assert_int_equal(received.n, pair->form == BY_FD);
    pair->handed.fd = received.n ? received.fds[0] : -1;
}

static void meet(struct pair *pair)
{
    struct child maker, opener;

    child_start(&maker, run_maker, pair);
    receive(&maker, pair);
    child_start(&opener, run_opener, pair);
    fd_closep(&pair->handed.fd);
    child_hear(&opener);
    if (pair->maker_goes_first) {
        child_tell(&maker);
        child_finish(&maker);
        child_tell(&opener);
        child_finish(&opener);
    } else {
        child_tell(&opener);
        child_finish(&opener);
        child_tell(&maker);
        child_finish(&maker);
    }
    observer_expect_nothing();
}

static bool takes(const struct facade *opener, enum form form)
{
    return form == BY_FD ? opener->open_fd : opener->open_token;
}

/* All that one interface makes, opened through all. */
static void meet_all(unsigned maker)
{
    for (unsigned i = 0; i < N_FACADES; i++)
        for (enum form form = BY_TOKEN; form <= BY_FD; form++) {
            if (!takes(facades[i], form))
                continue;
            for (unsigned order = 0; order < 2; order++) {
                struct pair pair = {facades[maker], facades[i], form, order, {.fd = -1}};

                print_message("%s, by %s, %s; %s goes first\n", facades[maker]->name,
                              form == BY_FD ? "descriptor" : "token", facades[i]->name,
                              order ? "its maker" : "who opened it");
                meet(&pair);
            }
            met[maker][i][form] = true;
        }
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const char *cell(unsigned maker, unsigned opener)
{
    static const char *const cells[] = {"-", "token", "fd", "token, fd"};

    return cells[met[maker][opener][BY_TOKEN] + 2 * met[maker][opener][BY_FD]];
}

/* As scdoc has rows of tables: a line for each cell. `maker` N_FACADES = the heading. */
static void print_row(unsigned maker, char *row, size_t size)
{
    bool heading = maker == N_FACADES;
    FILE *out = fmemopen(row, size, "w");

    assert_non_null(out);
    fprintf(out, "%s %s\n", heading ? "[[" : "| ", heading ? "allocated by" : facades[maker]->name);
    for (unsigned i = 0; i < N_FACADES; i++)
        fprintf(out, "%s %s\n", heading ? ":[" : ": ", heading ? facades[i]->name : cell(maker, i));
    assert_int_equal(fclose(out), 0);
}

static void the_table_stands_in_the_manual(void **state)
{
    const char *srcdir = getenv("srcdir");
    char path[4096], row[512], *manual = NULL;
    size_t size = 0;
    FILE *in;

    snprintf(path, sizeof(path), "%s/client/memclient.7.scd", srcdir ? srcdir : ".");
    in = fopen(path, "r");
    assert_non_null(in);
    assert_true(getdelim(&manual, &size, '\0', in) > 0);
    fclose(in);
    for (unsigned maker = 0; maker <= N_FACADES; maker++) {
        print_row(maker, row, sizeof(row));
        print_message("%s", row);
        if (!strstr(manual, row))
            fail_msg("memclient(7) does not say so");
    }
    free(manual);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void memory_of_each_is_opened_through_all(void **state)
{
    for (unsigned maker = 0; maker < N_FACADES; maker++)
        meet_all(maker);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_each_is_opened_through_all),
        cmocka_unit_test(the_table_stands_in_the_manual),
    };

    return test_run(tests, observer_group_setup, observer_group_teardown);
}
