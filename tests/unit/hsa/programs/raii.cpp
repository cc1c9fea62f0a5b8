/* SPDX-License-Identifier: Apache-2.0 */
/* A growing array in C++17, whose elements never move: one reservation, memory mapped as it grows. */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

void need(hsa_status_t status)
{
    const char *text = "an unknown status";

    if (status == HSA_STATUS_SUCCESS)
        return;
    hsa_status_string(status, &text);
    throw std::runtime_error(text);
}

struct runtime {
    runtime() { need(hsa_init()); }
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;
    ~runtime() { hsa_shut_down(); }
};

std::vector<hsa_agent_t> find_agents()
{
    std::vector<hsa_agent_t> agents;

    need(hsa_iterate_agents(
        [](hsa_agent_t agent, void *data) {
            static_cast<std::vector<hsa_agent_t> *>(data)->push_back(agent);
            return HSA_STATUS_SUCCESS;
        },
        &agents));
    return agents;
}

std::optional<hsa_amd_memory_pool_t> find_coarse_pool(hsa_agent_t agent)
{
    std::optional<hsa_amd_memory_pool_t> found;
    auto look = [](hsa_amd_memory_pool_t pool, void *data) {
        uint32_t flags = 0;

        need(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
        if (!(flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED))
            return HSA_STATUS_SUCCESS;
        *static_cast<std::optional<hsa_amd_memory_pool_t> *>(data) = pool;
        return HSA_STATUS_INFO_BREAK;
    };

    if (hsa_amd_agent_iterate_memory_pools(agent, look, &found) != HSA_STATUS_INFO_BREAK)
        throw std::runtime_error("no coarse-grained pool");
    return found;
}

template <typename T> class growing_array
{
  public:
    growing_array(hsa_agent_t agent, hsa_amd_memory_pool_t pool, std::size_t most)
        : agent_(agent), pool_(pool), reserved_((most * sizeof(T) + step - 1) / step * step)
    {
        void *va = nullptr;

        need(hsa_amd_vmem_address_reserve_align(&va, reserved_, 0, step, 0));
        data_ = static_cast<T *>(va);
    }
    growing_array(const growing_array &) = delete;
    growing_array &operator=(const growing_array &) = delete;
    ~growing_array()
    {
        if (mapped_)
            hsa_amd_vmem_unmap(data_, mapped_);
        hsa_amd_vmem_address_free(data_, reserved_);
    }

    void push_back(const T &value)
    {
        if ((size_ + 1) * sizeof(T) > mapped_)
            grow();
        data_[size_++] = value;
    }
    const T *begin() const { return data_; }
    const T *end() const { return data_ + size_; }

  private:
    static constexpr std::size_t step = 2 << 20;

    void grow()
    {
        const hsa_amd_memory_access_desc_t desc = {HSA_ACCESS_PERMISSION_RW, agent_};
        hsa_amd_vmem_alloc_handle_t handle{};
        char *at = reinterpret_cast<char *>(data_) + mapped_;

        need(hsa_amd_vmem_handle_create(pool_, step, MEMORY_TYPE_NONE, 0, &handle));
        need(hsa_amd_vmem_map(at, step, 0, handle, 0));
        need(hsa_amd_vmem_handle_release(handle));
        need(hsa_amd_vmem_set_access(at, step, &desc, 1));
        mapped_ += step;
    }

    hsa_agent_t agent_;
    hsa_amd_memory_pool_t pool_;
    std::size_t reserved_, mapped_ = 0, size_ = 0;
    T *data_ = nullptr;
};

/* HSA's memory behind a smart pointer. */
std::unique_ptr<char, hsa_status_t (*)(void *)> allocate(hsa_amd_memory_pool_t pool, std::size_t size)
{
    void *ptr = nullptr;

    need(hsa_amd_memory_pool_allocate(pool, size, HSA_AMD_MEMORY_POOL_STANDARD_FLAG, &ptr));
    return {static_cast<char *>(ptr), hsa_amd_memory_pool_free};
}

} // namespace

int main()
try {
    const runtime hsa;
    const auto agents = find_agents();
    const auto pool = find_coarse_pool(agents.at(1)).value();
    growing_array<std::uint64_t> numbers(agents.at(0), pool, std::size_t(1) << 30);
    const auto *first = numbers.begin();

    for (std::uint64_t i = 0; i < 1000000; i++)
        numbers.push_back(i);
    if (numbers.begin() != first)
        throw std::runtime_error("the array has moved");
    if (std::accumulate(numbers.begin(), numbers.end(), std::uint64_t(0)) != std::uint64_t(999999) * 500000)
        throw std::runtime_error("the numbers are not what was written");

    const auto block = allocate(pool, 100000);
    need(hsa_memory_copy(block.get(), first, 100000));
    if (!std::equal(block.get(), block.get() + 100000, reinterpret_cast<const char *>(first)))
        throw std::runtime_error("the copy is another");
    return EXIT_SUCCESS;
} catch (const std::exception &problem) {
    std::fprintf(stderr, "raii: %s\n", problem.what());
    return EXIT_FAILURE;
}
