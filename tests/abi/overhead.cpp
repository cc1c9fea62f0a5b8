/* SPDX-License-Identifier: Apache-2.0 */
/* The same in C's words and in C++'s, for overhead.sh to compare. */
#include <memclient/heap.hpp>

using namespace memclient;

extern "C" {

void pair_c(memclient_heap *heap)
{
    void *p;

    if (memclient_heap_alloc(heap, 4096, &p) < 0)
        std::abort();
    *static_cast<int *>(p) = 1;
    (void)memclient_heap_free(heap, p);
}
void pair_cpp(const memclient::heap &heap)
{
    const block_ptr<> p = heap.alloc(4096);

    p[0] = std::byte{1};
}

void give_c(memclient_heap *heap, memclient_block *given)
{
    void *p;

    if (memclient_heap_alloc(heap, 4096, &p) < 0 || memclient_block_give(heap, p, 0, given) < 0)
        std::abort();
}
void give_cpp(const memclient::heap &heap, block *given)
{
    *given = heap.give(heap.alloc(4096));
}

void *allocate_c(memclient_heap *heap, std::size_t n)
{
    void *p;

    if (n > SIZE_MAX / sizeof(int) || memclient_heap_alloc(heap, n * sizeof(int), &p) < 0)
        std::abort();
    return p;
}
void *allocate_cpp(heap_allocator<int> &from, std::size_t n)
{
    return from.allocate(n);
}

void map_c(memclient_buffer *buf)
{
    memclient_map_options options = MEMCLIENT_MAP_OPTIONS_INIT;
    void *p;

    if (memclient_map(buf, &options, &p) < 0)
        std::abort();
    *static_cast<char *>(p) = 1;
    (void)memclient_unmap(memclient_buffer_context(buf), p, memclient_buffer_bytes(buf));
}
void map_cpp(const buffer &buf)
{
    *buf.map().as<char>() = 1;
}

std::uint64_t properties_c(memclient_buffer *buf)
{
    return memclient_buffer_size(buf) + memclient_buffer_rights(buf);
}
std::uint64_t properties_cpp(const buffer &buf)
{
    return buf.size() + static_cast<unsigned>(buf.rights());
}

int next_c(memclient_context *context, memclient_event *event)
{
    const int r = memclient_event_next(context, event);

    if (r < 0 && r != -EAGAIN)
        std::abort();
    return !r;
}
int next_cpp(const context &broker, event *next)
{
    const auto taken = broker.event_next();

    if (taken)
        *next = *taken;
    return taken.has_value();
}
}
