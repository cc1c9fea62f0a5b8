/* SPDX-License-Identifier: Apache-2.0 */
/* <memclient/heap.hpp>: blocks between processes, containers that one fills and another reads, a heap that is full. */
#include "check.hpp"

#include <memclient/heap.hpp>

#include <cstring>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

using memclient::block_ptr;
using memclient::heap;

memclient::heap_options sizes_of(std::uint64_t small, std::uint64_t large)
{
    memclient::heap_options options;

    options.block_sizes = {small, large};
    options.slab_size = 1 << 20;
    return options;
}

struct Frame {
    int width, height;
    char text[100];
};

/* Counts what is alive. */
struct Counted {
    explicit Counted(int *count) : count_(count) { ++*count_; }
    Counted(const Counted &) = delete;
    Counted &operator=(const Counted &) = delete;
    ~Counted() { --*count_; }

  private:
    int *count_;
};

struct Throwing {
    Throwing() { throw 7; }
};

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

void hand_over()
{
    Process other([](Process &parent) {
        const memclient::context broker;
        const heap there = heap::open_token(broker, parent.receive<memclient::token>());
        parent.send(there.member());
        const auto block = parent.receive<memclient::block>();
        block_ptr<Frame> frame = there.take<Frame>(block);
        std::error_code code;

        check(frame && frame->width == 640 && frame->height == 480 && !std::strcmp(frame->text, "hello"));
        check(memclient::is_at_home(frame.get()));
        check(!there.take<Frame>(block, code) && code == std::errc::connection_already_in_progress);
        frame->width = 1;
        parent.send(there.give(std::move(frame)));
        check(!frame);
        /* what this member has given and nobody taken ends with it */
        check(parent.receive<char>() == 't');
    });
    const memclient::context broker;
    const heap here = heap::create(broker, sizes_of(64, 4096));
    std::error_code code;

    other.send(here.share());
    const auto to = other.receive<std::uint64_t>();
    block_ptr<Frame> frame = here.make<Frame>(Frame{640, 480, "hello"});
    const Frame *at = frame.get();
    const memclient::block given = here.give(std::move(frame), to);
    check(!frame && here.query().blocks_given == 1);
    other.send(given);
    frame = here.take<Frame>(other.receive<memclient::block>());
    other.send('t');
    check(frame.get() == at && frame->width == 1 && here.query().blocks_mine == 1);
    /* what is not given stays here */
    (void)here.give(std::move(frame), to + 1000, code);
    check(code == std::errc::no_such_process && frame);
    frame.reset();
    check(here.query().blocks_mine == 0 && !here.take(given, code) && code == memclient::errc::stale);
}

struct Large {
    char text[1000];
};
struct alignas(4096) Page {
    char text[4096];
};

/* What who gave it calls it is not always true. */
void wrong_types()
{
    const memclient::context broker;
    const heap here = heap::create(broker, sizes_of(64, 4096));
    std::error_code code;

    memclient::block given = here.give(here.make<int>(1));
    check(!here.take<Large>(given, code) && code == std::errc::message_size && here.query().blocks_mine == 0);
    given = here.give(here.make<int>(2));
    try {
        (void)here.take<Large>(given);
        check(!"it throws");
    } catch (const memclient::error &error) {
        check(error.code() == std::errc::message_size && std::strstr(error.what(), "no room"));
    }
    /* it is freed, and the reference is used up */
    check(here.query().blocks_free == here.query().blocks && !here.take(given, code));
    check(code == memclient::errc::stale);
    /* a small block is a page only where one begins */
    block_ptr<> bytes = here.alloc(4096);
    const bool at_page = reinterpret_cast<std::uintptr_t>(bytes.get()) % alignof(Page) == 0;
    given = here.give(std::move(bytes));
    check(static_cast<bool>(here.take<Page>(given, code)) == at_page && (at_page || code == std::errc::message_size));
    given = here.give(here.make<Large>());
    check(static_cast<bool>(here.take<Large>(given)));
    check(here.query().blocks_mine == 0);
}

void lifetimes()
{
    const memclient::context broker;
    heap here = heap::create(broker, sizes_of(64, 4096));
    int count = 0;
    {
        const block_ptr<Counted> one = here.make<Counted>(&count), two = here.make<Counted>(&count);
        block_ptr<> bytes = here.alloc(3000);

        bytes[2999] = std::byte{1};
        check(here.block_bytes(bytes.get()) == 4096 && here.block_bytes(one.get()) == 64);
        check(count == 2 && here.query().blocks_mine == 3);
        try {
            (void)here.make<Throwing>();
            check(!"it throws");
        } catch (int) {
        }
        check(here.query().blocks_mine == 3);
    }
    check(!count && here.query().blocks_mine == 0);
    here.sweep();
    here.trim();
    check(!here.query().slabs);
    here.destroy();
    check(!here);
}

void readers()
{
    Process other([](Process &parent) {
        const memclient::context broker;
        const heap there = heap::open_token(broker, parent.receive<memclient::token>());
        const auto frame = there.take<const Frame>(parent.receive<memclient::block_token>());
        std::error_code code;

        check(!std::strcmp(frame->text, "only read") && !there.alloc(1, code));
        check(code == std::errc::operation_not_permitted);
        parent.send('r');
    });
    const memclient::context broker;
    const heap here = heap::create(broker, sizes_of(256, 4096));
    const heap::invitation invited = here.invite();

    other.send(invited.token);
    other.send(here.share(here.make<Frame>(Frame{1, 1, "only read"}), invited.member));
    check(other.receive<char>() == 'r');
}

void named()
{
    const memclient::context broker;
    memclient::heap_options options = sizes_of(64, 4096);
    std::error_code code;

    options.name = "cpp/heap";
    options.flags = memclient::heap_flag::keep_given;
    heap first = heap::create(broker, options);
    check(!heap::create(broker, options, code) && code == std::errc::file_exists);
    const heap second = heap::open_name(broker, "cpp/heap");
    check(second.member() != first.member() && second.query().members == 2);
    first.destroy();
    check(!heap::open_name(broker, "cpp/heap", code) && code == std::errc::no_such_file_or_directory);
    options = {};
    check(!heap::create(broker, options, code) && code == std::errc::invalid_argument);
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

struct Index {
    explicit Index(std::pmr::memory_resource *from) : words(from), numbers(from), by_word(from), order(from) {}

    std::pmr::vector<std::pmr::string> words;
    std::pmr::vector<std::uint64_t> numbers;
    std::pmr::unordered_map<std::pmr::string, std::size_t> by_word;
    std::pmr::map<std::size_t, std::pmr::string> order;
};

std::string word(std::size_t i)
{
    /* short ones lie in the string itself, long ones in a block */
    return std::string(i % 40, 'a') + std::to_string(i);
}

void read_index(const Index &index)
{
    check(memclient::is_at_home(&index) && memclient::is_at_home(index.words.data()));
    check(index.words.size() == 500 && index.numbers.size() == 3000 && index.order.size() == 500);
    for (std::size_t i = 0; i < index.words.size(); i++) {
        const auto found = index.by_word.find(std::pmr::string(word(i)));

        check(index.words[i].compare(word(i)) == 0 && found != index.by_word.end() && found->second == i);
        check(index.order.at(i) == index.words[i]);
    }
    for (std::size_t i = 0; i < index.numbers.size(); i++)
        check(index.numbers[i] == i * i);
}

/* One process makes containers in a heap, of many slabs, and ends them; another reads them, in between. */
void containers()
{
    Process other([](Process &parent) {
        const memclient::context broker;
        const heap there = heap::open_token(broker, parent.receive<memclient::token>());

        parent.send('o');
        block_ptr<> bytes = there.take(parent.receive<memclient::block>());
        check(there.query().slabs > 2);
        check(parent.receive<const void *>() == bytes.get());
        read_index(*reinterpret_cast<const Index *>(bytes.get()));
        parent.send(there.give(std::move(bytes)));
        check(parent.receive<char>() == 't');
    });
    const memclient::context broker;
    memclient::heap_options options;

    options.block_sizes = {64, 256, 4096, 32768};
    options.slab_size = 65536;
    const heap here = heap::create(broker, options);
    memclient::heap_resource resource(here);
    other.send(here.share());
    check(other.receive<char>() == 'o');
    block_ptr<Index> index = here.make<Index>(&resource);
    const void *at = index.get();
    for (std::size_t i = 0; i < 500; i++) {
        index->words.emplace_back(word(i));
        index->by_word.emplace(index->words.back(), i);
        index->order.emplace(i, index->words.back());
    }
    for (std::size_t i = 0; i < 3000; i++)
        index->numbers.push_back(i * i);
    other.send(here.give(std::move(index)));
    other.send(at);
    index = here.take<Index>(other.receive<memclient::block>());
    other.send('t');
    read_index(*index);
    index.reset();
    check(here.query().blocks_mine == 0 && here.query().blocks_owned == 0);
}

void allocators()
{
    const memclient::context broker;
    const heap here = heap::create(broker, sizes_of(64, 8192)), another = heap::create(broker, sizes_of(64, 8192));
    {
        std::vector<int, memclient::heap_allocator<int>> numbers(here), more(another);
        std::list<short, memclient::heap_allocator<short>> list(here);

        for (int i = 0; i < 2000; i++)
            numbers.push_back(i);
        list.assign({1, 2, 3});
        check(numbers[1999] == 1999 && here.query().blocks_mine == 4);
        check(numbers.get_allocator() == list.get_allocator() && numbers.get_allocator() != more.get_allocator());
        more = std::move(numbers);
        check(more.size() == 2000 && more.get_allocator() == list.get_allocator());
        check(another.query().blocks_mine == 0);
    }
    check(here.query().blocks_mine == 0);
}

template <class Call> bool is_bad_alloc(Call call)
{
    try {
        call();
    } catch (const std::bad_alloc &) {
        return *memclient::sentence();
    }
    return false;
}

void full()
{
    const memclient::context broker;
    memclient::heap_options options;

    options.block_sizes = {64, 4096};
    options.slab_size = 65536;
    options.slabs_max = 2;
    const heap here = heap::create(broker, options);
    memclient::heap_resource resource(here);
    {
        std::pmr::list<std::pmr::vector<char>> pages(&resource);

        /* a slab of 16 pages: who is refused keeps what there was */
        check(is_bad_alloc([&] {
            for (;;)
                pages.emplace_back(std::size_t{4096}, 'x');
        }));
        check(pages.size() == 16 && here.query().blocks_mine == 32);
        for (const auto &page : pages)
            check(page.back() == 'x');
        pages.pop_back();
        pages.emplace_back(std::size_t{4096}, 'y');
    }
    check(here.query().blocks_mine == 0);
    std::pmr::vector<char> large(&resource);
    check(is_bad_alloc([&] { large.resize(4097); }));
    std::vector<std::uint64_t, memclient::heap_allocator<std::uint64_t>> huge(here);
    check(is_bad_alloc([&] { (void)huge.get_allocator().allocate(SIZE_MAX / 4); }));
}

struct alignas(1024) Aligned {
    char text[1500];
};

bool is_at_multiple(const void *address, std::size_t of)
{
    return reinterpret_cast<std::uintptr_t>(address) % of == 0;
}

/* Blocks of 192 bytes are large enough, and each fourth of them aligned; those of 320 are as bad. */
void alignments()
{
    const memclient::context broker;
    memclient::heap_options options;
    void *made[8];
    std::error_code code;

    options.block_sizes = {192, 320, 2048, 3072};
    options.slab_size = 65536;
    const heap here = heap::create(broker, options);
    memclient::heap_resource resource(here);
    for (std::size_t alignment = 64; alignment <= 1024; alignment *= 2) {
        for (void *&one : made) {
            one = resource.allocate(100, alignment);
            check(is_at_multiple(one, alignment));
        }
        for (void *one : made)
            resource.deallocate(one, 100, alignment);
    }
    std::vector<Aligned, memclient::heap_allocator<Aligned>> one(1, here);
    const block_ptr<Aligned> another = here.make<Aligned>();
    check(is_at_multiple(one.data(), alignof(Aligned)) && is_at_multiple(another.get(), alignof(Aligned)));
    check(is_bad_alloc([&] { (void)resource.allocate(64, 4096); }));
    check(!here.alloc_aligned(64, 4096, code) && code == std::errc::message_size);
    check(!here.alloc_aligned(64, 96, code) && code == std::errc::invalid_argument);
    check(here.query().blocks_mine == 2);
}

/* Containers of one heap move their memory from one to the other. */
void equal_resources()
{
    const memclient::context broker;
    const heap here = heap::create(broker, sizes_of(64, 4096)), another = heap::create(broker, sizes_of(64, 4096));
    memclient::heap_resource first(here), second(here), other(another);

    check(first == second && second == first && first != other && first != *std::pmr::new_delete_resource());
    second.deallocate(first.allocate(64), 64);
    std::pmr::vector<char> from(std::size_t{4096}, 'x', &first), to(&second);
    const void *at = from.data();
    to = std::move(from);
    check(to.data() == at && to[4095] == 'x' && here.query().blocks_mine == 1);
}

} // namespace

int main()
{
    hand_over();
    lifetimes();
    wrong_types();
    readers();
    named();
    containers();
    allocators();
    full();
    alignments();
    equal_resources();
    return 0;
}
