/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++'s operators new and delete by malloc() and the like of the program. So a program that is started with an
 * allocator in LD_PRELOAD uses it for C++ objects, too. Include this once in a program, since these are definitions.
 * For C, and C++ before C++11, it is empty. A program that is built without exceptions (-fno-exceptions) aborts if
 * there is no memory.
 *
 * libmemclient-umf-proxy.so is such an allocator, see memclient-umf(3).
 */
#ifndef UMF_PROXY_LIB_NEW_DELETE_H
#define UMF_PROXY_LIB_NEW_DELETE_H 1

#include "base.h"

#if defined(__cplusplus) && __cplusplus >= 201103L

#include <cstddef>
#include <cstdlib>
#include <new>

extern "C++" {

/* alignment 0: malloc()'s. NULL: there is no memory, and no handler that makes room. */
static inline void *memclient_try_new(std::size_t size, std::size_t alignment) noexcept(false)
{
    void *ptr = nullptr;

    if (!size)
        size = 1;
    for (;;) {
        if (!alignment)
            ptr = std::malloc(size);
        else if (posix_memalign(&ptr, alignment < sizeof(void *) ? sizeof(void *) : alignment, size))
            ptr = nullptr;
        if (ptr)
            return ptr;
        std::new_handler handler = std::get_new_handler();
        if (!handler)
            return nullptr;
        handler();
    }
}

static inline void *memclient_new(std::size_t size, std::size_t alignment) noexcept(false)
{
    void *ptr = memclient_try_new(size, alignment);

    if (!ptr) {
#ifdef __cpp_exceptions
        throw std::bad_alloc();
#else
        std::abort();
#endif
    }
    return ptr;
}

static inline void *memclient_new_nothrow(std::size_t size, std::size_t alignment) noexcept
{
#ifdef __cpp_exceptions
    try {
        return memclient_try_new(size, alignment);
    } catch (...) {
        return nullptr;
    }
#else
    return memclient_try_new(size, alignment);
#endif
}

/* clang-format off */
void *operator new(std::size_t size) { return memclient_new(size, 0); }
void *operator new[](std::size_t size) { return memclient_new(size, 0); }
void *operator new(std::size_t size, const std::nothrow_t &) noexcept { return memclient_new_nothrow(size, 0); }
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept { return memclient_new_nothrow(size, 0); }
void operator delete(void *ptr) noexcept { std::free(ptr); }
void operator delete[](void *ptr) noexcept { std::free(ptr); }
void operator delete(void *ptr, const std::nothrow_t &) noexcept { std::free(ptr); }
void operator delete[](void *ptr, const std::nothrow_t &) noexcept { std::free(ptr); }

#if __cplusplus >= 201402L
void operator delete(void *ptr, std::size_t) noexcept { std::free(ptr); }
void operator delete[](void *ptr, std::size_t) noexcept { std::free(ptr); }
#endif

#if defined(__cpp_aligned_new)
void *operator new(std::size_t size, std::align_val_t to) { return memclient_new(size, static_cast<std::size_t>(to)); }
void *operator new[](std::size_t size, std::align_val_t to)
{
    return memclient_new(size, static_cast<std::size_t>(to));
}
void *operator new(std::size_t size, std::align_val_t to, const std::nothrow_t &) noexcept
{
    return memclient_new_nothrow(size, static_cast<std::size_t>(to));
}
void *operator new[](std::size_t size, std::align_val_t to, const std::nothrow_t &) noexcept
{
    return memclient_new_nothrow(size, static_cast<std::size_t>(to));
}
void operator delete(void *ptr, std::align_val_t) noexcept { std::free(ptr); }
void operator delete[](void *ptr, std::align_val_t) noexcept { std::free(ptr); }
void operator delete(void *ptr, std::size_t, std::align_val_t) noexcept { std::free(ptr); }
void operator delete[](void *ptr, std::size_t, std::align_val_t) noexcept { std::free(ptr); }
void operator delete(void *ptr, std::align_val_t, const std::nothrow_t &) noexcept { std::free(ptr); }
void operator delete[](void *ptr, std::align_val_t, const std::nothrow_t &) noexcept { std::free(ptr); }
/* clang-format on */
#endif
}

#endif

#endif
