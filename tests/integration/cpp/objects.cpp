/* SPDX-License-Identifier: Apache-2.0 */
/* <memclient/memclient.hpp>: the tour, what the manuals' examples do, owners, and errors in both ways. */
#include "check.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace
{

using namespace std::chrono_literals;
using memclient::alloc_flag;
using memclient::buffer_flag;
using memclient::map_access;
using memclient::right;

const std::size_t part = 1 << 20;

/* What has not ended. Of other sessions, which may end a moment later, there are none yet. */
std::uint64_t buffers_left(const memclient::context &broker)
{
    std::uint64_t left = 0;

    broker.list(memclient_list_buffers,
                [&](const memclient::buffer_info &info) { left += info.state == MEMCLIENT_BUFFER_STATE_LIVE; });
    return left;
}

/* The sums are of all, and a row's visitor may end it. */
void largest(const memclient::context &broker)
{
    memclient_select_options options = MEMCLIENT_SELECT_OPTIONS_INIT;
    const memclient::buffer small = broker.alloc(1), large = broker.alloc(32 * part);
    std::uint64_t first = 0;

    options.most = 2;
    options.pid = getpid(); /* what other programs have may be ending, or larger */
    const auto sums = broker.select_buffers(options, [&](const memclient_buffer_info &info) {
        first = info.id;
        return false;
    });
    check(first == large.id() && sums.buffers >= 2 && sums.bytes > 32 * part);
}

void put(char *at, std::string_view text)
{
    at[text.copy(at, text.size())] = '\0';
}

/* ---- the tour and the manuals ------------------------------------------------------------------------------------ */

void tour()
{
    Process other([](Process &parent) {
        const memclient::context broker;
        const auto token = parent.receive<memclient::token>();
        const memclient::mapping there = broker.open_token(token).map();

        check(!std::strcmp(there.as<char>(), "hello from the parent"));
        parent.send(there.data());
    });
    memclient::context broker;
    memclient::buffer frames = broker.alloc(8 << 20);
    memclient::mapping here = frames.map();
    memclient::token token = frames.share();

    put(here.as<char>(), "hello from the parent");
    other.send(token);
    check(other.receive<std::byte *>() == here.data());
    check(here.size() == frames.bytes() && frames.size() == 8 << 20 && frames.home() == here.data());
    check(memclient::is_at_home(here.data() + 5) && !memclient::is_at_home(&token));
}

void session()
{
    memclient::context_options options;
    std::error_code code;

    options.program = "session";
    options.deadline = 5s;
    const memclient::context own(options);
    check(own.get() && own.query().session);
    check(!own.alloc(0, {}, code) && code == std::errc::invalid_argument && *memclient::sentence());
}

void publish()
{
    const memclient::context broker;
    memclient::alloc_options options;

    options.flags = alloc_flag::publishable | alloc_flag::no_descriptor;
    options.pages = memclient::pages::base;
    const memclient::buffer buf = broker.alloc(100000, options);
    const memclient::mapping text = buf.map();
    check(has(buf.flags(), buffer_flag::publishable) && !has(buf.flags(), buffer_flag::published));
    put(text.as<char>(), "nobody changes this any more");
    buf.publish();
    check(has(buffer_flag{buf.query().flags}, buffer_flag::published));
}

void again()
{
    const memclient::context broker;
    const memclient::buffer buf = broker.alloc(part);
    const memclient::mapping kept = buf.map();
    std::error_code code;

    buf.cache_put(code);
    check(!code || code == std::errc::operation_not_supported);
    check(code || !buf.cache_is_lost());
    if (!code)
        buf.cache_take();
}

void array()
{
    const memclient::context broker;
    memclient::reservation range = broker.reserve(2 * part);
    memclient::alloc_options options;
    memclient::mapping parts[2];
    std::error_code code;

    options.flags = alloc_flag::no_home;
    options.pages = memclient::pages::base;
    for (std::size_t i = 0; i < 2; i++) {
        memclient::map_options where;

        where.address = range.data() + i * part;
        parts[i] = broker.alloc(part, options).map(where);
        check(parts[i].data() == where.address && parts[i].size() == part);
    }
    put(parts[0].as<char>(part - 7), "across the border");
    check(!std::strcmp(parts[1].as<char>(), "the border"));
    check(range.size() == 2 * part);
    range.close(code);
    check(code == std::errc::device_or_resource_busy && range);
    parts[0].unmap();
    parts[1] = {};
    range.close();
    check(!range && !parts[0]);
}

void once()
{
    const memclient::context broker;
    const memclient::buffer buf = broker.alloc(4096);
    const memclient::mapping text = buf.map();
    memclient::share_options terms;
    std::error_code code;

    terms.rights = right::read;
    terms.uses = 1;
    terms.expiry = 1h;
    const memclient::token token = buf.share(terms);
    const int fd = buf.export_fd(right::read);
    put(text.as<char>(), "read by its descriptor");
    const memclient::context another{memclient::context_options()};
    const memclient::buffer opened = another.open_token(token);
    check(opened.id() == buf.id() && opened.rights() == right::read);
    check(!another.open_token(token, {}, code) && code == memclient::errc::key_expired);
    check(code != std::errc::permission_denied && memclient::status(code));
    check(code.message().find("(TOKEN_EXHAUSTED)") != std::string::npos);
    void *seen = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    check(!std::strcmp(static_cast<char *>(seen), "read by its descriptor"));
    check(!munmap(seen, 4096));
    check(another.import_fd(fd).id() == buf.id());
    check(!close(fd));
}

void owner()
{
    const memclient::context broker;
    const memclient::buffer buf = broker.alloc(4096);
    memclient::name_options keep;
    std::error_code code;

    keep.policy = memclient::name_policy::free;
    buf.bind_name("example/state", keep);
    const memclient::buffer mine = broker.claim_name("example/state", memclient::claim::exclusive);
    const auto another = memclient::context::try_open({}, {});
    check(another && !another->claim_name("example/state", memclient::claim::shared, {}, code));
    check(code == std::errc::device_or_resource_busy);
    check(another->open_name("example/state", right::read).rights() == right::read);
    check(broker.open_id(buf.id()).id() == buf.id());
    broker.unbind_name("example/state");
    check(!broker.open_name("example/state", {}, code) && code == std::errc::no_such_file_or_directory);
}

void watch()
{
    const memclient::context broker;

    broker.event_subscribe(memclient::event_kind::name | memclient::event_kind::shutdown);
    check(!broker.event_next());
    const memclient::buffer buf = broker.alloc(4096);
    buf.bind_name("example/watched");
    pollfd wait = {broker.event_fd(), POLLIN, 0};
    auto event = broker.event_next();
    for (; !event; event = broker.event_next())
        check(poll(&wait, 1, -1) == 1);
    check(memclient::event_kind{event->kind} == memclient::event_kind::name && event->bound);
    check(event->name == std::string_view("example/watched"));
    broker.unbind_name("example/watched");
    broker.event_subscribe({});
}

void pools()
{
    const memclient::context broker;
    unsigned n = 0, first = 0;

    broker.list(memclient_list_pools, [&](const memclient_pool_info &pool) { n += pool.capacity > 0; });
    broker.list(memclient_list_pools, [&](const memclient_pool_info &) { return !++first; });
    check(n > 1 && first == 1);
    try {
        broker.list(memclient_list_pools, [](const memclient_pool_info &pool) { throw pool.granule; });
        check(!"it throws");
    } catch (std::uint64_t granule) {
        check(granule >= 4096);
    }
    check(!broker.broker_check().faults && broker.broker_query().broker_pid > 0);
    broker.broker_ping();
}

/* ---- owners and errors ------------------------------------------------------------------------------------------- */

void owners()
{
    const memclient::context broker;
    {
        memclient::buffer a = broker.alloc(8192), b = std::move(a), c = b.ref();
        memclient::map_options half;

        check(!a && b && c.get() == b.get() && buffers_left(broker) == 1);
        half.offset = half.length = 4096;
        half.access = map_access::read;
        memclient::mapping m = b.map(half), n = std::move(m);
        check(!m && n.size() == 4096 && n.data() == static_cast<std::byte *>(b.home()) + 4096);
        /* the mapping holds the buffer */
        b = {};
        c = {};
        check(buffers_left(broker) == 1 && *n.as<int>(8) == 0);
        n.dont_fork();
        n.protect(map_access::none);
        memclient::mapping rest(broker.get(), n.release(), 4096);
        std::swap(rest, n);
        check(!rest && n);
    }
    check(!buffers_left(broker));
    /* a mapping of a buffer that is gone already, by the range that it has */
    memclient::mapping first = broker.alloc(part).map();
    first = broker.alloc(part).map();
    check(first && buffers_left(broker) == 1);
}

void names()
{
    const memclient::context broker;
    const std::string text = "x/name:and more", longest(255, 'n'), longer(256, 'n'), far(5000, 'n');
    const std::string_view with_nul("x/n\0z", 5);
    memclient::alloc_options options;
    std::error_code code;

    /* no NUL behind it */
    options.name = std::string_view(text).substr(0, 6);
    options.named.policy = memclient::name_policy::free;
    const memclient::buffer buf = broker.alloc(4096, options);
    check(buf.query().name == std::string_view("x/name"));
    check(broker.open_name("x/name").id() == buf.id());
    buf.bind_name(longest);
    check(broker.open_name(longest).id() == buf.id());
    broker.unbind_name(longest);
    for (std::string_view bad : {std::string_view(longer), std::string_view(far), with_nul, std::string_view("")}) {
        buf.bind_name(bad, {}, code);
        check(code == std::errc::invalid_argument && *memclient::sentence());
        options.name = bad;
        check(!broker.alloc(4096, options, code) && code == std::errc::invalid_argument);
    }
    options = {};
    options.pool = far;
    check(!broker.alloc(4096, options, code) && code);
    memclient::context_options far_away;
    far_away.socket = far;
    check(!memclient::context::try_open(far_away, code) && code == std::errc::filename_too_long);
}

void options()
{
    const memclient::context broker;
    const std::vector<std::uint32_t> nodes = {1};
    const std::uint32_t both[] = {0, 1}, thrice[] = {3, 1};
    memclient::alloc_options options;
    std::error_code code;

    options.nodes = nodes;
    auto info = broker.alloc(4096, options).query();
    check(info.n_nodes == 1 && info.nodes[0] == 1);
    options.nodes = both;
    options.weights = thrice;
    options.placement = memclient::placement::split;
    options.pages = memclient::pages::base;
    info = broker.alloc(65536, options).query();
    check(info.n_nodes == 2 && info.node_bytes[0] == 49152);
    options.weights = nodes;
    check(!broker.alloc(65536, options, code) && code == std::errc::invalid_argument);
#if __cplusplus >= 202002L
    info = broker.alloc(4096, {.nodes = std::span(nodes), .wait = memclient::forever}).query();
    check(info.nodes[0] == 1);
    const auto numbers = broker.alloc(4096);
    const auto mapped = numbers.map({.access = map_access::read_write});
    for (int &number : mapped.span<int>())
        number = 7;
    check(mapped.span().size() == 4096 && mapped.span<int>().back() == 7);
#endif
}

void errors()
{
    const memclient::context broker;
    const memclient::token none{};
    std::error_code code = std::make_error_code(std::errc::io_error);

    broker.broker_ping(code);
    check(!code && !memclient::status(code));
    try {
        (void)broker.alloc(std::uint64_t{1} << 60);
        check(!"it throws");
    } catch (const memclient::error &e) {
        check(e.code() == std::errc::file_too_large || e.code() == std::errc::not_enough_memory ||
              e.code() == memclient::errc::quota);
        check(e.status() && !std::strncmp(e.what(), memclient::sentence(), std::strlen(memclient::sentence())));
        check(e.code().category() == memclient::category());
    }
    check(!broker.open_token(none, {}, code) && code == std::errc::bad_message);
    check(memclient::buffer().query(code).id == 0 && code == std::errc::invalid_argument && !memclient::status(code));
    check(!memclient::buffer().map({}, code) && code);
    memclient::mapping().protect(map_access::read, code);
    check(bool(code));

    const memclient::buffer buf = broker.alloc(4096);
    const memclient::token token = buf.share();
    check(memclient::token::parse(token.to_string()) == token && token != none);
    check(memclient::token::parse("0x", code) == none && code == std::errc::bad_message);
    check(memclient::token::parse(token.to_string() + "0", code) == none && code);
    broker.revoke_token(token);
    check(!memclient::context(memclient::context_options()).open_token(token, {}, code));
    check(code == memclient::errc::key_revoked);
}

} // namespace

int main()
{
    tour();
    largest(memclient::context());
    owners();
    session();
    publish();
    again();
    array();
    once();
    owner();
    watch();
    pools();
    names();
    options();
    errors();
    return 0;
}
