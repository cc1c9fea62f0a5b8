/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of shared virtual memory begin with: a broker of their own with two simulated nodes, which the
 * process-wide context finds.
 *
 * They link libmemclient-opencl as programs do.
 */
#pragma once

#include <memclient/memclient.h>
#include <memclient/svm.h>

#include "tests/integration/broker.h"
#include "tests/support/test.h"

/* The call gives 0, else the sentence is printed. */
#define assert_done(call)            assert_refused(call, 0)
#define assert_refused(call, wanted) svm_assert((call), (wanted), #call, __FILE__, __LINE__)

void svm_assert(int got, int wanted, const char *call, const char *file, int line);

extern struct broker_process svm_broker;
/* A session of the test's own, beside the one that is tested. */
extern struct memclient_context *svm_observer;

/* For cmocka's groups: a broker is started; `svm_config` is more of its configuration, or NULL. */
extern const char *svm_config;
int svm_group_setup(void **state);
/* The broker must have nothing left. */
int svm_group_teardown(void **state);

/* A heap with these of its options, and read-write memory of one; the test fails if there is none. */
struct memclient_svm *svm_create(unsigned flags, uint64_t quarantine);
void *svm_allocate(struct memclient_svm *svm, uint64_t size);

/* After each test: the broker has no buffer left, and its sums are right. */
int svm_nothing_left(void **state);

/* Buffers that the broker has, and names. */
uint64_t svm_buffers(void);
uint64_t svm_names(void);
/* Requests that it has served, those of the test's own session not counted. */
uint64_t svm_requests(void);
