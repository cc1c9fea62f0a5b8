/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C++ that uses all headers of ours, for cpp.sh to compile. It does not run. */
#include <memclient/heap.hpp>
#include <memclient/nbla.h>
#include <memclient/svm.h>
#include <memclient/umf_provider.h>

#include <vector>

using namespace memclient;

/* An owner is as large as what it owns, and is moved only. */
static_assert(sizeof(buffer) == sizeof(void *) && sizeof(reservation) == sizeof(void *) &&
              sizeof(heap) == sizeof(void *) && sizeof(context) == sizeof(void *) &&
              sizeof(block_ptr<>) == 2 * sizeof(void *) && sizeof(on_error) == sizeof(void *));
template <class T>
constexpr bool is_owner = std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T>
                              &&std::is_nothrow_default_constructible_v<T> && !std::is_copy_constructible_v<T> &&
                          !std::is_copy_assignable_v<T>;
static_assert(is_owner<context> && is_owner<buffer> && is_owner<mapping> && is_owner<reservation> && is_owner<heap> &&
              is_owner<block_ptr<>> && is_owner<block_ptr<int>>);
static_assert(sizeof(block) == 16 && sizeof(block_token) == 48 && std::is_trivially_copyable_v<block_token>);

/* Bits are of one enumeration, and constants. */
static_assert(has(right::read | right::write, right::write) && !has(~right::read, right::read));
template <class A, class B, class = void> constexpr bool can_or = false;
template <class A, class B>
constexpr bool can_or<A, B, std::void_t<decltype(std::declval<A>() | std::declval<B>())>> = true;
static_assert(can_or<alloc_flag, alloc_flag> && !can_or<alloc_flag, map_flag> && !can_or<pages, pages> &&
              !can_or<map_access, map_access>);

/* A list of numbers that ends with the line is not taken. */
static_assert(std::is_convertible_v<std::vector<std::uint32_t> &, array_view<std::uint32_t>> &&
              !std::is_convertible_v<std::initializer_list<std::uint32_t>, array_view<std::uint32_t>>);

/* What the program makes on top of ours tells in the same way. */
static buffer named(const context &broker, std::string_view name, on_error on = {})
{
    alloc_options options;

    options.name = name;
    options.wait = std::chrono::seconds(3);
    options.flags = alloc_flag::publishable | alloc_flag::no_home;
    return broker.alloc(4096, options, on);
}

int main()
{
    const context broker, mine{context_options()};
    std::error_code code;
    const buffer buf = named(broker, "a/b", code), other = named(mine, "a/b");
    const mapping mapped = buf.map({}, code);
    heap blocks = heap::create(broker, {{64, 4096}}, code);
    heap_resource resource(blocks);
    std::vector<int, heap_allocator<int>> numbers(blocks);
    std::pmr::vector<int> more(&resource);
    memclient_svm_info svm = MEMCLIENT_SVM_INFO_INIT;

    numbers.push_back(1);
    more = {1, 2, 3};
    block_ptr<int> one = blocks.make<int>(1);
    one = blocks.take<int>(blocks.give(std::move(one), heap::anybody, code), code);
    broker.list(memclient_list_pools, [](const memclient_pool_info &) { return true; });
    broker.list(
        memclient_list_names, [](const memclient_name_info &) {}, code);
    if (code == errc::stale || code == std::errc::not_enough_memory || memclient_svm_query(nullptr, &svm) < 0)
        return status(code) == 8;
#if __cplusplus >= 202002L
    const buffer third = broker.alloc(4096, {.name = "c", .named = {.policy = name_policy::free}}, code);
    const mapping part = third.map({.length = 4096, .access = map_access::read});
    return part.span<int>()[0] + *one;
#else
    return *mapped.as<int>(4) + *one;
#endif
}
