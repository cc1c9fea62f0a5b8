/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heaps for C++17 and later: blocks that processes hand to each other, std::pmr, and an allocator.
 *
 *     #include <memclient/heap.hpp>
 *
 *     memclient::heap heap = memclient::heap::create(broker, {{64, 4096, 65536}});
 *     memclient::token token = heap.share();
 *     // send the token to another process, which calls memclient::heap::open_token(broker, token)
 *     memclient::block_ptr<frame> filled = heap.make<frame>(width, height);
 *     memclient::block block = heap.give(std::move(filled));
 *     // send the block's 16 bytes; there:
 *     memclient::block_ptr<frame> taken = heap.take<frame>(block);
 *
 * What heap.h says of members, readers, death and threads holds here, and what memclient.hpp says of owners and errors.
 * A heap ends before its context, and after its blocks, resources and containers.
 *
 * Blocks. A block_ptr is a std::unique_ptr: when it ends, the object in its block is destroyed and the block is freed.
 * What is given away changes hands as it is, and its taker destroys it. So its type has to mean the same there, as one
 * of plain data does; objects with virtual functions do not travel. Pointers in it hold if what they point to
 * is_at_home() in both processes, as blocks are unless something else was in the way. Readers take blocks as const T.
 *
 * Containers. heap_resource and heap_allocator let any container have its memory in a heap, and the container itself
 * may be an object in a block. All of that at home, others can read it, once they have mapped the slabs: query() maps
 * those that there are. But the container has a pointer to what it allocates from, and that is good only in the process
 * that made it. So only that process changes or destroys it. Others take it as bytes, look at it, and give the bytes
 * back; or they get its address, and the container stays where it is. Containers with offset pointers need not be at
 * home.
 *
 * fork(). A child sees its parent's objects and must not destroy them: it calls release() on a block_ptr of its
 * parent's that would end in it, unless destroying the object does nothing.
 */
#pragma once

#include <array>
#include <limits>
#include <memory_resource>
#include <new>

#include "heap.h"
#include "memclient.hpp"

namespace memclient
{

enum class heap_flag : unsigned { keep_given = MEMCLIENT_HEAP_KEEP_GIVEN };
template <> inline constexpr bool is_mask<heap_flag> = true;

struct heap_options {
    std::array<std::uint64_t, 8> block_sizes{}; /* up to the first 0 */
    std::uint64_t slab_size = 0;
    std::size_t slabs_max = 0;
    heap_flag flags{};
    alloc_options memory{};
    std::string_view name{};
    name_options named{};
};

using heap_info = memclient_heap_info;

/* 16 and 48 bytes that name a block that was given away. */
using block = memclient_block;
using block_token = memclient_block_token;

namespace detail
{

struct c_heap_options {
    explicit c_heap_options(const heap_options &from) noexcept
        : memory(from.memory), name(from.name), named(to_c(from.named))
    {
        options.block_sizes = from.block_sizes.data();
        while (options.n_block_sizes < from.block_sizes.size() && from.block_sizes[options.n_block_sizes])
            options.n_block_sizes++;
        options.slab_size = from.slab_size;
        options.slabs_max = from.slabs_max;
        options.flags = bits(from.flags);
        options.memory = &memory.options;
        options.name = name.get();
        options.name_options = options.name ? &named : nullptr;
    }

    c_alloc_options memory;
    c_name name;
    memclient_name_options named;
    memclient_heap_options options = MEMCLIENT_HEAP_OPTIONS_INIT;
};

} // namespace detail

/* Destroys the object in a block, and frees the block. */
template <class T> struct block_deleter {
    memclient_heap *heap = nullptr;

    void operator()(std::remove_extent_t<T> *object) const noexcept
    {
        static_assert(!std::is_array_v<T> || std::is_trivially_destructible_v<std::remove_extent_t<T>>,
                      "how many objects a block has is not known when it is freed");
        if constexpr (!std::is_trivially_destructible_v<std::remove_extent_t<T>>)
            std::destroy_at(object);
        (void)memclient_heap_free(heap, address(object));
    }
    static void *address(const volatile void *object) noexcept { return const_cast<void *>(object); }
};

/* Owns a block of a heap with a T in it, or just bytes. */
template <class T = std::byte[]> using block_ptr = std::unique_ptr<T, block_deleter<T>>;

/* A heap that is open here, as a member or a reader. */
class [[nodiscard]] heap : public detail::owner<memclient_heap, memclient_heap_close>
{
  public:
    using owner::owner;
    explicit operator bool() const noexcept { return get(); }

    /* Makes one, and is its first member. */
    static heap create(const context &with, const heap_options &options, on_error on = {})
    {
        const detail::c_heap_options c_options(options);
        memclient_heap *made = nullptr;

        on(memclient_heap_create(with.get(), &c_options.options, &made));
        return heap(made);
    }
    static heap open_token(const context &with, const token &from, on_error on = {})
    {
        memclient_heap *opened = nullptr;

        on(memclient_heap_open_token(with.get(), &from, &opened));
        return heap(opened);
    }
    static heap open_name(const context &with, std::string_view name, on_error on = {})
    {
        memclient_heap *opened = nullptr;

        on(memclient_heap_open_name(with.get(), detail::c_name(name).get(), &opened));
        return heap(opened);
    }

    /* To whom a block is given that any member may take. */
    static constexpr std::uint64_t anybody = 0;
    /* How all blocks are aligned: or more, at home to the power of two that divides their size, up to 2 MiB. */
    static constexpr std::size_t alignment = 64;

    std::uint64_t member() const noexcept { return memclient_heap_member(get()); }
    heap_info query(on_error on = {}) const
    {
        heap_info info = MEMCLIENT_HEAP_INFO_INIT;

        on(memclient_heap_query(get(), &info));
        return info;
    }

    token share(const share_options &options = {}, on_error on = {}) const
    {
        const memclient_share_options c_options = detail::to_c(options);
        token made{};

        on(memclient_heap_share(get(), &c_options, &made));
        return made;
    }

    struct invitation {
        memclient::token token; /* for the reader */
        std::uint64_t member;   /* its number, for share() */
    };
    invitation invite(on_error on = {}) const
    {
        invitation made{};

        on(memclient_heap_invite(get(), &made.token, &made.member));
        return made;
    }

    block_ptr<> alloc(std::uint64_t bytes, on_error on = {}) const
    {
        void *made = nullptr;

        on(memclient_heap_alloc(get(), bytes, &made));
        return own<std::byte[]>(made);
    }

    /* The same, at a multiple of a power of two up to 2 MiB, beyond `alignment`. */
    block_ptr<> alloc_aligned(std::uint64_t bytes, std::uint64_t multiple_of, on_error on = {}) const
    {
        void *made = nullptr;

        on(memclient_heap_alloc_aligned(get(), bytes, multiple_of, &made));
        return own<std::byte[]>(made);
    }

    /* Makes a T in a block, like std::make_unique(): make<T>() zeroes plain data, alloc() does not. Throws
     * memclient::error, or what T's constructor throws. */
    template <class T, class... Args> block_ptr<T> make(Args &&...args) const
    {
        block_ptr<> bytes = alignof(T) > alignment ? alloc_aligned(sizeof(T), alignof(T)) : alloc(sizeof(T));
        block_ptr<T> made = own<T>(::new (static_cast<void *>(bytes.get())) T(std::forward<Args>(args)...));

        (void)bytes.release();
        return made;
    }

    /* Give a block to a member, or to anybody; share() to a reader as well. On failure `owned` is what it was. */
    template <class T> block give(block_ptr<T> &&owned, std::uint64_t to = anybody, on_error on = {}) const
    {
        block given{};

        if (on(memclient_block_give(get(), block_deleter<T>::address(owned.get()), to, &given)))
            (void)owned.release();
        return given;
    }
    template <class T> block_token share(block_ptr<T> &&owned, std::uint64_t to, on_error on = {}) const
    {
        block_token given{};

        if (on(memclient_block_share(get(), block_deleter<T>::address(owned.get()), to, &given)))
            (void)owned.release();
        return given;
    }

    /* Take what was given. T is what is in the block, on the word of who gave it; but a block that is too small for a
     * T, or lies where no T can, is refused with std::errc::message_size, and freed. */
    template <class T = std::byte[]> block_ptr<T> take(const block &given, on_error on = {}) const
    {
        void *taken = nullptr;

        return on(memclient_block_take(get(), &given, &taken)) ? checked<T>(taken, on) : block_ptr<T>();
    }
    template <class T = std::byte[]> block_ptr<T> take(const block_token &given, on_error on = {}) const
    {
        void *taken = nullptr;

        return on(memclient_block_open(get(), &given, &taken)) ? checked<T>(taken, on) : block_ptr<T>();
    }

    /* How many bytes the block has that begins at an address. */
    std::uint64_t block_bytes(const volatile void *address, on_error on = {}) const
    {
        std::uint64_t bytes = 0;

        on(memclient_block_bytes(get(), const_cast<const void *>(address), &bytes));
        return bytes;
    }

    void sweep(on_error on = {}) const { on(memclient_heap_sweep(get())); }
    void trim(on_error on = {}) const { on(memclient_heap_trim(get())); }

    /* Unbinds its names and closes it. On failure it stays open. */
    void destroy(on_error on = {})
    {
        if (on(memclient_heap_destroy(get())))
            (void)release();
    }

  private:
    template <class T> block_ptr<T> checked(void *taken, const on_error &on) const
    {
        block_ptr<> bytes = own<std::byte[]>(taken);
        std::uint64_t has = 0;

        if constexpr (!std::is_array_v<T> || std::extent_v<T> != 0) {
            if (memclient_block_bytes(get(), taken, &has) < 0 || has < sizeof(T) ||
                reinterpret_cast<std::uintptr_t>(taken) % alignof(T) != 0) {
                bytes.reset();
                on.refuse(std::errc::message_size, "the block has no room for an object of that type");
                return {};
            }
        }
        return own<T>(bytes.release());
    }
    template <class T> block_ptr<T> own(void *address) const noexcept
    {
        return block_ptr<T>(static_cast<std::remove_extent_t<T> *>(address), {get()});
    }
};

namespace detail
{

[[noreturn, gnu::cold]] inline void throw_bad_alloc()
{
#ifdef __cpp_exceptions
    throw std::bad_alloc();
#else
    std::abort();
#endif
}

inline void *heap_allocate(memclient_heap *from, std::size_t bytes, std::size_t alignment)
{
    void *made = nullptr;

    if (alignment > heap::alignment ? memclient_heap_alloc_aligned(from, bytes, alignment, &made) < 0
                                    : memclient_heap_alloc(from, bytes, &made) < 0)
        throw_bad_alloc();
    return made;
}

} // namespace detail

/*
 * What containers of std::pmr allocate from: each allocation is a block. It throws std::bad_alloc if no block is free,
 * or the heap has none that is large enough and aligned as wanted, of which sentence() tells. Two resources of one heap
 * object are equal: what one has allocated, the other may deallocate. Many small objects are better off in a std::pmr
 * pool or monotonic buffer that allocates from this one. Threads may share it.
 */
class heap_resource final : public std::pmr::memory_resource
{
  public:
    explicit heap_resource(const heap &from) noexcept : heap_(from.get()) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return detail::heap_allocate(heap_, bytes, alignment);
    }
    void do_deallocate(void *address, std::size_t, std::size_t) override { (void)memclient_heap_free(heap_, address); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#ifdef __cpp_rtti
        const auto *same = dynamic_cast<const heap_resource *>(&other);

        return same && same->heap_ == heap_;
#else
        return this == &other;
#endif
    }

    memclient_heap *heap_;
};

/* The same for other containers, without a virtual call: std::vector<int, heap_allocator<int>> numbers(heap). */
template <class T> class heap_allocator
{
  public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    heap_allocator(const heap &from) noexcept : heap_(from.get()) {}
    template <class U> heap_allocator(const heap_allocator<U> &other) noexcept : heap_(other.get()) {}

    [[nodiscard]] T *allocate(std::size_t n)
    {
        if (n > std::numeric_limits<std::size_t>::max() / sizeof(T))
            detail::throw_bad_alloc();
        return static_cast<T *>(detail::heap_allocate(heap_, n * sizeof(T), alignof(T)));
    }
    void deallocate(T *address, std::size_t) noexcept { (void)memclient_heap_free(heap_, address); }
    memclient_heap *get() const noexcept { return heap_; }

  private:
    memclient_heap *heap_;
};
template <class T, class U> bool operator==(const heap_allocator<T> &a, const heap_allocator<U> &b) noexcept
{
    return a.get() == b.get();
}
template <class T, class U> bool operator!=(const heap_allocator<T> &a, const heap_allocator<U> &b) noexcept
{
    return !(a == b);
}

} // namespace memclient
