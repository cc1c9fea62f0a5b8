/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of methods.
 *
 * Dispatch in the broker, call stubs in the client, the lists in PROTOCOL.md and the fuzzer's seeds all expand these
 * rows. Numbers are part of the protocol and never change.
 */
#pragma once

/* What the broker may have to do for a request: SLOW work runs on a worker thread, and its reply may overtake, or be
 * overtaken by, replies to other requests of the same connection. */
enum method_cost { METHOD_CHEAP, METHOD_SLOW };

/* How a repeat of the request (same session and sequence, after a lost connection) is recognised. */
enum method_repeat {
    REPEAT_HARMLESS, /* it reads, or sets to a value: doing it twice has the effect of doing it once */
    REPEAT_RECORDED  /* the reply is kept until the client acknowledges it */
};

enum method_session { SESSION_NONE, SESSION_NEEDED };

/* What the reply gives the session, and what a client releases if the reply comes too late. */
enum method_grants { GRANTS_NOTHING, GRANTS_HOLDS, GRANTS_RANGE, GRANTS_TOKENS };

/*
 * X(id, NAME, name, Request, Reply, session, most fds in, most fds out, cost, repeat, grants)
 * `Request` and `Reply` are message names of package memoryd.v1; `name` is that of the dispatch function.
 * A packet with more descriptors than `most fds in` is a breach of the protocol.
 */
/* clang-format off */
#define MEMORYD_METHODS(X)                                                                                   \
    X( 1, HELLO,             hello,             HelloRequest,      HelloReply,        SESSION_NONE,    0,  1, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X( 2, GOODBYE,           goodbye,           GoodbyeRequest,    Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X( 3, PING,              ping,              PingRequest,       Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X( 4, SUBSCRIBE,         subscribe,         SubscribeRequest,  Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X( 5, DOOR,              door,              DoorRequest,       DoorReply,         SESSION_NEEDED,  0,  1, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X( 6, SUBSCRIBE_TO,      subscribe_to,      SubscribeToRequest, Done,             SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(10, ALLOC,             alloc,             AllocRequest,      Buffers,           SESSION_NEEDED,  0, 64, METHOD_SLOW,  REPEAT_RECORDED, GRANTS_HOLDS) \
    X(11, RELEASE,           release,           ReleaseRequest,    Statuses,          SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_NOTHING) \
    X(12, EXPORT,            export,            ExportRequest,     Statuses,          SESSION_NEEDED,  0, 64, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(13, IMPORT,            import,            ImportRequest,     Buffers,           SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_HOLDS) \
    X(14, OPEN,              open,              OpenRequest,       Buffers,           SESSION_NEEDED,  0, 64, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_HOLDS) \
    X(15, LOOKUP,            lookup,            LookupRequest,     Buffers,           SESSION_NEEDED,  0,  1, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_HOLDS) \
    X(16, SHARE,             share,             ShareRequest,      ShareReply,        SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_TOKENS) \
    X(17, REVOKE,            revoke,            RevokeRequest,     RevokeReply,       SESSION_NEEDED,  0,  0, METHOD_SLOW,  REPEAT_RECORDED, GRANTS_NOTHING) \
    X(18, PUBLISH,           publish,           PublishRequest,    Done,              SESSION_NEEDED,  0,  0, METHOD_SLOW,  REPEAT_RECORDED, GRANTS_NOTHING) \
    X(19, DISCARD,           discard,           DiscardRequest,    Done,              SESSION_NEEDED,  0,  0, METHOD_SLOW,  REPEAT_RECORDED, GRANTS_NOTHING) \
    X(20, DESTROY,           destroy,           DestroyRequest,    Done,              SESSION_NEEDED,  0,  0, METHOD_SLOW,  REPEAT_RECORDED, GRANTS_NOTHING) \
    X(21, INFO,              info,              InfoRequest,       BufferInfo,        SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(22, MOVE,              move,              MoveRequest,       Done,              SESSION_NEEDED,  0,  0, METHOD_SLOW,  REPEAT_RECORDED, GRANTS_NOTHING) \
    X(23, ADOPT,             adopt,             AdoptRequest,      Buffers,           SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_HOLDS) \
    X(30, NAME_BIND,         name_bind,         NameBindRequest,   Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_NOTHING) \
    X(31, NAME_UNBIND,       name_unbind,       NameUnbindRequest, Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_NOTHING) \
    X(40, RESERVE,           reserve,           ReserveRequest,    ReserveReply,      SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_RANGE) \
    X(41, UNRESERVE,         unreserve,         UnreserveRequest,  Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_NOTHING) \
    X(42, PLACE,             place,             PlaceRequest,      Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_RECORDED, GRANTS_NOTHING) \
    X(50, STATUS,            status,            StatusRequest,     StatusReply,       SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(51, CHECK,             check,             CheckRequest,      CheckReply,        SESSION_NEEDED,  0,  0, METHOD_SLOW,  REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(52, UPGRADE,           upgrade,           UpgradeRequest,    Done,              SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(53, RELOAD,            reload,            ReloadRequest,     ReloadReply,       SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(60, LIST_NODES,        list_nodes,        ListRequest,       NodesReply,        SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(61, LIST_POOLS,        list_pools,        ListRequest,       PoolsReply,        SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(62, LIST_BUFFERS,      list_buffers,      ListRequest,       BuffersReply,      SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(63, LIST_SESSIONS,     list_sessions,     ListRequest,       SessionsReply,     SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(64, LIST_RESERVATIONS, list_reservations, ListRequest,       ReservationsReply, SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(65, LIST_NAMES,        list_names,        ListRequest,       NamesReply,        SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(66, LIST_TOKENS,       list_tokens,       ListRequest,       TokensReply,       SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(67, LIST_HISTORY,      list_history,      ListRequest,       HistoryReply,      SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(68, LIST_LIMITS,       list_limits,       ListRequest,       LimitsReply,       SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING) \
    X(69, SELECT_BUFFERS,    select_buffers,    SelectRequest,     BuffersReply,      SESSION_NEEDED,  0,  0, METHOD_CHEAP, REPEAT_HARMLESS, GRANTS_NOTHING)
/* clang-format on */

/* X(id, NAME, name, Message): packets of the broker with sequence 0 */
/* clang-format off */
#define MEMORYD_EVENTS(X)                                                                                    \
    X(0x8001, PRESSURE,  pressure,  PressureEvent)                                                           \
    X(0x8002, DISCARDED, discarded, DiscardedEvent)                                                          \
    X(0x8003, NAME,      name,      NameEvent)                                                               \
    X(0x8004, SHUTDOWN,  shutdown,  ShutdownEvent)                                                           \
    X(0x8005, LOST,      lost,      LostEvent)                                                               \
    X(0x8006, BUFFER,    buffer,    BufferEvent)                                                             \
    X(0x8007, DEATH,     death,     DeathEvent)                                                              \
    X(0x8008, HISTORY,   history,   HistoryEvent)
/* clang-format on */

enum method {
#define X(id, NAME, name, request, reply, session, fds_in, fds_out, cost, repeat, grants) METHOD_##NAME = id,
    MEMORYD_METHODS(X)
#undef X
#define X(id, NAME, name, message) METHOD_EVENT_##NAME = id,
        MEMORYD_EVENTS(X)
#undef X
};
