/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two small allocators in the manner of nnabla's, which know memory by its class only: one that divides blocks and
 * merges them again, and one that puts chunks behind each other. Both keep what was freed, and when there is no memory
 * they give all of that back and try once more.
 */
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nbla/exception.hpp>
#include <nbla/memory/memory.hpp>

class Retrying
{
  public:
    int flushes = 0;

  protected:
    ~Retrying() = default;
    virtual void flush() = 0;

    template <typename Call> void retry(Call call)
    {
        try {
            call();
        } catch (const nbla::Exception &) {
            flushes++;
            flush();
            call();
        }
    }
};

template <class MemoryType> class DividingAllocator final : public Retrying
{
  public:
    using Block = std::shared_ptr<nbla::Memory>;

    Block alloc(std::size_t bytes, const std::string &device_id)
    {
        Block block;
        const std::size_t rounded = (bytes + unit - 1) / unit * unit;
        auto found = cache_.lower_bound(Key(rounded, nullptr));

        if (found != cache_.end()) {
            block = found->second;
            cache_.erase(found);
        } else {
            block = std::make_shared<MemoryType>(rounded, device_id);
            retry([&] { block->alloc(); });
        }
        if (block->bytes() > rounded)
            keep(block->divide(rounded));
        block->lock();
        return block;
    }

    void free(const Block &block)
    {
        block->release();
        merge(block, block->next());
        merge(block, block->prev());
        keep(block);
    }

    std::size_t cached() const { return cache_.size(); }

    /* Only whole pieces go: of others a part is in use. */
    void flush() override
    {
        for (auto each = cache_.begin(); each != cache_.end();)
            each = each->second->bytes_active() ? cache_.erase(each) : std::next(each);
    }

  private:
    using Key = std::pair<std::size_t, nbla::Memory *>;
    static constexpr std::size_t unit = 512;

    void keep(const Block &block) { cache_[Key(block->bytes(), block.get())] = block; }

    /* A merged block keeps its bytes, by which it is found. */
    void merge(const Block &block, nbla::Memory *neighbour)
    {
        block->try_merge(neighbour);
        if (neighbour && neighbour->disabled())
            cache_.erase(Key(neighbour->bytes(), neighbour));
    }

    std::map<Key, Block> cache_;
};

template <class PhysicalType, class VirtualType> class GrowingAllocator final : public Retrying
{
  public:
    using Block = std::shared_ptr<nbla::Memory>;
    int grown = 0, moved = 0;

    explicit GrowingAllocator(std::size_t chunk) : chunk_(chunk) {}

    /* The largest block that was freed and is not too large, grown; or a new one. */
    Block alloc(std::size_t bytes, const std::string &device_id)
    {
        const std::size_t rounded = (bytes + chunk_ - 1) / chunk_ * chunk_;
        auto found = cache_.upper_bound(rounded);

        if (found == cache_.begin())
            return bind(chunks(rounded, device_id), device_id);
        const Block block = (--found)->second;
        cache_.erase(found);
        nbla::VecPhysicalMemoryPtr more = chunks(rounded - block->bytes(), device_id);
        if (block->grow(more)) {
            block->append_physical_memories(more);
            grown++;
            return block;
        }
        /* the block's chunks are in two ranges until the old one ends */
        nbla::VecPhysicalMemoryPtr all = block->get_physical_memory();
        all.insert(all.end(), more.begin(), more.end());
        moved++;
        const Block other = bind(all, device_id);
        block->unbind();
        return other;
    }

    void free(const Block &block)
    {
        block->lock_device_memory();
        cache_.emplace(block->bytes(), block);
    }

    void flush() override
    {
        for (const auto &each : cache_)
            if (each.second->get_device_memory_state() == nbla::DeviceMemoryState::Unlocked)
                each.second->unbind();
        cache_.clear();
    }

  private:
    nbla::VecPhysicalMemoryPtr chunks(std::size_t bytes, const std::string &device_id)
    {
        nbla::VecPhysicalMemoryPtr made;

        for (std::size_t have = 0; have < bytes; have += made.back()->bytes())
            retry([&] { made.push_back(std::make_shared<PhysicalType>(chunk_, device_id)); });
        return made;
    }

    static Block bind(const nbla::VecPhysicalMemoryPtr &made, const std::string &device_id)
    {
        std::size_t bytes = 0;

        for (const auto &each : made)
            bytes += each->bytes();
        const Block block = std::make_shared<VirtualType>(bytes, device_id, made);
        block->bind();
        return block;
    }

    const std::size_t chunk_;
    std::multimap<std::size_t, Block> cache_;
};
