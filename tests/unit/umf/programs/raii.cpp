/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UMF in C++17: handles in smart pointers, classes that become tables of operations by a template, and containers whose
 * elements are in a pool. Tables are taken before main() begins.
 */
#include <umf.h>
#include <umf/ipc.h>
#include <umf/memory_pool_ops.h>
#include <umf/memory_provider_ops.h>
#include <umf/mempolicy.h>
#include <umf/memspace.h>
#include <umf/pools/pool_disjoint.h>
#include <umf/pools/pool_jemalloc.h>
#include <umf/pools/pool_proxy.h>
#include <umf/pools/pool_scalable.h>
#include <umf/providers/provider_level_zero.h>
#include <umf/providers/provider_memoryd.h>
#include <umf/providers/provider_os_memory.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace
{

using provider_ptr = std::unique_ptr<umf_memory_provider_t, std::function<void(umf_memory_provider_handle_t)>>;
using pool_ptr = std::unique_ptr<umf_memory_pool_t, std::function<void(umf_memory_pool_handle_t)>>;
using limits_ptr = std::unique_ptr<umf_disjoint_pool_shared_limits_t, decltype(&umfDisjointPoolSharedLimitsDestroy)>;

/* The functions are ones, with exact types, and no macros. */
template <typename Ret, typename... Args> Ret call(Ret (*function)(Args...), std::common_type_t<Args>... args)
{
    return function(args...);
}

void need(umf_result_t result)
{
    if (result != UMF_RESULT_SUCCESS)
        throw std::runtime_error("result " + std::to_string(result));
}

void need(bool truth, const char *what)
{
    if (!truth)
        throw std::runtime_error(what);
}

/* ---- classes that become tables ---------------------------------------------------------------------------------- */

struct provider_base {
    umf_result_t initialize() noexcept { return UMF_RESULT_SUCCESS; }
    umf_result_t alloc(std::size_t, std::size_t, void **) noexcept { return UMF_RESULT_ERROR_UNKNOWN; }
    umf_result_t free(void *, std::size_t) noexcept { return UMF_RESULT_ERROR_UNKNOWN; }
    void get_last_native_error(const char **, std::int32_t *) noexcept {}
    umf_result_t get_recommended_page_size(std::size_t, std::size_t *) noexcept { return UMF_RESULT_ERROR_UNKNOWN; }
    umf_result_t get_min_page_size(void *, std::size_t *) noexcept { return UMF_RESULT_ERROR_UNKNOWN; }
    const char *get_name() noexcept { return "base"; }
    umf_result_t purge_lazy(void *, std::size_t) noexcept { return UMF_RESULT_ERROR_UNKNOWN; }
    umf_result_t purge_force(void *, std::size_t) noexcept { return UMF_RESULT_ERROR_UNKNOWN; }
};

template <typename T, typename Params> umf_memory_provider_ops_t provider_table()
{
    umf_memory_provider_ops_t ops{};

    ops.version = UMF_VERSION_CURRENT;
    ops.initialize = [](void *params, void **out) {
        auto made = std::unique_ptr<T>(new (std::nothrow) T);
        umf_result_t result;

        if (!made)
            return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        if constexpr (std::is_same_v<Params, void>)
            result = made->initialize();
        else
            result = made->initialize(*static_cast<Params *>(params));
        if (result == UMF_RESULT_SUCCESS)
            *out = made.release();
        return result;
    };
    ops.finalize = [](void *obj) { delete static_cast<T *>(obj); };
#define FORWARD(member, function) \
    ops.member = [](void *obj, auto... args) { return static_cast<T *>(obj)->function(args...); }
    FORWARD(alloc, alloc);
    FORWARD(free, free);
    FORWARD(get_last_native_error, get_last_native_error);
    FORWARD(get_recommended_page_size, get_recommended_page_size);
    FORWARD(get_min_page_size, get_min_page_size);
    FORWARD(get_name, get_name);
    FORWARD(ext.purge_lazy, purge_lazy);
    FORWARD(ext.purge_force, purge_force);
    return ops;
}

struct pool_base {
    umf_result_t initialize(umf_memory_provider_handle_t) noexcept { return UMF_RESULT_SUCCESS; }
    void *malloc(std::size_t) noexcept { return nullptr; }
    void *calloc(std::size_t, std::size_t) noexcept { return nullptr; }
    void *realloc(void *, std::size_t) noexcept { return nullptr; }
    void *aligned_malloc(std::size_t, std::size_t) noexcept { return nullptr; }
    std::size_t malloc_usable_size(void *) noexcept { return 0; }
    umf_result_t free(void *) noexcept { return UMF_RESULT_SUCCESS; }
    umf_result_t get_last_allocation_error() noexcept { return UMF_RESULT_SUCCESS; }
};

template <typename T, typename Params> umf_memory_pool_ops_t pool_table()
{
    umf_memory_pool_ops_t ops{};

    ops.version = UMF_VERSION_CURRENT;
    ops.initialize = [](umf_memory_provider_handle_t provider, [[maybe_unused]] void *params, void **out) {
        auto made = std::unique_ptr<T>(new (std::nothrow) T);
        umf_result_t result;

        if (!made)
            return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        if constexpr (std::is_same_v<Params, void>)
            result = made->initialize(provider);
        else
            result = made->initialize(provider, *static_cast<Params *>(params));
        if (result == UMF_RESULT_SUCCESS)
            *out = made.release();
        return result;
    };
    ops.finalize = [](void *obj) { delete static_cast<T *>(obj); };
    FORWARD(malloc, malloc);
    FORWARD(calloc, calloc);
    FORWARD(realloc, realloc);
    FORWARD(aligned_malloc, aligned_malloc);
    FORWARD(malloc_usable_size, malloc_usable_size);
    FORWARD(free, free);
    FORWARD(get_last_allocation_error, get_last_allocation_error);
    return ops;
}

/* ---- the user's classes ------------------------------------------------------------------------------------------ */

struct heap_provider : provider_base {
    umf_result_t alloc(std::size_t size, std::size_t alignment, void **ptr) noexcept
    {
        *ptr = std::aligned_alloc(std::max<std::size_t>(alignment, 64), (size + 4095) / 4096 * 4096);
        return *ptr ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    umf_result_t free(void *ptr, std::size_t) noexcept
    {
        std::free(ptr);
        return UMF_RESULT_SUCCESS;
    }
    const char *get_name() noexcept { return "heap"; }
};

/* Ends as it is told. */
struct failing_provider : provider_base {
    umf_result_t initialize(umf_result_t result) noexcept { return result; }
};

struct counting_pool : pool_base {
    umf_result_t initialize(umf_memory_provider_handle_t provider, unsigned *&count) noexcept
    {
        count_ = count;
        return provider ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
    }
    void *malloc(std::size_t size) noexcept
    {
        ++*count_;
        return std::malloc(size);
    }
    umf_result_t free(void *ptr) noexcept
    {
        --*count_;
        std::free(ptr);
        return UMF_RESULT_SUCCESS;
    }

  private:
    unsigned *count_ = nullptr;
};

auto heap_ops = provider_table<heap_provider, void>();
auto failing_ops = provider_table<failing_provider, umf_result_t>();
auto counting_ops = pool_table<counting_pool, unsigned *>();

/* What is known before main() begins. */
auto os_params = umfOsMemoryProviderParamsDefault();
auto disjoint_params = umfDisjointPoolParamsDefault();
const std::vector<std::pair<umf_memory_pool_ops_t *, void *>> pools = {
    {umfProxyPoolOps(), nullptr},
    {umfDisjointPoolOps(), &disjoint_params},
    {umfJemallocPoolOps(), nullptr},
    {umfScalablePoolOps(), nullptr},
};
const std::vector<std::pair<umf_memory_provider_ops_t *, void *>> providers = {
    {&heap_ops, nullptr},
    {umfOsMemoryProviderOps(), &os_params},
    {umfMemorydMemoryProviderOps(), nullptr},
};

/* ---- handles that end themselves --------------------------------------------------------------------------------- */

provider_ptr make_provider(umf_memory_provider_ops_t *ops, void *params)
{
    umf_memory_provider_handle_t provider = nullptr;

    need(call(umfMemoryProviderCreate, ops, params, &provider));
    return {provider, &umfMemoryProviderDestroy};
}

/* The provider ends with the pool, after it. */
pool_ptr make_pool(umf_memory_pool_ops_t *ops, void *params, provider_ptr provider)
{
    std::shared_ptr<umf_memory_provider_t> kept = std::move(provider);
    umf_memory_pool_handle_t pool = nullptr;

    need(call(umfPoolCreate, ops, kept.get(), params, UMF_POOL_CREATE_FLAG_NONE, &pool));
    return {pool, [kept](umf_memory_pool_handle_t handle) { umfPoolDestroy(handle); }};
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

template <typename T> struct allocator {
    using value_type = T;

    explicit allocator(umf_memory_pool_handle_t from) noexcept : pool(from) {}
    template <typename U> allocator(const allocator<U> &other) noexcept : pool(other.pool) {}

    T *allocate(std::size_t n)
    {
        auto *ptr = static_cast<T *>(umfPoolAlignedMalloc(pool, n * sizeof(T), alignof(T)));

        if (!ptr)
            throw std::bad_alloc();
        return ptr;
    }
    void deallocate(T *ptr, std::size_t) noexcept { umfPoolFree(pool, ptr); }

    template <typename U> bool operator==(const allocator<U> &other) const noexcept { return pool == other.pool; }
    template <typename U> bool operator!=(const allocator<U> &other) const noexcept { return pool != other.pool; }

    umf_memory_pool_handle_t pool;
};

void fill(umf_memory_pool_handle_t pool)
{
    std::vector<std::uint64_t, allocator<std::uint64_t>> numbers{allocator<std::uint64_t>(pool)};

    for (std::uint64_t i = 0; i < 10000; i++)
        numbers.push_back(i);
    need(umfPoolByPtr(numbers.data()) == pool, "a vector's elements are not in its pool");
    need(umfPoolByPtr(&numbers.back()) == pool, "a vector's last element is not in its pool");
    need(std::accumulate(numbers.begin(), numbers.end(), std::uint64_t(0)) == std::uint64_t(9999) * 5000,
         "a vector's elements are not what was written");
}

void use_containers()
{
    disjoint_params.SlabMinSize = 1 << 16;
    disjoint_params.MaxPoolableSize = 1 << 14;
    disjoint_params.Capacity = 4;
    for (const auto &[provider_ops, provider_params] : providers)
        for (const auto &[pool_ops, pool_params] : pools) {
            const auto pool = make_pool(pool_ops, pool_params, make_provider(provider_ops, provider_params));
            std::vector<std::thread> threads;
            umf_memory_provider_handle_t provider = nullptr;

            need(umfPoolGetMemoryProvider(pool.get(), &provider));
            need(umfMemoryProviderGetName(provider), "a provider has no name");
            for (int i = 0; i < 4; i++)
                threads.emplace_back(fill, pool.get());
            for (auto &thread : threads)
                thread.join();
        }
}

/* ---- limits, own pools, failures --------------------------------------------------------------------------------- */

void use_limits()
{
    const limits_ptr limits(umfDisjointPoolSharedLimitsCreate(1 << 20), &umfDisjointPoolSharedLimitsDestroy);
    auto params = disjoint_params;
    std::vector<pool_ptr> both;
    std::vector<void *> objects;

    params.SharedLimits = limits.get();
    for (int i = 0; i < 2; i++)
        both.push_back(make_pool(umfDisjointPoolOps(), &params, make_provider(&heap_ops, nullptr)));
    for (int i = 0; i < 1000; i++)
        objects.push_back(umfPoolMalloc(both[i % 2].get(), 1000));
    for (auto *object : objects)
        need(umfFree(object));
}

void use_own()
{
    unsigned live = 0, *count = &live;
    auto pool = make_pool(&counting_ops, &count, make_provider(&heap_ops, nullptr));
    void *ptr = umfPoolMalloc(pool.get(), 10);

    need(ptr && live == 1, "an own pool was not asked");
    need(!umfPoolByPtr(ptr), "what is not the provider's is tracked");
    need(umfPoolFree(pool.get(), ptr));
    need(live == 0, "an own pool was not told");
}

void use_failures()
{
    for (auto result : {UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY, UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC,
                        UMF_RESULT_ERROR_INVALID_ARGUMENT, UMF_RESULT_ERROR_INVALID_ALIGNMENT,
                        UMF_RESULT_ERROR_NOT_SUPPORTED, UMF_RESULT_ERROR_UNKNOWN}) {
        umf_memory_provider_handle_t provider = nullptr;

        need(umfMemoryProviderCreate(&failing_ops, &result, &provider) == result, "a failure was changed");
        need(!provider, "there is a provider that failed");
    }
    auto ops = heap_ops;
    ops.ext.purge_lazy = nullptr;
    const auto provider = make_provider(&ops, nullptr);
    need(umfMemoryProviderPurgeLazy(provider.get(), &ops, 1) == UMF_RESULT_ERROR_NOT_SUPPORTED,
         "there is something to purge with");
    need(umfMemoryProviderPurgeForce(provider.get(), &ops, 1) == UMF_RESULT_ERROR_UNKNOWN,
         "a purge's failure was changed");
}

/* One object, opened where it was made, by a copy of its handle. */
void use_handles()
{
    const auto pool = make_pool(umfJemallocPoolOps(), nullptr, make_provider(umfMemorydMemoryProviderOps(), nullptr));
    auto *text = static_cast<char *>(umfPoolMalloc(pool.get(), 100));
    umf_ipc_handle_t handle = nullptr;
    std::size_t size = 0;
    void *opened = nullptr;

    std::memcpy(text, "shared", sizeof("shared"));
    need(umfGetIPCHandle(text, &handle, &size));
    const std::vector<char> bytes(reinterpret_cast<char *>(handle), reinterpret_cast<char *>(handle) + size);
    need(umfPutIPCHandle(handle));
    need(umfOpenIPCHandle(pool.get(), reinterpret_cast<umf_ipc_handle_t>(const_cast<char *>(bytes.data())), &opened));
    need(!std::strcmp(static_cast<char *>(opened), "shared"), "what was opened is something else");
    need(umfCloseIPCHandle(opened));
    need(umfPoolFree(pool.get(), text));
}

} // namespace

int main()
try {
    need(umfInit() == 0, "the library does not begin");
    need(umfGetCurrentVersion() == static_cast<int>(UMF_VERSION_CURRENT), "another version");
    use_containers();
    use_limits();
    use_own();
    use_failures();
    use_handles();
    umfTearDown();
    return 0;
} catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
