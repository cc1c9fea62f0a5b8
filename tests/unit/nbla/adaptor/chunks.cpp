/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory in C++: what bind(), grow() and unbind() do for nnabla's class, and an allocator that lives on it. */
#include "check.hpp"

#include <cstring>
#include <random>

#include "allocators.hpp"

namespace
{

using nbla_memoryd::MemorydPhysicalMemory;
using nbla_memoryd::MemorydVirtualMemory;

constexpr std::size_t chunk = 64 << 10;

nbla::VecPhysicalMemoryPtr make_chunks(std::size_t n)
{
    nbla::VecPhysicalMemoryPtr made;

    while (n--)
        made.push_back(std::make_shared<MemorydPhysicalMemory>(chunk, ""));
    return made;
}

void test_physical()
{
    MemorydPhysicalMemory odd(1, "");

    check(odd.allocated() && odd.bytes() > 1 && odd.bytes() % 4096 == 0);
    check(odd.alloc() == odd.bytes());
    check_throws(memory, MemorydPhysicalMemory(SIZE_MAX / 4, ""));
}

void test_unbound()
{
    MemorydVirtualMemory memory(2 * chunk, "", make_chunks(2));
    auto more = make_chunks(1);

    check(memory.disabled() && !memory.bytes_active() && memory.bytes() == 2 * chunk);
    check_throws(memory, memory.alloc());
    check_throws(memory, memory.divide(chunk));
    check_throws(memory, memory.grow(more));
    memory.unbind();
    check(memory.disabled() && memory.get_physical_memory().size() == 2);
}

void test_grow()
{
    MemorydVirtualMemory memory(2 * chunk, "", make_chunks(2));
    auto none = make_chunks(0), more = make_chunks(1);

    memory.bind();
    check_throws(memory, memory.bind());
    check(memory.bytes_active() == 2 * chunk);
    char *const base = static_cast<char *>(memory.pointer());
    std::memcpy(base + 2 * chunk - 4, "abc", 4);
    check(memory.grow(none) && memory.bytes() == 2 * chunk);
    check(memory.grow(more));
    check(memory.pointer() == base && memory.bytes() == 3 * chunk);
    check(memory.get_physical_memory().size() == 2);
    memory.append_physical_memories(more);
    std::memcpy(base + 3 * chunk - 4, "xyz", 4);

    memory.unbind();
    check(memory.disabled() && memory.bytes() == 3 * chunk && memory.get_physical_memory().size() == 3);
    memory.unbind();

    /* the chunks have what was written, here and in two places at once */
    memory.bind();
    MemorydVirtualMemory twice(3 * chunk, "", memory.get_physical_memory());
    twice.bind();
    char *const here = static_cast<char *>(memory.pointer()), *const there = static_cast<char *>(twice.pointer());
    check(here != there && !std::strcmp(there + 2 * chunk - 4, "abc") && !std::strcmp(there + 3 * chunk - 4, "xyz"));
    there[chunk] = 5;
    check(here[chunk] == 5);

    /* until there are no addresses behind it; then nothing has changed */
    nbla::VecPhysicalMemoryPtr many(16, std::make_shared<MemorydPhysicalMemory>(1 << 20, ""));
    std::size_t bytes = memory.bytes();
    while (memory.grow(many)) {
        bytes += 16 << 20;
        check(memory.pointer() == here && memory.bytes() == bytes);
    }
    check(memory.pointer() == here && memory.bytes() == bytes);
    memory.clear_physical_memory();
    check(memory.get_physical_memory().empty() && here[chunk] == 5);
}

class ForeignChunk : public nbla::PhysicalMemory
{
  public:
    using nbla::PhysicalMemory::PhysicalMemory;
    virtual ~ForeignChunk() = default;
    std::size_t alloc() override { return bytes_; }
};

void test_errors()
{
    nbla::VecPhysicalMemoryPtr foreign(1, std::make_shared<ForeignChunk>(chunk, ""));
    MemorydVirtualMemory memory(chunk, "", foreign), small(2 * chunk, "", make_chunks(1));

    check_throws(type, memory.bind());
    check_throws(memory, small.bind());
    check_throws(value, MemorydVirtualMemory(chunk, "no such device", make_chunks(1)));
    memory.get_physical_memory() = make_chunks(1);
    memory.bind();
    check_throws(type, memory.grow(foreign));
    check(memory.bytes() == chunk && !memory.disabled());
}

void test_shared()
{
    auto chunks = make_chunks(1);
    auto &first = static_cast<MemorydPhysicalMemory &>(*chunks[0]);
    MemorydVirtualMemory memory(chunk, "", chunks);
    struct memclient_token token;
    uint64_t offset, length;
    nbla_physical_memory *opened = nullptr;

    memory.bind();
    check(!nbla_physical_memory_token(first.handle(), &token, &offset, &length));
    check(!nbla_physical_memory_open_token(nullptr, &token, offset, length, nullptr, &opened));
    MemorydVirtualMemory again(chunk, "", {std::make_shared<MemorydPhysicalMemory>(opened)});
    again.bind();
    std::memcpy(again.pointer(), "seen", 5);
    check(!std::strcmp(static_cast<char *>(memory.pointer()), "seen"));
    memory.lock_device_memory();
    check(memory.get_device_memory_state() == nbla::DeviceMemoryState::Unlocked);
    again.lock_device_memory();
    check(memory.get_device_memory_state() == nbla::DeviceMemoryState::Locked);
    again.unbind();
    check(memory.get_device_memory_state() == nbla::DeviceMemoryState::Unlocked);
}

void test_allocator()
{
    std::mt19937 random(1);
    GrowingAllocator<MemorydPhysicalMemory, MemorydVirtualMemory> allocator(chunk);
    std::vector<std::pair<std::shared_ptr<nbla::Memory>, char>> used;

    for (int i = 0; i < 400; i++) {
        if (used.size() < 8 && random() % 2) {
            const auto block = allocator.alloc(random() % (10 * chunk) + 1, "");
            const char value = static_cast<char>(random());

            std::memset(block->pointer(), value, block->bytes());
            used.emplace_back(block, value);
        } else if (!used.empty()) {
            const auto at = used.begin() + static_cast<std::ptrdiff_t>(random() % used.size());
            const char *bytes = static_cast<const char *>(at->first->const_pointer());

            for (std::size_t j = 0; j < at->first->bytes(); j++)
                check(bytes[j] == at->second);
            allocator.free(at->first);
            used.erase(at);
        }
    }
    check(allocator.grown > 0);
}

} // namespace

int main()
try {
    test_physical();
    test_unbound();
    test_grow();
    test_errors();
    test_shared();
    test_allocator();
    return EXIT_SUCCESS;
} catch (const std::exception &problem) {
    std::fprintf(stderr, "chunks: %s\n", problem.what());
    return EXIT_FAILURE;
}
