/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every cmocka program of ours starts with: the library's header with the four it needs, a way to
 * skip aloud, and the main loop.
 *
 * A program's exit status says one thing: 0, every fact in it was proven; 77, none was disproven, but at
 * least one could not be tried, and the log says which and why; 1, something is wrong. So a PASS in the
 * harness is never half a pass. A program that hangs is ended by tests/run-test, which says where it hangs; one that
 * was started by hand, by its alarm clock.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* Some facts cannot be tried under some sanitizers: they keep shadows of the address space. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#define TEST_MSAN __has_feature(memory_sanitizer)

/* The exit status that means "not tried" to automake's harness and to our own children. */
#define TEST_SKIPPED 77

/* Leave the running test, counting it as not tried. Only from the test's own process. */
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For main: runs the group and gives the exit status described above. */
#define test_run(tests, group_setup, group_teardown) \
    test_finish(cmocka_run_group_tests((tests), (group_setup), (group_teardown)))

/* Counted by test_skip; turns cmocka's number of failures into the exit status. */
int test_finish(int failures);

/* Skip unless the process is root (many facts are about other users). */
void test_needs_root(void);

/* For the main of tests that all need root in their setup, which cannot skip: cmocka takes that for a failure. */
#define test_run_as_root(tests, group_setup, group_teardown) \
    (test_has_root() ? test_run((tests), (group_setup), (group_teardown)) : TEST_SKIPPED)
bool test_has_root(void);

/* It has limits of its own, which are not the kernel's. */
bool test_under_valgrind(void);

/* assert_int_equal(call, 0) with the system's reason: a test that fails should say why. */
#define assert_ok(call)                                 \
    do {                                                \
        if ((call) < 0)                                 \
            test_fail_errno(#call, __FILE__, __LINE__); \
    } while (0)

/* The call must fail with just this errno. */
#define assert_errno(call, wanted) test_assert_errno((call) < 0, (wanted), #call, __FILE__, __LINE__)

/* mmap's way of failing. */
#define assert_mapped(address)                             \
    do {                                                   \
        if ((address) == MAP_FAILED)                       \
            test_fail_errno(#address, __FILE__, __LINE__); \
    } while (0)
#define assert_map_errno(call, wanted) test_assert_errno((call) == MAP_FAILED, (wanted), #call, __FILE__, __LINE__)

void test_fail_errno(const char *what, const char *file, int line);
void test_assert_errno(bool failed, int wanted, const char *what, const char *file, int line);
