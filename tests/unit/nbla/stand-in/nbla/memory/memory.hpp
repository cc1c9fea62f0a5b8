/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for nnabla's header of this name, so that the adaptor is compiled and used where nnabla is not: the class
 * as its document describes it, header-only. As in nnabla it includes neither <vector> nor <nbla/exception.hpp>,
 * physical memory has no virtual destructor, and a block that is no neighbour is not refused by try_merge(), but its
 * bytes are added and it is disabled, which the document does not say.
 */
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace nbla
{

using std::shared_ptr;
using std::size_t;
using std::string;

enum DeviceMemoryState { Locked = 0, Unlocked = 1 };

class PhysicalMemory
{
  public:
    explicit PhysicalMemory(size_t bytes, const string &device_id)
        : allocated_(false), bytes_(bytes), device_id_(device_id)
    {
    }
    ~PhysicalMemory() = default;

    virtual size_t alloc() = 0;
    size_t bytes() { return bytes_; }
    bool allocated() { return allocated_; }

  protected:
    bool allocated_;
    size_t bytes_;
    string device_id_;
};

typedef shared_ptr<PhysicalMemory> PhysicalMemoryPtr;
typedef std::vector<PhysicalMemoryPtr> VecPhysicalMemoryPtr;

class Memory
{
  public:
    Memory(size_t bytes, const string &device_id)
        : bytes_(bytes ? bytes : 1), requested_bytes_(static_cast<long long>(bytes_)), device_id_(device_id)
    {
    }
    virtual ~Memory() {}

    size_t bytes() const { return bytes_; }
    size_t requested_bytes() const { return requested_bytes_ < 0 ? bytes_ : static_cast<size_t>(requested_bytes_); }
    void set_requested_bytes(size_t bytes) { requested_bytes_ = static_cast<long long>(bytes); }
    string device_id() const { return device_id_; }
    void *pointer() { return ptr_; }
    const void *const_pointer() const { return ptr_; }
    bool locked() const { return locked_; }
    bool disabled() { return !ptr_; }
    Memory *next() const { return next_; }
    Memory *prev() const { return prev_; }
    void lock() { locked_ = true; }
    void release() { locked_ = false; }
    size_t bytes_active() { return ptr_ && !next_ && !prev_ ? bytes_ : 0; }

    VecPhysicalMemoryPtr &get_physical_memory() { return p_memories_; }
    void append_physical_memories(VecPhysicalMemoryPtr &more)
    {
        p_memories_.insert(p_memories_.end(), more.begin(), more.end());
    }
    void clear_physical_memory() { p_memories_.clear(); }

    void alloc()
    {
        require(!ptr_, error_code::value, "it has memory already");
        require(alloc_impl(), error_code::memory, "no memory");
    }

    shared_ptr<Memory> divide(size_t second_start)
    {
        require(second_start > 0 && second_start < bytes_, error_code::value, "that is not inside it");
        shared_ptr<Memory> second = divide_impl(second_start);
        bytes_ = second_start;
        associate_consecutive(second.get(), next_);
        associate_consecutive(this, second.get());
        return second;
    }

    void try_merge(Memory *from)
    {
        if (!from || from->locked())
            return;
        if (from == next_) {
            merge_next_impl(from);
            associate_consecutive(this, from->next_);
        } else if (from == prev_) {
            merge_prev_impl(from);
            associate_consecutive(from->prev_, this);
        }
        bytes_ += from->bytes_;
        from->ptr_ = nullptr;
    }

    static void associate_consecutive(Memory *left, Memory *right)
    {
        if (left)
            left->next_ = right;
        if (right)
            right->prev_ = left;
    }

    void bind()
    {
        require(memory_type_ == MemoryType::Virtual, error_code::memory, "it is not virtual");
        bind_impl();
    }

    void unbind()
    {
        require(memory_type_ == MemoryType::Virtual, error_code::memory, "it is not virtual");
        unbind_impl();
        ptr_ = nullptr;
    }

    bool grow(VecPhysicalMemoryPtr &more)
    {
        require(memory_type_ == MemoryType::Virtual, error_code::memory, "it is not virtual");
        return grow_impl(more);
    }

    virtual DeviceMemoryState get_device_memory_state() { return DeviceMemoryState::Unlocked; }
    virtual void lock_device_memory() {}

  protected:
    enum MemoryType { Normal = 0, Virtual = 1 };

    virtual bool alloc_impl() = 0;
    virtual shared_ptr<Memory> divide_impl(size_t second_start) = 0;
    virtual void merge_next_impl(Memory *from) = 0;
    virtual void merge_prev_impl(Memory *from) = 0;
    virtual void bind_impl() { require(false, error_code::not_implemented, "bind"); }
    virtual void unbind_impl() { require(false, error_code::not_implemented, "unbind"); }
    virtual bool grow_impl(VecPhysicalMemoryPtr &)
    {
        require(false, error_code::not_implemented, "grow");
        return false;
    }

    size_t bytes_;
    long long requested_bytes_;
    void *ptr_ = nullptr;
    MemoryType memory_type_ = MemoryType::Normal;
    VecPhysicalMemoryPtr p_memories_;

  private:
    static void require(bool so, error_code code, const char *otherwise)
    {
        if (!so)
            throw Exception(code, otherwise, "Memory", __FILE__, __LINE__);
    }

    string device_id_;
    bool locked_ = false;
    Memory *next_ = nullptr;
    Memory *prev_ = nullptr;
};

} // namespace nbla
