/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker of one's own for every test, and clients of it that use the library, as programs do.
 *
 *     static void some_promise(void **state)
 *     {
 *         struct broker_process *broker = broker_for_test(NULL);
 *         struct memclient_context *ctx = broker_connect(broker);
 *         ...
 *         memclient_context_close(ctx);
 *         broker_finish(broker);
 *     }
 *     ... at_broker(some_promise) ...
 *
 * broker_finish() is a test in itself, the same for all: the sums of the broker agree, everything that the test
 * made is gone from it, so is every memory file, and it ends in order when it is told to.
 */
#pragma once

#include "tests/integration/broker.h"
#include "tests/support/child.h"
#include "tests/support/fd.h"
#include "tests/support/memory.h"
#include "tests/support/settings.h"
#include "tests/support/test.h"
#include "tests/support/wait.h"

#include <errno.h>
#include <memclient/memclient.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* `config`: more lines for its configuration, or NULL. Waits until it serves. There is one at a time. */
struct broker_process *broker_for_test(const char *config);
/* As it is installed: with a user of its own, on a socket that a service manager made. Skips if not root. */
struct broker_process *broker_for_test_as(uid_t uid, const char *config);

/* With so many descriptors at most. */
struct broker_process *broker_for_test_with_nofile(unsigned nofile, const char *config);

/* A new session, with patience as its deadline. Fails the test. */
struct memclient_context *broker_connect(struct broker_process *broker);

/* Has the broker prove its sums (I5). */
void broker_check(struct broker_process *broker);

/* Waits until nothing is left but sessions: no buffer, token, name, reservation, nor memory file. */
void broker_wait_until_empty(struct broker_process *broker);

/* All of the above, no session left, and an end in order. */
void broker_finish(struct broker_process *broker);

/* The teardown of at_broker(): nothing is left of a test that failed. */
int broker_cleanup(void **state);
#define at_broker(function) cmocka_unit_test_teardown(function, broker_cleanup)
/* ... and with settings of the machine, see settings.h */
int broker_cleanup_and_settings(void **state);
/* ... and with control groups, see cgroup.h, in one of which a child may still be */
int broker_cleanup_and_groups(void **state);
#define at_broker_with_groups(function)   cmocka_unit_test_teardown(function, broker_cleanup_and_groups)
#define at_broker_with_settings(function) cmocka_unit_test_teardown(function, broker_cleanup_and_settings)

/* How many memory files the broker has open, those in stock included; -1 if this user may not look. */
int broker_memory_files(struct broker_process *broker);

struct memclient_broker_info broker_status(struct memclient_context *ctx);
struct memclient_buffer_info broker_info(struct memclient_buffer *buf);

/* How many it has, with those that no session holds any more. */
uint64_t broker_buffers(struct memclient_context *ctx);

/* What a pool has, 0 if there is none of that name. */
uint64_t broker_pool_used(struct memclient_context *ctx, const char *pool);
uint64_t broker_pool_available(struct memclient_context *ctx, const char *pool);
/* Buffers that are ready for allocations to come, of all pools. */
uint64_t broker_stock(struct memclient_context *ctx);

/* ---- calls of the library, in the test itself -------------------------------------------------------------------- */

/* Must succeed; says the sentence if not. */
#define assert_done(call) broker_assert_done((call), #call, __FILE__, __LINE__)
/* Must be refused with -wanted, and with a sentence. */
#define assert_refused(call, wanted) broker_assert_refused((call), (wanted), #call, __FILE__, __LINE__)
/* ... that holds this text. */
#define assert_sentence(text) broker_assert_sentence((text), __FILE__, __LINE__)

void broker_assert_done(int r, const char *what, const char *file, int line);
void broker_assert_refused(int r, int wanted, const char *what, const char *file, int line);
void broker_assert_sentence(const char *text, const char *file, int line);

/* ---- and in children --------------------------------------------------------------------------------------------- */

#define CHECK_DONE(call)            broker_check_done((call), #call, __FILE__, __LINE__)
#define CHECK_REFUSED(call, wanted) broker_check_refused((call), (wanted), #call, __FILE__, __LINE__)

void broker_check_done(int r, const char *what, const char *file, int line);
void broker_check_refused(int r, int wanted, const char *what, const char *file, int line);
/* Ends the child if it fails. */
struct memclient_context *broker_connect_in_child(const char *socket);

/* Between a test and its child, over their channel: a few bytes, exactly so many, with patience. */
bool pass_bytes(int channel, const void *bytes, size_t size);
bool take_bytes(int channel, void *bytes, size_t size);

/* ---- bytes to recognise ------------------------------------------------------------------------------------------ */

void pattern_write(void *address, size_t size, uint64_t seed);
bool pattern_holds(const void *address, size_t size, uint64_t seed);
bool all_zero(const void *address, size_t size);
