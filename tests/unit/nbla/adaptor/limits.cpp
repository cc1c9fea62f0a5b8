/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On a broker that gives a user LIMIT bytes: where there is no more, an allocator hears of error_code::memory, gives
 * back what it keeps, tries again, and has its memory.
 */
#include "check.hpp"

#include <cstring>

#include "allocators.hpp"

namespace
{

constexpr std::size_t limit = LIMIT, piece = 1 << 20;

/* Four blocks that are freed, then one that is larger than what is left beside them. */
template <class Allocator> void test_flush(Allocator &allocator)
{
    std::vector<std::shared_ptr<nbla::Memory>> used;

    for (std::size_t bytes = 0; bytes + piece <= limit; bytes += piece)
        used.push_back(allocator.alloc(piece, ""));
    check(!allocator.flushes);

    /* nothing is kept that could be given back */
    check_throws(memory, allocator.alloc(piece, ""));
    check(allocator.flushes == 1);

    for (const auto &each : used)
        allocator.free(each);
    used.clear();
    const auto large = allocator.alloc(limit, "");
    check(allocator.flushes >= 2);
    std::memset(large->pointer(), 1, large->bytes());
    check_throws(memory, allocator.alloc(piece, ""));
    allocator.free(large);
}

/* The same object may be asked again. */
void test_retry()
{
    auto half = std::make_shared<nbla_memoryd::MemorydMemory>(limit / 2, "");
    nbla_memoryd::MemorydMemory whole(limit, "");

    half->alloc();
    check_throws(memory, whole.alloc());
    check(whole.disabled() && whole.bytes() == limit);
    half.reset();
    whole.alloc();
    check(whole.bytes_active() == limit);
}

} // namespace

int main()
try {
    {
        DividingAllocator<nbla_memoryd::MemorydMemory> allocator;
        test_flush(allocator);
    }
    {
        GrowingAllocator<nbla_memoryd::MemorydPhysicalMemory, nbla_memoryd::MemorydVirtualMemory> allocator(piece);
        test_flush(allocator);
    }
    test_retry();
    return EXIT_SUCCESS;
} catch (const std::exception &problem) {
    std::fprintf(stderr, "limits: %s\n", problem.what());
    return EXIT_FAILURE;
}
