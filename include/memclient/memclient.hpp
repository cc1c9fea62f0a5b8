/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmemclient for C++17 and later, by headers alone: owners, error codes, types for what C has as numbers.
 *
 *     #include <memclient/memclient.hpp>
 *
 *     memclient::context broker;                     // the process's own
 *     memclient::buffer frames = broker.alloc(8 << 20);
 *     memclient::mapping here = frames.map();
 *     memclient::token token = frames.share();
 *     // send the token's 32 bytes to another process; there:
 *     memclient::mapping there = broker.open_token(token).map();
 *     // there.data() is what here.data() was, and so pointers inside the buffer hold
 *
 * Link with `pkg-config --libs memclient`, as for C. <memclient/heap.hpp> adds heaps, std::pmr and an allocator.
 *
 * Names. What memclient.h calls memclient_<object>_<verb>(), or memclient_<verb>() where that is a buffer, is
 * <object>.<verb>() here. What takes a context is the context's, and MEMCLIENT_X_Y is x::y. What a function does and
 * how it fails is said there: here is only what C++ adds. Each function is one call of the C function, and an object's
 * get() is its handle for what is left to C: functions that end in _many, memclient_broker_reload(),
 * memclient_broker_upgrade(), memclient_set_interrupt() and memclient_block_prepare().
 *
 * Owners. context, buffer, mapping and reservation each own one thing, can be moved and not copied, and give it back
 * when they end. Who is empty, by default or because it was moved from, owns nothing; only an empty context can be
 * used, for the process's default one. A mapping holds its buffer by itself, so the buffer object may end first.
 * Mappings and reservations end before their context, and mappings before the reservation that they are in: as they do
 * in a scope, if they are made in this order.
 *
 * Errors. A function that can fail has a last parameter, on_error. Without it, failure is an exception,
 * memclient::error, whose what() begins with the library's sentence. With a std::error_code there nothing is thrown:
 * the code is set, or cleared, and what is returned on failure is empty or zero. (The standard library has two
 * overloads for this. With one function there is one text to read, the two cannot differ, and a function of the
 * program's can hand its own on_error on.) The code equals a std::errc, or a memclient::errc for what that lacks, and
 * knows the broker's status. Destructors ignore errors; where one may matter, a function ends the object and tells.
 * Compiled without exceptions nothing is left out, and what would throw ends the program by std::abort().
 *
 * Threads. An object may be used by several threads at once as long as none of them moves it, assigns to it or ends it,
 * as objects of the standard library. What it stands for is for any thread, as in C.
 *
 * fork(). The parent's objects work in the child as their handles do: see memclient.h. When they end in the child,
 * nothing is taken from the parent.
 */
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "memclient.h"

namespace memclient
{

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* What the library returns and std::errc has no name for. A std::error_code compares equal to it. */
enum class errc {
    stale = ESTALE,
    remote = EREMOTE,
    quota = EDQUOT,
    shutdown = ESHUTDOWN,
    too_many_members = EUSERS,
    key_expired = EKEYEXPIRED,
    key_revoked = EKEYREVOKED,
    key_rejected = EKEYREJECTED
};

inline std::error_condition make_error_condition(errc value) noexcept
{
    return {static_cast<int>(value), std::generic_category()};
}

namespace detail
{

/* The value of a code is an errno, with the broker's status behind it. */
inline constexpr int status_shift = 12;

class category final : public std::error_category
{
  public:
    const char *name() const noexcept override { return "memclient"; }

    std::error_condition default_error_condition(int value) const noexcept override
    {
        return {value & ((1 << status_shift) - 1), std::generic_category()};
    }

    std::string message(int value) const override
    {
        const auto status = static_cast<unsigned>(value >> status_shift);
        const std::string of_errno = default_error_condition(value).message();

        return status ? of_errno + " (" + memclient_status_name(status) + ")" : of_errno;
    }
};

} // namespace detail

/* That of all codes here. Their message() has the errno and the name of the broker's status. */
inline const std::error_category &category() noexcept
{
    static const detail::category instance;

    return instance;
}

/* The broker's status, 0 if not the broker refused: memclient_status_name() names it. */
inline unsigned status(const std::error_code &code) noexcept
{
    return code.category() == category() ? static_cast<unsigned>(code.value() >> detail::status_shift) : 0;
}

/* The sentence of this thread's last failure, until its next one. */
inline const char *sentence() noexcept
{
    return memclient_error();
}

/* What a function of C returned in this thread just now, as a code; 0 and more = none. */
inline std::error_code to_error_code(int result) noexcept
{
    if (result >= 0)
        return {};
    return {-result | static_cast<int>(memclient_error_status()) << detail::status_shift, category()};
}

/* A failure: code(), and what(), which begins with the sentence. */
class error : public std::system_error
{
  public:
    using std::system_error::system_error;
    unsigned status() const noexcept { return memclient::status(code()); }
};

/* How a function tells that it has failed: by an exception, or by the code that the caller passes. */
class on_error
{
  public:
    constexpr on_error() noexcept = default;
    constexpr on_error(std::error_code &code) noexcept : code_(&code) {}

    /* Takes what a function of C returned. Says whether it succeeded. */
    bool operator()(int result) const
    {
        if (result < 0)
            fail(result);
        else if (code_)
            code_->clear();
        return result >= 0;
    }

    /* Fails for a reason that is found here and not by a function of C, with a sentence about it. */
    [[gnu::cold, gnu::noinline]] void refuse(std::errc reason, const char *why) const
    {
        const std::error_code code(static_cast<int>(reason), category());

        if (code_) {
            *code_ = code;
            return;
        }
#ifdef __cpp_exceptions
        throw error(code, why);
#else
        (void)why;
        std::abort();
#endif
    }

  private:
    [[gnu::cold, gnu::noinline]] void fail(int result) const
    {
        if (code_) {
            *code_ = to_error_code(result);
            return;
        }
#ifdef __cpp_exceptions
        throw error(to_error_code(result), sentence());
#else
        std::abort();
#endif
    }

    std::error_code *code_ = nullptr;
};

/* ---- enumerations ------------------------------------------------------------------------------------------------ */

enum class right : unsigned {
    read = MEMCLIENT_READ,
    write = MEMCLIENT_WRITE,
    share = MEMCLIENT_SHARE,
    manage = MEMCLIENT_MANAGE,
    accept_foreign = MEMCLIENT_ACCEPT_FOREIGN
};
enum class pages : unsigned {
    any = MEMCLIENT_PAGES_ANY,
    base = MEMCLIENT_PAGES_BASE,
    thp = MEMCLIENT_PAGES_THP,
    hugetlb = MEMCLIENT_PAGES_HUGETLB
};
enum class placement : unsigned {
    pool = MEMCLIENT_PLACEMENT_POOL,
    bind = MEMCLIENT_PLACEMENT_BIND,
    preferred = MEMCLIENT_PLACEMENT_PREFERRED,
    interleave = MEMCLIENT_PLACEMENT_INTERLEAVE,
    split = MEMCLIENT_PLACEMENT_SPLIT,
    local = MEMCLIENT_PLACEMENT_LOCAL
};
enum class alloc_flag : unsigned {
    publishable = MEMCLIENT_ALLOC_PUBLISHABLE,
    no_home = MEMCLIENT_ALLOC_NO_HOME,
    no_descriptor = MEMCLIENT_ALLOC_NO_DESCRIPTOR,
    shared_soon = MEMCLIENT_ALLOC_SHARED_SOON
};
enum class buffer_flag : unsigned {
    publishable = MEMCLIENT_BUFFER_PUBLISHABLE,
    no_home = MEMCLIENT_BUFFER_NO_HOME,
    published = MEMCLIENT_BUFFER_PUBLISHED,
    future_only = MEMCLIENT_BUFFER_FUTURE_ONLY,
    lazy = MEMCLIENT_BUFFER_LAZY,
    exported = MEMCLIENT_BUFFER_EXPORTED,
    verified = MEMCLIENT_BUFFER_VERIFIED,
    foreign = MEMCLIENT_BUFFER_FOREIGN,
    client_charged = MEMCLIENT_BUFFER_CLIENT_CHARGED,
    wants_thp = MEMCLIENT_BUFFER_WANTS_THP
};
enum class autostart : unsigned {
    env = MEMCLIENT_AUTOSTART_ENV,
    never = MEMCLIENT_AUTOSTART_NEVER,
    always = MEMCLIENT_AUTOSTART_ALWAYS
};
enum class name_policy : unsigned {
    keep = MEMCLIENT_NAME_KEEP,
    free = MEMCLIENT_NAME_FREE,
    keep_for = MEMCLIENT_NAME_KEEP_FOR
};
enum class claim : unsigned { shared = MEMCLIENT_CLAIM_SHARED, exclusive = MEMCLIENT_CLAIM_EXCLUSIVE };
enum class token_flag : unsigned {
    keeping = MEMCLIENT_TOKEN_KEEPING,
    only_uid = MEMCLIENT_TOKEN_ONLY_UID,
    only_gid = MEMCLIENT_TOKEN_ONLY_GID,
    only_pid = MEMCLIENT_TOKEN_ONLY_PID
};
enum class publish_flag : unsigned { future_only = MEMCLIENT_PUBLISH_FUTURE_ONLY };
enum class destroy_flag : unsigned { force = MEMCLIENT_DESTROY_FORCE };
enum class reserve_flag : unsigned { process_private = MEMCLIENT_RESERVE_PRIVATE };
/* Of a mapping. `allowed` is all that the rights and the buffer allow. */
enum class map_access : unsigned {
    allowed = 0,
    read = MEMCLIENT_READ,
    read_write = MEMCLIENT_READ | MEMCLIENT_WRITE,
    none = MEMCLIENT_NO_ACCESS
};
enum class map_flag : unsigned {
    anywhere = MEMCLIENT_MAP_ANYWHERE,
    not_home = MEMCLIENT_MAP_NOT_HOME,
    unreserved = MEMCLIENT_MAP_UNRESERVED,
    alone = MEMCLIENT_MAP_ALONE,
    copy_on_fork = MEMCLIENT_MAP_COPY_ON_FORK,
    sparse = MEMCLIENT_MAP_SPARSE
};
enum class event_kind : unsigned {
    pressure = MEMCLIENT_EVENT_PRESSURE,
    discarded = MEMCLIENT_EVENT_DISCARDED,
    name = MEMCLIENT_EVENT_NAME,
    shutdown = MEMCLIENT_EVENT_SHUTDOWN,
    lost = MEMCLIENT_EVENT_LOST,
    held = MEMCLIENT_EVENT_HELD,
    left = MEMCLIENT_EVENT_LEFT,
    died = MEMCLIENT_EVENT_DIED,
    death = MEMCLIENT_EVENT_DEATH,
    published = MEMCLIENT_EVENT_PUBLISHED,
    moved = MEMCLIENT_EVENT_MOVED,
    destroyed = MEMCLIENT_EVENT_DESTROYED,
    history = MEMCLIENT_EVENT_HISTORY
};

namespace detail
{

template <class Enum, class... These> inline constexpr bool is_one_of = (std::is_same_v<Enum, These> || ...);
template <class Enum> constexpr unsigned bits(Enum value) noexcept
{
    return static_cast<unsigned>(value);
}

} // namespace detail

/* Of which enumerations several are or-ed; {} is none of them. */
template <class Enum>
inline constexpr bool is_mask = detail::is_one_of<Enum, right, alloc_flag, buffer_flag, token_flag, publish_flag,
                                                  destroy_flag, reserve_flag, map_flag, event_kind>;

template <class Enum> constexpr std::enable_if_t<is_mask<Enum>, Enum> operator|(Enum a, Enum b) noexcept
{
    return static_cast<Enum>(detail::bits(a) | detail::bits(b));
}
template <class Enum> constexpr std::enable_if_t<is_mask<Enum>, Enum> operator&(Enum a, Enum b) noexcept
{
    return static_cast<Enum>(detail::bits(a) & detail::bits(b));
}
template <class Enum> constexpr std::enable_if_t<is_mask<Enum>, Enum> operator~(Enum a) noexcept
{
    return static_cast<Enum>(~detail::bits(a));
}
template <class Enum> constexpr std::enable_if_t<is_mask<Enum>, Enum &> operator|=(Enum &a, Enum b) noexcept
{
    return a = a | b;
}
/* Are all of these set? */
template <class Enum> constexpr std::enable_if_t<is_mask<Enum>, bool> has(Enum set, Enum these) noexcept
{
    return (set & these) == these;
}

/* ---- options and values ------------------------------------------------------------------------------------------ */

/* For deadlines and waits: no bound. A time below zero is the shortest there is, not the default that 0 stands for. */
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

/* Numbers that stay where they are: in an array, a std::vector, a std::span. It is a type of its own so that options
 * are the same in every standard, since parts of a program may be compiled by different ones. */
template <class T> class array_view
{
  public:
    constexpr array_view() noexcept = default;
    constexpr array_view(const T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N> constexpr array_view(const T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <
        class Container,
        class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<const Container &>().data()), const T *>>>
    constexpr array_view(const Container &container) noexcept : data_(container.data()), size_(container.size())
    {
    }
    constexpr const T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }

  private:
    const T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* A string without data, {}, is none; names need no NUL at their end. */
struct context_options {
    std::string_view socket{};
    std::string_view program{};
    std::chrono::milliseconds deadline{};
    memclient::autostart autostart{};
    bool administrator = false;
};

struct name_options {
    name_policy policy{};
    std::chrono::milliseconds keep_for{};
    right group_rights{};
    gid_t gid{};
    right other_rights{};
};

struct alloc_options {
    std::string_view pool{};
    array_view<std::uint32_t> nodes{};
    memclient::pages pages{};
    std::uint64_t page_size = 0;
    memclient::placement placement{};
    std::uint64_t part_size = 0;
    array_view<std::uint32_t> weights{}; /* as many as nodes, or none */
    std::uint64_t alignment = 0;
    std::uint64_t address = 0;
    alloc_flag flags{};
    std::chrono::milliseconds wait{};
    std::string_view name{};
    name_options named{};
};

struct share_options {
    right rights{};
    token_flag flags{};
    std::uint32_t uses = 0;
    std::chrono::milliseconds expiry{};
    uid_t uid{};
    gid_t gid{};
    pid_t pid{};
};

struct reserve_options {
    std::uint64_t alignment = 0;
    std::uint64_t address = 0;
    reserve_flag flags{};
};

struct map_options {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    void *address = nullptr;
    map_access access{};
    map_flag flags{};
};

/* What queries fill in. */
using context_info = memclient_context_info;
using broker_info = memclient_broker_info;
using buffer_info = memclient_buffer_info;
using check_result = memclient_check_result;

/* Its kind converts: event_kind{event.kind}. */
using event = memclient_event;

/* 32 bytes, as of C: they may be read, written and sent as they are. */
struct token : memclient_token {
    std::string to_string() const
    {
        char text[MEMCLIENT_TOKEN_TEXT_SIZE];

        memclient_token_format(this, text);
        return text;
    }

    static token parse(std::string_view text, on_error on = {});

    friend bool operator==(const token &a, const token &b) noexcept
    {
        return !std::memcmp(a.bytes, b.bytes, sizeof(a.bytes));
    }
    friend bool operator!=(const token &a, const token &b) noexcept { return !(a == b); }
};
static_assert(sizeof(token) == 32 && std::is_trivially_copyable_v<token>);

namespace detail
{

constexpr std::uint64_t milliseconds(std::chrono::milliseconds time) noexcept
{
    return time == forever ? MEMCLIENT_FOREVER : time.count() < 0 ? 1 : static_cast<std::uint64_t>(time.count());
}

/* With a NUL, for a call. Longer than Size stays too long, and a NUL inside becomes a control character, so that the
 * library refuses both with its own sentence. */
template <std::size_t Size> class c_string
{
  public:
    explicit c_string(std::string_view text) noexcept : is_some_(text.data())
    {
        const std::size_t length = text.copy(bytes_, Size);

        for (std::size_t i = 0; i < length; i++)
            if (!bytes_[i])
                bytes_[i] = '\1';
        bytes_[length] = '\0';
    }
    const char *get() const noexcept { return is_some_ ? bytes_ : nullptr; }

  private:
    bool is_some_;
    char bytes_[Size + 1];
};
using c_name = c_string<MEMCLIENT_NAME_SIZE>;

inline memclient_name_options to_c(const name_options &from) noexcept
{
    memclient_name_options to = MEMCLIENT_NAME_OPTIONS_INIT;

    to.policy = bits(from.policy);
    to.keep_ms = milliseconds(from.keep_for);
    to.group_rights = bits(from.group_rights);
    to.gid = from.gid;
    to.other_rights = bits(from.other_rights);
    return to;
}

inline memclient_share_options to_c(const share_options &from) noexcept
{
    memclient_share_options to = MEMCLIENT_SHARE_OPTIONS_INIT;

    to.rights = bits(from.rights);
    to.flags = bits(from.flags);
    to.uses = from.uses;
    to.expiry_ms = milliseconds(from.expiry);
    to.uid = from.uid;
    to.gid = from.gid;
    to.pid = from.pid;
    return to;
}

inline memclient_reserve_options to_c(const reserve_options &from) noexcept
{
    memclient_reserve_options to = MEMCLIENT_RESERVE_OPTIONS_INIT;

    to.alignment = from.alignment;
    to.address = from.address;
    to.flags = bits(from.flags);
    return to;
}

inline memclient_map_options to_c(const map_options &from) noexcept
{
    memclient_map_options to = MEMCLIENT_MAP_OPTIONS_INIT;

    to.offset = from.offset;
    to.length = from.length;
    to.address = from.address;
    to.access = bits(from.access);
    to.flags = bits(from.flags);
    return to;
}

/* Options with strings: they stay here for the time of a call. */
struct c_context_options {
    explicit c_context_options(const context_options &from) noexcept : path(from.socket), program(from.program)
    {
        options.socket = path.get();
        options.program = program.get();
        options.deadline_ms = milliseconds(from.deadline);
        options.autostart = bits(from.autostart);
        options.administrator = from.administrator;
    }
    c_context_options(const c_context_options &) = delete;
    c_context_options &operator=(const c_context_options &) = delete;

    c_string<sizeof(context_info::socket)> path;
    c_string<64> program;
    memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
};

struct c_alloc_options {
    explicit c_alloc_options(const alloc_options &from) noexcept
        : pool(from.pool), name(from.name), named(to_c(from.named))
    {
        options.pool = pool.get();
        options.nodes = from.nodes.data();
        options.n_nodes = from.nodes.size();
        /* refused, like a list that is missing */
        if (from.weights.size() && from.weights.size() != from.nodes.size()) {
            options.nodes = nullptr;
            options.n_nodes = from.weights.size();
        }
        options.pages = bits(from.pages);
        options.page_size = from.page_size;
        options.placement = bits(from.placement);
        options.part_size = from.part_size;
        options.weights = from.weights.data();
        options.alignment = from.alignment;
        options.address = from.address;
        options.flags = bits(from.flags);
        options.wait_ms = milliseconds(from.wait);
        options.name = name.get();
        options.name_options = options.name ? &named : nullptr;
    }
    c_alloc_options(const c_alloc_options &) = delete;
    c_alloc_options &operator=(const c_alloc_options &) = delete;

    c_string<MEMCLIENT_POOL_NAME_SIZE> pool;
    c_name name;
    memclient_name_options named;
    memclient_alloc_options options = MEMCLIENT_ALLOC_OPTIONS_INIT;
};

/* A handle of C, which is closed with its owner. */
template <class Handle, auto Close> class owner
{
  public:
    owner() noexcept = default;
    explicit owner(Handle *handle) noexcept : handle_(handle) {}

    Handle *get() const noexcept { return handle_.get(); }
    /* The caller's from now on. */
    Handle *release() noexcept { return handle_.release(); }

  private:
    struct closer {
        void operator()(Handle *handle) const noexcept { (void)Close(handle); }
    };
    std::unique_ptr<Handle, closer> handle_;
};

} // namespace detail

inline token token::parse(std::string_view text, on_error on)
{
    const detail::c_string<MEMCLIENT_TOKEN_TEXT_SIZE> digits(text);
    token read{};

    on(memclient_token_parse(digits.get(), &read));
    return read;
}

/* ---- mappings ---------------------------------------------------------------------------------------------------- */

/* A buffer, or a part of it, at its address. Its access says what may be done with the bytes, and no type does. */
class [[nodiscard]] mapping
{
  public:
    mapping() noexcept = default;
    /* Takes over what memclient_map() mapped. */
    mapping(memclient_context *context, void *data, std::size_t size) noexcept
        : context_(context), data_(data), size_(size)
    {
    }
    mapping(mapping &&other) noexcept : mapping() { swap(other); }
    mapping &operator=(mapping &&other) noexcept
    {
        mapping(std::move(other)).swap(*this);
        return *this;
    }
    ~mapping()
    {
        if (data_)
            (void)memclient_unmap(context_, data_, size_);
    }

    std::byte *data() const noexcept { return static_cast<std::byte *>(data_); }
    std::size_t size() const noexcept { return size_; } /* a multiple of the granule */
    explicit operator bool() const noexcept { return data_; }

    /* The object that begins `offset` bytes behind the start. */
    template <class T> T *as(std::size_t offset = 0) const noexcept
    {
        return static_cast<T *>(static_cast<void *>(data() + offset));
    }
    void protect(map_access access, on_error on = {}) const
    {
        on(memclient_protect(context_, data_, size_, detail::bits(access)));
    }
    void dont_fork(on_error on = {}) const { on(memclient_dont_fork(context_, data_, size_)); }

    /* Unmaps it now. On failure it stays. */
    void unmap(on_error on = {})
    {
        if (on(memclient_unmap(context_, data_, size_)))
            (void)release();
    }
    /* It stays mapped, and the caller unmaps it. */
    void *release() noexcept { return std::exchange(data_, nullptr); }

    void swap(mapping &other) noexcept
    {
        std::swap(context_, other.context_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

#if __cplusplus >= 202002L
    template <class T = std::byte> std::span<T> span() const noexcept
    {
        return {as<T>(), size_ / sizeof(T)};
    }
#endif

  private:
    memclient_context *context_ = nullptr;
    void *data_ = nullptr;
    std::size_t size_ = 0;
};

/* Is this byte at the home of its buffer? Then a pointer to it is good in every process that has the buffer mapped
 * there, as it is by default. */
inline bool is_at_home(const void *address) noexcept
{
    memclient_address_info info = MEMCLIENT_ADDRESS_INFO_INIT;

    if (memclient_address_query(address, &info) < 0 || !info.buffer)
        return false;
    const auto *home = static_cast<const std::byte *>(memclient_buffer_home(info.buffer));
    return home && home + info.offset == address;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* A reference to the handle of a buffer. An empty one has no properties; what has an on_error is refused. */
class [[nodiscard]] buffer : public detail::owner<memclient_buffer, memclient_buffer_unref>
{
  public:
    using owner::owner;
    explicit operator bool() const noexcept { return get(); }

    /* Another reference. */
    buffer ref() const noexcept { return buffer(memclient_buffer_ref(get())); }

    std::uint64_t id() const noexcept { return memclient_buffer_id(get()); }
    std::uint64_t size() const noexcept { return memclient_buffer_size(get()); }
    std::uint64_t bytes() const noexcept { return memclient_buffer_bytes(get()); }
    std::uint64_t granule() const noexcept { return memclient_buffer_granule(get()); }
    right rights() const noexcept { return right{memclient_buffer_rights(get())}; }
    buffer_flag flags() const noexcept { return buffer_flag{memclient_buffer_flags(get())}; }
    void *home() const noexcept { return memclient_buffer_home(get()); }
    buffer_info query(on_error on = {}) const
    {
        buffer_info info = MEMCLIENT_BUFFER_INFO_INIT;

        on(memclient_buffer_query(get(), &info));
        return info;
    }

    mapping map(const map_options &options = {}, on_error on = {}) const
    {
        const memclient_map_options c_options = detail::to_c(options);
        void *address = nullptr;

        if (!on(memclient_map(get(), &c_options, &address)))
            return {};
        return {memclient_buffer_context(get()), address,
                static_cast<std::size_t>(options.length ? options.length : bytes() - options.offset)};
    }
    void make_home(on_error on = {}) const { on(memclient_make_home(get())); }

    token share(const share_options &options = {}, on_error on = {}) const
    {
        const memclient_share_options c_options = detail::to_c(options);
        token made{};

        on(memclient_share(get(), &c_options, &made));
        return made;
    }
    void revoke_all_tokens(on_error on = {}) const { on(memclient_revoke_all_tokens(get())); }

    /* A descriptor, which the caller closes; -1 on failure. */
    int export_fd(right rights = {}, on_error on = {}) const
    {
        int fd = -1;

        on(memclient_export_fd(get(), detail::bits(rights), &fd));
        return fd;
    }

    void bind_name(std::string_view name, const name_options &options = {}, on_error on = {}) const
    {
        const memclient_name_options c_options = detail::to_c(options);

        on(memclient_bind_name(get(), detail::c_name(name).get(), &c_options));
    }

    void publish(publish_flag flags = {}, on_error on = {}) const { on(memclient_publish(get(), detail::bits(flags))); }
    void discard(std::uint64_t offset, std::uint64_t length, on_error on = {}) const
    {
        on(memclient_discard(get(), offset, length));
    }
    void move(std::uint32_t node, on_error on = {}) const { on(memclient_move(get(), node)); }

    void cache_put(on_error on = {}) const { on(memclient_cache_put(get())); }
    void cache_take(on_error on = {}) const { on(memclient_cache_take(get())); }
    bool cache_is_lost() const noexcept { return memclient_cache_is_lost(get()); }
};

/* ---- reservations ------------------------------------------------------------------------------------------------ */

/* A range of addresses. If it ends before a mapping in it, it stays until its context is closed. */
class [[nodiscard]] reservation : public detail::owner<memclient_reservation, memclient_reservation_release>
{
  public:
    using owner::owner;
    explicit operator bool() const noexcept { return get(); }

    std::byte *data() const noexcept { return static_cast<std::byte *>(memclient_reservation_address(get())); }
    std::uint64_t size() const noexcept { return memclient_reservation_size(get()); }

    /* Releases it now. On failure it stays. */
    void close(on_error on = {})
    {
        if (on(memclient_reservation_release(get())))
            (void)release();
    }
};

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* A session with the broker, by which all else is made and opened. An empty one stands for the default context of the
 * process, which is opened at its first use. */
class context : public detail::owner<memclient_context, memclient_context_close>
{
  public:
    using owner::owner;

    /* Opens one of its own. Throws. */
    explicit context(const context_options &options) : context(*try_open(options, {})) {}
    /* The same; none on failure, so that nothing falls back to the default context. */
    static std::optional<context> try_open(const context_options &options, on_error on)
    {
        const detail::c_context_options c_options(options);
        memclient_context *opened = nullptr;

        if (!on(memclient_context_open(&c_options.options, &opened)))
            return std::nullopt;
        return context(opened);
    }

    context_info query(on_error on = {}) const
    {
        context_info info = MEMCLIENT_CONTEXT_INFO_INIT;

        on(memclient_context_query(get(), &info));
        return info;
    }

    /* ---- buffers */

    buffer alloc(std::uint64_t size, const alloc_options &options = {}, on_error on = {}) const
    {
        const detail::c_alloc_options c_options(options);
        memclient_buffer *made = nullptr;

        on(memclient_alloc(get(), size, &c_options.options, &made));
        return buffer(made);
    }
    buffer open_token(const token &from, right rights = {}, on_error on = {}) const
    {
        memclient_buffer *opened = nullptr;

        on(memclient_open_token(get(), &from, detail::bits(rights), &opened));
        return buffer(opened);
    }
    buffer open_name(std::string_view name, right rights = {}, on_error on = {}) const
    {
        memclient_buffer *opened = nullptr;

        on(memclient_open_name(get(), detail::c_name(name).get(), detail::bits(rights), &opened));
        return buffer(opened);
    }
    buffer claim_name(std::string_view name, claim how, right rights = {}, on_error on = {}) const
    {
        memclient_buffer *opened = nullptr;

        on(memclient_claim_name(get(), detail::c_name(name).get(), detail::bits(rights), detail::bits(how), &opened));
        return buffer(opened);
    }
    buffer open_id(std::uint64_t id, right rights = {}, on_error on = {}) const
    {
        memclient_buffer *opened = nullptr;

        on(memclient_open_id(get(), id, detail::bits(rights), &opened));
        return buffer(opened);
    }
    /* The descriptor stays the caller's. */
    buffer import_fd(int fd, on_error on = {}) const
    {
        memclient_buffer *opened = nullptr;

        on(memclient_import_fd(get(), fd, &opened));
        return buffer(opened);
    }
    buffer adopt_fd(int fd, on_error on = {}) const
    {
        memclient_buffer *made = nullptr;

        on(memclient_adopt_fd(get(), fd, &made));
        return buffer(made);
    }
    void unbind_name(std::string_view name, on_error on = {}) const
    {
        on(memclient_unbind_name(get(), detail::c_name(name).get()));
    }
    void revoke_token(const token &made, on_error on = {}) const { on(memclient_revoke_token(get(), &made)); }
    void revoke_serial(std::uint64_t serial, on_error on = {}) const { on(memclient_revoke_serial(get(), serial)); }
    void destroy_id(std::uint64_t id, destroy_flag flags = {}, on_error on = {}) const
    {
        on(memclient_destroy_id(get(), id, detail::bits(flags)));
    }

    /* ---- addresses */

    reservation reserve(std::uint64_t size, const reserve_options &options = {}, on_error on = {}) const
    {
        const memclient_reserve_options c_options = detail::to_c(options);
        memclient_reservation *made = nullptr;

        on(memclient_reserve(get(), size, &c_options, &made));
        return reservation(made);
    }

    /* ---- events */

    void event_subscribe(event_kind kinds, on_error on = {}) const
    {
        on(memclient_event_subscribe(get(), detail::bits(kinds)));
    }
    /* Of one buffer, by its id, or of one name, beside those. */
    void event_subscribe_buffer(std::uint64_t id, event_kind kinds, on_error on = {}) const
    {
        on(memclient_event_subscribe_buffer(get(), id, detail::bits(kinds)));
    }
    void event_subscribe_name(std::string_view name, event_kind kinds, on_error on = {}) const
    {
        on(memclient_event_subscribe_name(get(), detail::c_name(name).get(), detail::bits(kinds)));
    }
    /* Polls readable when there may be one; -1 on failure. It is the library's. */
    int event_fd(on_error on = {}) const
    {
        int fd = -1;

        on(memclient_event_fd(get(), &fd));
        return fd;
    }
    /* The next event. There being none now is no failure. */
    std::optional<event> event_next(on_error on = {}) const
    {
        event next = MEMCLIENT_EVENT_INIT;
        const int result = memclient_event_next(get(), &next);

        if (!on(result == -EAGAIN ? 0 : result) || result)
            return std::nullopt;
        return next;
    }

    /* ---- the broker */

    void broker_ping(on_error on = {}) const { on(memclient_broker_ping(get())); }
    broker_info broker_query(on_error on = {}) const
    {
        broker_info info = MEMCLIENT_BROKER_INFO_INIT;

        on(memclient_broker_query(get(), &info));
        return info;
    }
    check_result broker_check(on_error on = {}) const
    {
        check_result result = MEMCLIENT_CHECK_RESULT_INIT;

        on(memclient_broker_check(get(), &result));
        return result;
    }

    /* Calls visit(const memclient_buffer_info &) for the first buffers in an order, as list() does, and returns the
     * sums over all that the options choose: memclient_select_buffers(). */
    template <class Visit>
    memclient_buffer_sums select_buffers(const memclient_select_options &options, Visit &&visit, on_error on = {}) const
    {
        memclient_buffer_sums sums = MEMCLIENT_BUFFER_SUMS_INIT;
        visitor<memclient_buffer_info, std::remove_reference_t<Visit>> calls{visit, {}};
        const int result = memclient_select_buffers(get(), &options, &sums, calls.visit_next, &calls);

        if (calls.thrown)
            std::rethrow_exception(calls.thrown);
        on(result);
        return sums;
    }

    /* Calls visit(const Info &) for each item of memclient_list_pools or another listing. If it returns bool, false
     * ends the listing. What it throws ends the listing, too, and comes out of here. */
    template <class Info, class Visit>
    void list(int (*listing)(memclient_context *, int (*)(const Info *, void *), void *), Visit &&visit,
              on_error on = {}) const
    {
        visitor<Info, std::remove_reference_t<Visit>> calls{visit, {}};
        const int result = listing(get(), calls.visit_next, &calls);

        if (calls.thrown)
            std::rethrow_exception(calls.thrown);
        on(result);
    }

  private:
    /* No exception goes through the library, which is C. */
    template <class Info, class Visit> struct visitor {
        Visit &visit;
        std::exception_ptr thrown;

        bool goes_on(const Info &info)
        {
            if constexpr (std::is_same_v<decltype(visit(info)), bool>)
                return visit(info);
            visit(info);
            return true;
        }
        static int visit_next(const Info *info, void *data)
        {
            auto *calls = static_cast<visitor *>(data);
#ifdef __cpp_exceptions
            try {
                return !calls->goes_on(*info);
            } catch (...) {
                calls->thrown = std::current_exception();
                return 1;
            }
#else
            return !calls->goes_on(*info);
#endif
        }
    };
};

} // namespace memclient

template <> struct std::is_error_condition_enum<memclient::errc> : std::true_type {
};
