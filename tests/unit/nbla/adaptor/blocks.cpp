/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random sequences of what a program can do with blocks, done with memory of malloc() and of memoryd side by side: they
 * give the same answers, have the same contents and throw the same. Then what only memoryd's memory must stand.
 */
#include "check.hpp"

#include <cstring>
#include <random>

#include "allocators.hpp"

namespace
{

using Block = std::shared_ptr<nbla::Memory>;

/* A block and its twin, and the same of all others: positions in the list stand for pointers. */
struct Pair {
    Block cpu, memoryd;
};

class Twins
{
  public:
    explicit Twins(unsigned seed) : random_(seed) {}

    void run(int steps)
    {
        while (steps--) {
            step();
            compare();
        }
        while (!blocks_.empty())
            destroy_all();
    }

  private:
    std::size_t any(std::size_t below) { return random_() % below; }
    Pair &one() { return blocks_[any(blocks_.size())]; }

    template <typename Call> void both(Pair &pair, Call call)
    {
        check(code_of([&] { call(*pair.cpu); }) == code_of([&] { call(*pair.memoryd); }));
    }

    void make()
    {
        const std::size_t bytes = any(8) ? any(20000) : any(3) << 16;

        blocks_.push_back(
            {std::make_shared<CpuMemory>(bytes, ""), std::make_shared<nbla_memoryd::MemorydMemory>(bytes, "")});
    }

    /* A block that was merged has links still, and malloc()'s would take new memory for what they lead to. */
    void alloc()
    {
        Pair &pair = one();

        if (!pair.cpu->disabled() || (!pair.cpu->next() && !pair.cpu->prev()))
            both(pair, [](nbla::Memory &memory) { memory.alloc(); });
    }

    /* Dividing what has no memory is an accident with malloc()'s, so it is not tried here. */
    void divide()
    {
        Pair &pair = one();
        const std::size_t at = any(pair.cpu->bytes() + 2);
        Pair second;

        if (pair.cpu->disabled())
            return;
        both(pair, [&](nbla::Memory &memory) {
            (&memory == pair.cpu.get() ? second.cpu : second.memoryd) = memory.divide(at);
        });
        if (second.cpu)
            blocks_.push_back(second);
    }

    void merge()
    {
        Pair &pair = one();
        const bool behind = any(2);

        if (pair.cpu->disabled())
            return;
        pair.cpu->try_merge(behind ? pair.cpu->next() : pair.cpu->prev());
        pair.memoryd->try_merge(behind ? pair.memoryd->next() : pair.memoryd->prev());
    }

    void write()
    {
        Pair &pair = one();

        if (pair.cpu->disabled())
            return;
        const std::size_t from = any(pair.cpu->bytes()), length = any(pair.cpu->bytes() - from) + 1;
        const int value = static_cast<int>(any(256));
        std::memset(static_cast<char *>(pair.cpu->pointer()) + from, value, length);
        std::memset(static_cast<char *>(pair.memoryd->pointer()) + from, value, length);
    }

    /* malloc()'s may only go as a whole, merged away, or before they had memory. */
    void destroy()
    {
        const std::size_t i = any(blocks_.size());

        if (blocks_[i].cpu->disabled() || blocks_[i].cpu->bytes_active())
            blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
    }

    /* Each takes over all that follows, and goes. */
    void destroy_all()
    {
        for (std::size_t i = 0; i < blocks_.size(); i++) {
            Pair &pair = blocks_[i];

            if (pair.cpu->disabled() || pair.cpu->prev())
                continue;
            while (nbla::Memory *next = pair.cpu->next()) {
                next->release();
                pair.memoryd->next()->release();
                pair.cpu->try_merge(next);
                pair.memoryd->try_merge(pair.memoryd->next());
                compare();
            }
        }
        blocks_.clear();
    }

    void step()
    {
        if (blocks_.empty() || (blocks_.size() < 40 && !any(4)))
            return make();
        switch (any(8)) {
        case 0:
            return alloc();
        case 1:
        case 2:
            return divide();
        case 3:
            return merge();
        case 4:
            return write();
        case 5:
            return destroy();
        case 6:
            return both(one(), [](nbla::Memory &memory) { memory.locked() ? memory.release() : memory.lock(); });
        default: {
            const std::size_t bytes = any(2) ? any(10000) : SIZE_MAX - any(2);
            return both(one(), [bytes](nbla::Memory &memory) { memory.set_requested_bytes(bytes); });
        }
        }
    }

    /* Which of the blocks it is; those of merged ones lead anywhere. */
    template <typename Side> std::ptrdiff_t index(const nbla::Memory *memory, Side side) const
    {
        for (std::size_t i = 0; i < blocks_.size(); i++)
            if (side(blocks_[i]).get() == memory)
                return static_cast<std::ptrdiff_t>(i);
        return -1;
    }

    void compare() const
    {
        const auto cpus = [](const Pair &pair) { return pair.cpu; };
        const auto memoryds = [](const Pair &pair) { return pair.memoryd; };

        for (const Pair &pair : blocks_) {
            nbla::Memory &a = *pair.cpu, &b = *pair.memoryd;

            check(a.bytes() == b.bytes() && a.requested_bytes() == b.requested_bytes());
            check(a.bytes_active() == b.bytes_active());
            check(a.disabled() == b.disabled() && a.locked() == b.locked());
            check(a.device_id() == b.device_id() && b.const_pointer() == b.pointer());
            if (a.disabled())
                continue;
            check(index(a.next(), cpus) == index(b.next(), memoryds));
            check(index(a.prev(), cpus) == index(b.prev(), memoryds));
            check(!std::memcmp(a.pointer(), b.pointer(), a.bytes()));
        }
    }

    std::mt19937 random_;
    std::vector<Pair> blocks_;
};

/* The allocator gives out the same sizes at the same places of what it holds, and what was written stays. */
void test_allocator(unsigned seed)
{
    std::mt19937 random(seed);
    DividingAllocator<nbla_memoryd::MemorydMemory> allocator;
    std::vector<std::pair<Block, int>> used;

    for (int i = 0; i < 1000; i++) {
        if (used.size() < 50 && random() % 2) {
            const std::size_t bytes = random() % 100000 + 1;
            const int value = static_cast<int>(random() % 256);

            used.emplace_back(allocator.alloc(bytes, ""), value);
            check(used.back().first->bytes() >= bytes);
            std::memset(used.back().first->pointer(), value, used.back().first->bytes());
        } else if (!used.empty()) {
            const auto at = used.begin() + static_cast<std::ptrdiff_t>(random() % used.size());
            const auto *bytes = static_cast<const unsigned char *>(at->first->const_pointer());

            for (std::size_t j = 0; j < at->first->bytes(); j++)
                check(bytes[j] == at->second);
            allocator.free(at->first);
            used.erase(at);
        }
    }
    for (const auto &each : used)
        allocator.free(each.first);
    used.clear();
    allocator.flush();
    check(!allocator.cached());
}

void test_errors()
{
    nbla_memoryd::MemorydMemory memory(100, ""), other(100, "");
    CpuMemory foreign(100, "");

    check_throws(value, nbla_memoryd::MemorydMemory(100, "no such device"));
    check_throws(value, nbla_memoryd::MemorydPhysicalMemory(100, "numa:63"));
    check_throws(memory, memory.divide(50));
    check_throws(memory, memory.bind());
    check_throws(memory, nbla_memoryd::MemorydMemory(SIZE_MAX / 4, "").alloc());
    memory.alloc();
    other.alloc();
    foreign.alloc();
    check_throws(value, memory.alloc());
    /* linked, but never one piece */
    nbla::Memory::associate_consecutive(&memory, &other);
    check_throws(runtime, memory.try_merge(&other));
    check_throws(runtime, other.try_merge(&memory));
    check(memory.bytes() == 100 && !other.disabled());
    nbla::Memory::associate_consecutive(&memory, &foreign);
    check_throws(type, memory.try_merge(&foreign));
    nbla::Memory::associate_consecutive(&memory, nullptr);
    nbla::Memory::associate_consecutive(nullptr, &other);
    nbla::Memory::associate_consecutive(nullptr, &foreign);
}

/* nnabla's class disables a block that is no neighbour. Nothing of it is lost, and nothing else ends with it. */
void test_no_neighbour()
{
    nbla_memoryd::MemorydMemory memory(4096, "");
    Block from = std::make_shared<nbla_memoryd::MemorydMemory>(8192, ""), rest;

    memory.alloc();
    from->alloc();
    rest = from->divide(4096);
    std::memset(rest->pointer(), 7, rest->bytes());
    memory.try_merge(from.get());
    check(from->disabled() && memory.bytes() == 8192);
    from.reset();
    check(!rest->prev() && *static_cast<char *>(rest->pointer()) == 7);
}

void test_head_first()
{
    Block head = std::make_shared<nbla_memoryd::MemorydMemory>(3 * 4096, ""), middle, tail;

    head->alloc();
    middle = head->divide(4096);
    tail = middle->divide(4096);
    std::memset(tail->pointer(), 9, tail->bytes());
    head.reset();
    check(!middle->prev() && middle->next() == tail.get());
    middle.reset();
    check(!tail->prev() && *static_cast<char *>(tail->pointer()) == 9);
    check(tail->bytes_active() == 4096);
}

void test_shared()
{
    using nbla_memoryd::MemorydMemory;
    MemorydMemory memory(8192, "");
    struct memclient_token token;
    uint64_t offset, length;
    nbla_memory *opened = nullptr;

    memory.alloc();
    const Block rest = memory.divide(4096);
    check(!nbla_memory_token(static_cast<MemorydMemory &>(*rest).handle(), &token, &offset, &length));
    check(offset == 4096 && length == 4096);
    check(!nbla_memory_open_token(nullptr, &token, offset, length, nullptr, &opened));
    {
        MemorydMemory again(opened);

        check(again.bytes() == 4096 && !again.next() && !again.prev());
        std::memcpy(again.pointer(), "seen", 5);
        check(!std::strcmp(static_cast<char *>(rest->pointer()), "seen"));
        rest->lock_device_memory();
        check(rest->get_device_memory_state() == nbla::DeviceMemoryState::Unlocked);
        again.lock_device_memory();
        check(rest->get_device_memory_state() == nbla::DeviceMemoryState::Locked);
        check(memory.get_device_memory_state() == nbla::DeviceMemoryState::Unlocked);
        again.unlock_device_memory();
        check(rest->get_device_memory_state() == nbla::DeviceMemoryState::Unlocked);
        again.lock_device_memory();
    }
    check(rest->get_device_memory_state() == nbla::DeviceMemoryState::Unlocked);
    memory.try_merge(rest.get());
}

} // namespace

int main(int argc, char **argv)
try {
    const unsigned first = argc > 1 ? static_cast<unsigned>(std::stoul(argv[1])) : 1;

    for (unsigned seed = first; seed < first + 10; seed++)
        Twins(seed).run(500);
    test_allocator(first);
    test_errors();
    test_no_neighbour();
    test_head_first();
    test_shared();
    return EXIT_SUCCESS;
} catch (const std::exception &problem) {
    std::fprintf(stderr, "blocks: %s\n", problem.what());
    return EXIT_FAILURE;
}
