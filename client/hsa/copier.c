/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying and filling as fast as the machine can.
 *
 * One processor cannot keep the memory busy, so a large range is divided among several threads. They live as long as
 * the call, since creating a thread costs little compared with its part. They store past the caches: the data would
 * evict everything else, and each line would be read from memory only to be overwritten. The C library, which knows the
 * machine better, handles small ranges, and all ranges on machines with one processor.
 *
 * tests/bench/copy.c measures the size from which this is faster: 2 MiB with 16 processors of a Xeon, 64 MiB with 2 of
 * a busy EPYC, whose caches are fast for what fits into them. So smaller sizes pay off only with four threads.
 */
#include "hsa/memory.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <wchar.h>

#define MIB          ((size_t)1 << 20)
#define LARGE        (64 * MIB)
#define COPY_LARGE   (16 * MIB) /* for copying with THREADS_MANY; filling gains more from the caches */
#define PART         (4 * MIB)  /* at least */
#define THREADS_MANY 4
#define THREADS_MAX  16
#define LINE         64 /* of a cache; streamed sizes are multiples of it */

/* The work of one thread: it copies, or fills if `from` is NULL. */
struct part {
    uint8_t *to;
    const uint8_t *from;
    size_t size;
    uint32_t pattern;
};

_Static_assert(sizeof(wchar_t) == sizeof(uint32_t), "wmemset() fills with 32 bits");

/* ---- one thread -------------------------------------------------------------------------------------------------- */

static void copier_do_plainly(const struct part *part)
{
    if (part->from)
        memcpy(part->to, part->from, part->size);
    else
        wmemset((wchar_t *)(void *)part->to, (wchar_t)part->pattern, part->size / sizeof(uint32_t));
}

#ifdef __x86_64__
#include <immintrin.h>

/* `to` and size are multiples of LINE here. Every x86-64 has SSE2. */
static void copier_stream_sse2(const struct part *part)
{
    __m128i pattern = _mm_set1_epi32((int)part->pattern);

    for (size_t at = 0; at < part->size; at += LINE)
        for (size_t i = at; i < at + LINE; i += sizeof(__m128i))
            _mm_stream_si128((__m128i *)(void *)(part->to + i),
                             part->from ? _mm_loadu_si128((const __m128i *)(const void *)(part->from + i)) : pattern);
    _mm_sfence();
}

__attribute__((target("avx2"))) static void copier_stream_avx2(const struct part *part)
{
    __m256i pattern = _mm256_set1_epi32((int)part->pattern);

    for (size_t at = 0; at < part->size; at += LINE)
        for (size_t i = at; i < at + LINE; i += sizeof(__m256i))
            _mm256_stream_si256((__m256i *)(void *)(part->to + i),
                                part->from ? _mm256_loadu_si256((const __m256i *)(const void *)(part->from + i))
                                           : pattern);
    _mm_sfence();
}

#endif

static void copier_stream(const struct part *part)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        copier_stream_avx2(part);
    else
        copier_stream_sse2(part);
#else
    copier_do_plainly(part);
#endif
}

/* Streams whole lines of `to`, and copies or fills plainly before and after them. */
static void copier_do_part(const struct part *part)
{
    struct part head = *part, body = *part, tail = *part;

    head.size = -(uintptr_t)part->to % LINE;
    body.size = (part->size - head.size) / LINE * LINE;
    tail.size = part->size - head.size - body.size;
    body.to += head.size;
    tail.to = body.to + body.size;
    if (part->from) {
        body.from += head.size;
        tail.from = body.from + body.size;
    }
    copier_do_plainly(&head);
    copier_stream(&body);
    copier_do_plainly(&tail);
}

static void *copier_run(void *part)
{
    copier_do_part(part);
    return NULL;
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

static size_t copier_count_threads(size_t size)
{
    cpu_set_t allowed;
    size_t n = size / PART;
    size_t processors = sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? 1 : (size_t)CPU_COUNT(&allowed);

    if (n > processors)
        n = processors;
    return n < THREADS_MAX ? n : THREADS_MAX;
}

/* The calling thread does the first part, and each part for which no thread could be created. The new threads block the
 * application's signals. */
static void copier_do_parts(const struct part *parts, size_t n)
{
    pthread_t threads[THREADS_MAX];
    bool made[THREADS_MAX] = {false};
    sigset_t all, former;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &former);
    for (size_t i = 1; i < n; i++)
        made[i] = !pthread_create(&threads[i], NULL, copier_run, (void *)(uintptr_t)&parts[i]);
    (void)pthread_sigmask(SIG_SETMASK, &former, NULL);
    for (size_t i = 0; i < n; i++)
        if (!made[i])
            copier_do_part(&parts[i]);
    for (size_t i = 1; i < n; i++)
        if (made[i])
            (void)pthread_join(threads[i], NULL);
}

static void copier_share_out(const struct part *whole, size_t n)
{
    struct part parts[THREADS_MAX];
    size_t each = whole->size / n / LINE * LINE;

    for (size_t i = 0; i < n; i++) {
        parts[i] = *whole;
        parts[i].to += i * each;
        if (whole->from)
            parts[i].from += i * each;
        parts[i].size = i < n - 1 ? each : whole->size - i * each;
    }
    copier_do_parts(parts, n);
}

static void copier_do_whole(const struct part *whole)
{
    size_t n = whole->size >= COPY_LARGE ? copier_count_threads(whole->size) : 1;

    if (n > 1 && (whole->size >= LARGE || (whole->from && n >= THREADS_MANY)))
        copier_share_out(whole, n);
    else
        copier_do_plainly(whole);
}

void copier_copy(void *to, const void *from, size_t size)
{
    copier_do_whole(&(struct part){.to = to, .from = from, .size = size});
}

void copier_fill(void *to, uint32_t pattern, size_t size)
{
    copier_do_whole(&(struct part){.to = to, .pattern = pattern, .size = size});
}
