/* SPDX-License-Identifier: Apache-2.0 */
/* <umf/proxy_lib_new_delete.h>: each operator new is the program's malloc() or posix_memalign(), delete its free(). */
#include <umf/proxy_lib_new_delete.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

extern "C" {
void *__libc_malloc(size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *ptr);
}

static unsigned got, given;
static bool full;

extern "C" void *malloc(size_t size) noexcept
{
    got++;
    return full ? nullptr : __libc_malloc(size);
}

extern "C" int posix_memalign(void **ptr, size_t alignment, size_t size) noexcept
{
    got++;
    *ptr = full ? nullptr : __libc_memalign(alignment, size);
    return *ptr ? 0 : ENOMEM;
}

extern "C" void free(void *ptr) noexcept
{
    given += ptr != nullptr;
    __libc_free(ptr);
}

static int failures;

#define CHECK(what)                                                     \
    do {                                                                \
        if (!(what)) {                                                  \
            (void)fprintf(stderr, "%d: not so: %s\n", __LINE__, #what); \
            failures++;                                                 \
        }                                                               \
    } while (0)

/* One allocation by that expression, and one free by the statement. */
#define PAIR(expression, statement)           \
    do {                                      \
        unsigned before = got, freed = given; \
        auto *ptr = (expression);             \
        CHECK(got == before + 1 && ptr);      \
        statement;                            \
        CHECK(given == freed + 1);            \
    } while (0)

struct alignas(256) wide {
    char bytes[256];
};

static void make_room()
{
    full = false;
}

int main()
{
    PAIR(new int, delete ptr);
    PAIR(new int[100], delete[] ptr);
    PAIR(new (std::nothrow) int, delete ptr);
    PAIR(new (std::nothrow) char[1000], delete[] ptr);
    PAIR(new wide, CHECK(reinterpret_cast<uintptr_t>(ptr) % 256 == 0); delete ptr);
    PAIR(new wide[3], CHECK(reinterpret_cast<uintptr_t>(ptr) % 256 == 0); delete[] ptr);
    PAIR(new (std::nothrow) wide, delete ptr);
    PAIR(new (std::nothrow) wide[3], delete[] ptr);
    PAIR(::operator new(0), ::operator delete(ptr));
    PAIR(new std::string("one"), delete ptr);
    CHECK(std::vector<int>(1000, 7)[999] == 7);

    full = true;
    CHECK(!new (std::nothrow) int);
    CHECK(!new (std::nothrow) wide);
    bool thrown = false;
    try {
        std::unique_ptr<int[]> none(new int[1000]);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    full = false;
    CHECK(thrown);
    /* a handler that finds some */
    full = true;
    std::set_new_handler(make_room);
    delete new int;
    std::set_new_handler(nullptr);
    CHECK(!full);
    return failures ? 1 : 0;
}
