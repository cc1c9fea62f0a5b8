/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nnabla's memory classes with memory of memoryd, as template arguments for nnabla's own allocators.
 *
 *     #include <memclient/nbla_memory.hpp>
 *     #include <nbla/memory/caching_allocator_with_buckets.hpp>
 *     #include <nbla/memory/virtual_caching_allocator.hpp>
 *
 *     using namespace nbla_memoryd;
 *     auto caching = std::make_shared<nbla::CachingAllocatorWithBuckets<MemorydMemory>>();
 *     auto growing = std::make_shared<nbla::VirtualCachingAllocator<MemorydPhysicalMemory, MemorydVirtualMemory>>();
 *
 * This needs C++14 and nnabla's headers; link with memclient-nbla's library and nnabla's. Device ids are those of
 * <memclient/nbla.h>; nnabla's own "" is the broker's default.
 *
 * Division of labour. nbla::Memory has the logic: links, the lock, sizes, and the first checks. These classes have only
 * what it leaves to a derived class, each by one object of the C library. So the links are nnabla's alone: the
 * library's blocks are linked only while two of them are merged, and it checks that they are adjacent parts of one
 * allocation.
 *
 * Errors are nbla::Exception with the code and the sentence of the C library. A failed allocation is
 * error_code::memory, upon which nnabla's allocators free their caches and try again.
 *
 * Where the document of nbla::Memory and nnabla's code differ, these classes inherit what the code does: try_merge()
 * with a block that is no neighbour adds that block's bytes and disables it. Its memory is released with the object, so
 * nothing is lost, but bytes() is then more than there is.
 */
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/* memory.hpp needs what exception.hpp declares, and does not include it */
#include <nbla/exception.hpp>
#include <nbla/memory/memory.hpp>

#include "nbla.h"

namespace nbla_memoryd
{

namespace detail
{

static_assert(static_cast<int>(nbla::error_code::unclassified) == -NBLA_ERROR_UNCLASSIFIED - 1 &&
                  static_cast<int>(nbla::error_code::value) == -NBLA_ERROR_VALUE - 1 &&
                  static_cast<int>(nbla::error_code::memory) == -NBLA_ERROR_MEMORY - 1 &&
                  static_cast<int>(nbla::error_code::runtime) == -NBLA_ERROR_RUNTIME - 1,
              "the codes of <memclient/nbla.h> are nnabla's");

[[noreturn]] inline void fail(int code, const std::string &message, const char *function, int line)
{
    throw nbla::Exception(static_cast<nbla::error_code>(-code - 1), message, function, __FILE__, line);
}

/* Throws the last failure of the C library in this thread. */
[[noreturn]] inline void fail(const char *function, int line)
{
    fail(::nbla_error_code(), ::nbla_error(), function, line);
}

struct Destroy {
    void operator()(nbla_memory *memory) const { nbla_memory_destroy(memory); }
    void operator()(nbla_physical_memory *chunk) const { nbla_physical_memory_unref(chunk); }
};
using MemoryHandle = std::unique_ptr<nbla_memory, Destroy>;
using ChunkHandle = std::unique_ptr<nbla_physical_memory, Destroy>;

} // namespace detail

/* A block of a buffer of memoryd, like nbla::CpuMemory with memory of malloc(). */
class MemorydMemory : public nbla::Memory
{
  public:
    /* error_code::value: the device does not exist. */
    MemorydMemory(std::size_t bytes, const std::string &device_id)
        : MemorydMemory(nbla_memory_new(nullptr, bytes, device_id.c_str()))
    {
    }

    /* Takes over an object of the C library that is linked to no other, as nbla_memory_open_token() gives it. */
    explicit MemorydMemory(nbla_memory *memory) : MemorydMemory(detail::MemoryHandle(made(memory))) {}

    MemorydMemory(const MemorydMemory &) = delete;
    MemorydMemory &operator=(const MemorydMemory &) = delete;

    /* The head of divided memory may be destroyed before the rest. Any other block must have been merged, as of
     * nbla::CpuMemory. */
    ~MemorydMemory() override
    {
        if (ptr_ && prev()) {
            std::fputs("Aborting: memory is freed that was divided from another block and not merged again.\n", stderr);
            std::abort();
        }
        leave();
    }

    /* The object of the C library, to export the memory or make a token of it. It stays this object's, and so do its
     * links, its lock and its size. */
    nbla_memory *handle() const { return handle_.get(); }

    /* Locked while another process has locked its opening of this memory. */
    nbla::DeviceMemoryState get_device_memory_state() override
    {
        return nbla_memory_get_device_state(handle()) == NBLA_DEVICE_LOCKED ? nbla::DeviceMemoryState::Locked
                                                                            : nbla::DeviceMemoryState::Unlocked;
    }

    /* Locks memory that was opened: its maker finds it Locked until unlock_device_memory(), or until this object ends.
     * Does nothing for other memory, so that nnabla's allocators find theirs Unlocked. */
    void lock_device_memory() override { nbla_memory_lock_device(handle()); }
    void unlock_device_memory() { nbla_memory_unlock_device(handle()); }

  protected:
    explicit MemorydMemory(detail::MemoryHandle memory)
        : nbla::Memory(nbla_memory_bytes(memory.get()), nbla_memory_device_id(memory.get())), handle_(std::move(memory))
    {
        ptr_ = nbla_memory_pointer(handle());
    }

    bool alloc_impl() override
    {
        if (nbla_memory_alloc(handle()) < 0)
            detail::fail(__func__, __LINE__);
        ptr_ = nbla_memory_pointer(handle());
        return true;
    }

    std::shared_ptr<nbla::Memory> divide_impl(std::size_t second_start) override
    {
        nbla_memory *second = nullptr;

        if (nbla_memory_divide(handle(), second_start, &second) < 0)
            detail::fail(__func__, __LINE__);
        detail::MemoryHandle rest(second);
        part(handle());
        part(second);
        return std::shared_ptr<nbla::Memory>(new MemorydMemory(std::move(rest)));
    }

    void merge_next_impl(nbla::Memory *from) override
    {
        nbla_memory *second = of(from);

        nbla_memory_associate_consecutive(handle(), second);
        merge(second);
    }

    void merge_prev_impl(nbla::Memory *from) override
    {
        nbla_memory *first = of(from);

        nbla_memory_associate_consecutive(first, handle());
        merge(first);
        ptr_ = nbla_memory_pointer(handle());
    }

  private:
    static nbla_memory *made(nbla_memory *memory)
    {
        if (!memory)
            detail::fail("MemorydMemory", __LINE__);
        return memory;
    }

    static nbla_memory *of(nbla::Memory *memory)
    {
        auto *block = dynamic_cast<MemorydMemory *>(memory);

        if (!block)
            detail::fail(NBLA_ERROR_TYPE, "only memory of memoryd can be merged with it", __func__, __LINE__);
        return block->handle();
    }

    static void part(nbla_memory *block)
    {
        nbla_memory_associate_consecutive(nullptr, block);
        nbla_memory_associate_consecutive(block, nullptr);
    }

    /* Merges blocks that are linked in the C library, and unlinks them also when it throws. */
    void merge(nbla_memory *from)
    {
        int merged = nbla_memory_try_merge(handle(), from);

        part(handle());
        part(from);
        if (merged < 0)
            detail::fail(__func__, __LINE__);
    }

    /* Clears the links that lead here. A merged block, without memory in the C library, keeps its own, which may lead
     * to what is gone. */
    void leave()
    {
        if (!nbla_memory_pointer(handle()))
            return;
        if (next() && next()->prev() == this)
            associate_consecutive(nullptr, next());
        if (prev() && prev()->next() == this)
            associate_consecutive(prev(), nullptr);
    }

    detail::MemoryHandle handle_;
};

/* A chunk: physical memory of memoryd without an address. */
class MemorydPhysicalMemory : public nbla::PhysicalMemory
{
  public:
    /* Allocates at once, and bytes() are whole pages: so VirtualCachingAllocator counts what there is, and meets a full
     * pool or a limit where it frees its cache and tries again. error_code::value: the device does not exist. */
    MemorydPhysicalMemory(std::size_t bytes, const std::string &device_id)
        : MemorydPhysicalMemory(nbla_physical_memory_new(nullptr, bytes, device_id.c_str()), device_id)
    {
    }

    /* Takes over an object of the C library, as nbla_physical_memory_open_token() gives it. */
    explicit MemorydPhysicalMemory(nbla_physical_memory *chunk, const std::string &device_id = "")
        : nbla::PhysicalMemory(0, device_id), handle_(chunk)
    {
        if (!chunk || !allocate())
            detail::fail(__func__, __LINE__);
    }

    MemorydPhysicalMemory(const MemorydPhysicalMemory &) = delete;
    MemorydPhysicalMemory &operator=(const MemorydPhysicalMemory &) = delete;
    virtual ~MemorydPhysicalMemory() = default;

    /* Returns bytes(): the chunk has its memory already. */
    std::size_t alloc() override { return allocate(); }

    nbla_physical_memory *handle() const { return handle_.get(); }

  private:
    std::size_t allocate()
    {
        const std::size_t bytes = nbla_physical_memory_alloc(handle());

        if (bytes) {
            bytes_ = bytes;
            allocated_ = true;
        }
        return bytes;
    }

    detail::ChunkHandle handle_;
};

/* Chunks behind each other in a range of addresses. */
class MemorydVirtualMemory : public MemorydMemory
{
  public:
    /* The chunks are MemorydPhysicalMemory, and together have at least `bytes`. */
    MemorydVirtualMemory(std::size_t bytes, const std::string &device_id, nbla::VecPhysicalMemoryPtr chunks)
        : MemorydMemory(nbla_memory_new_virtual(nullptr, bytes, device_id.c_str(), nullptr, 0))
    {
        memory_type_ = MemoryType::Virtual;
        p_memories_ = std::move(chunks);
    }

  protected:
    /* The list is nnabla's; bind_impl() copies it to the C library's. */
    void bind_impl() override
    {
        const auto chunks = handles(p_memories_);

        nbla_memory_clear_phys(handle());
        if (nbla_memory_append_phys(handle(), chunks.data(), chunks.size()) < 0 || nbla_memory_bind(handle()) < 0)
            detail::fail(__func__, __LINE__);
        ptr_ = nbla_memory_pointer(handle());
    }

    void unbind_impl() override
    {
        if (nbla_memory_unbind(handle()) < 0)
            detail::fail(__func__, __LINE__);
    }

    bool grow_impl(nbla::VecPhysicalMemoryPtr &more) override
    {
        const auto chunks = handles(more);
        const int grown = nbla_memory_grow(handle(), chunks.data(), chunks.size());

        if (grown < 0)
            detail::fail(__func__, __LINE__);
        bytes_ = nbla_memory_bytes(handle());
        return grown != 0;
    }

  private:
    static std::vector<nbla_physical_memory *> handles(const nbla::VecPhysicalMemoryPtr &chunks)
    {
        std::vector<nbla_physical_memory *> found;

        for (const auto &each : chunks) {
            const auto *chunk = dynamic_cast<const MemorydPhysicalMemory *>(each.get());

            if (!chunk)
                detail::fail(NBLA_ERROR_TYPE, "only physical memory of memoryd can be bound", __func__, __LINE__);
            found.push_back(chunk->handle());
        }
        return found;
    }
};

} // namespace nbla_memoryd
