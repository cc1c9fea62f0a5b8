/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program forks with allocators that keep what was freed. Parent and child go on with them, at the same time: with
 * memory of memoryd as with malloc()'s, neither sees what the other writes.
 */
#include "check.hpp"

#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include "allocators.hpp"

namespace
{

constexpr int rounds = 20;

bool holds(nbla::Memory &memory, char byte)
{
    const char *pointer = static_cast<const char *>(memory.pointer());

    for (std::size_t i = 0; i < memory.bytes(); i++)
        if (pointer[i] != byte)
            return false;
    return true;
}

/* Takes blocks of all sizes that are kept, writes all of them, and finds what it wrote. */
template <typename Allocator> bool use(Allocator &allocator, char byte, std::size_t most)
{
    for (int round = 0; round < rounds; round++) {
        std::vector<std::shared_ptr<nbla::Memory>> blocks;

        for (std::size_t bytes = 512; bytes <= most; bytes *= 2)
            blocks.push_back(allocator.alloc(bytes, ""));
        for (const auto &block : blocks)
            std::memset(block->pointer(), byte, block->bytes());
        for (const auto &block : blocks)
            if (!holds(*block, byte))
                return false;
        usleep(1000);
        for (const auto &block : blocks)
            if (!holds(*block, byte))
                return false;
        for (const auto &block : blocks)
            allocator.free(block);
    }
    return true;
}

template <typename Allocator> void fork_with(Allocator &allocator, std::size_t most)
{
    /* one is in use all the time, in a page with free ones */
    const auto used = allocator.alloc(512, "");

    std::memset(used->pointer(), 'u', used->bytes());
    check(use(allocator, 'b', most));
    const pid_t child = fork();
    if (!child) {
        const bool right = holds(*used, 'u') && use(allocator, 'c', most) && holds(*used, 'u');

        std::memset(used->pointer(), 'd', used->bytes());
        _exit(!right);
    }
    check(child > 0);
    check(use(allocator, 'p', most));
    int status = -1;
    check(waitpid(child, &status, 0) == child && !status);
    check(holds(*used, 'u'));
    allocator.free(used);
}

} // namespace

int main()
{
    DividingAllocator<CpuMemory> cpu;
    DividingAllocator<nbla_memoryd::MemorydMemory> dividing;
    GrowingAllocator<nbla_memoryd::MemorydPhysicalMemory, nbla_memoryd::MemorydVirtualMemory> growing(1 << 16);

    fork_with(cpu, 1 << 20);
    fork_with(dividing, 1 << 20);
    fork_with(growing, 1 << 18);
    return 0;
}
