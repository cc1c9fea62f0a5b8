/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method table as data.
 *
 * protoc-c calls a message HelloRequest and its descriptor hello_request. The preprocessor cannot derive one from the
 * other, so the list below does; a missing message does not compile.
 */
#include "proto/schema.h"

#include "proto/memoryd.pb-c.h"

#define DESCRIPTOR(Message) (&DESCRIPTOR_##Message)

#define DESCRIPTOR_AdoptRequest       memoryd__v1__adopt_request__descriptor
#define DESCRIPTOR_AllocRequest       memoryd__v1__alloc_request__descriptor
#define DESCRIPTOR_BufferEvent        memoryd__v1__buffer_event__descriptor
#define DESCRIPTOR_BufferInfo         memoryd__v1__buffer_info__descriptor
#define DESCRIPTOR_Buffers            memoryd__v1__buffers__descriptor
#define DESCRIPTOR_BuffersReply       memoryd__v1__buffers_reply__descriptor
#define DESCRIPTOR_CheckReply         memoryd__v1__check_reply__descriptor
#define DESCRIPTOR_CheckRequest       memoryd__v1__check_request__descriptor
#define DESCRIPTOR_DeathEvent         memoryd__v1__death_event__descriptor
#define DESCRIPTOR_DestroyRequest     memoryd__v1__destroy_request__descriptor
#define DESCRIPTOR_DiscardRequest     memoryd__v1__discard_request__descriptor
#define DESCRIPTOR_DiscardedEvent     memoryd__v1__discarded_event__descriptor
#define DESCRIPTOR_Done               memoryd__v1__done__descriptor
#define DESCRIPTOR_DoorReply          memoryd__v1__door_reply__descriptor
#define DESCRIPTOR_DoorRequest        memoryd__v1__door_request__descriptor
#define DESCRIPTOR_ExportRequest      memoryd__v1__export_request__descriptor
#define DESCRIPTOR_GoodbyeRequest     memoryd__v1__goodbye_request__descriptor
#define DESCRIPTOR_HelloReply         memoryd__v1__hello_reply__descriptor
#define DESCRIPTOR_HelloRequest       memoryd__v1__hello_request__descriptor
#define DESCRIPTOR_HistoryEvent       memoryd__v1__history_event__descriptor
#define DESCRIPTOR_HistoryReply       memoryd__v1__history_reply__descriptor
#define DESCRIPTOR_ImportRequest      memoryd__v1__import_request__descriptor
#define DESCRIPTOR_InfoRequest        memoryd__v1__info_request__descriptor
#define DESCRIPTOR_LimitsReply        memoryd__v1__limits_reply__descriptor
#define DESCRIPTOR_ListRequest        memoryd__v1__list_request__descriptor
#define DESCRIPTOR_LookupRequest      memoryd__v1__lookup_request__descriptor
#define DESCRIPTOR_LostEvent          memoryd__v1__lost_event__descriptor
#define DESCRIPTOR_MoveRequest        memoryd__v1__move_request__descriptor
#define DESCRIPTOR_NameBindRequest    memoryd__v1__name_bind_request__descriptor
#define DESCRIPTOR_NameEvent          memoryd__v1__name_event__descriptor
#define DESCRIPTOR_NameUnbindRequest  memoryd__v1__name_unbind_request__descriptor
#define DESCRIPTOR_NamesReply         memoryd__v1__names_reply__descriptor
#define DESCRIPTOR_NodesReply         memoryd__v1__nodes_reply__descriptor
#define DESCRIPTOR_OpenRequest        memoryd__v1__open_request__descriptor
#define DESCRIPTOR_PingRequest        memoryd__v1__ping_request__descriptor
#define DESCRIPTOR_PlaceRequest       memoryd__v1__place_request__descriptor
#define DESCRIPTOR_PoolsReply         memoryd__v1__pools_reply__descriptor
#define DESCRIPTOR_PressureEvent      memoryd__v1__pressure_event__descriptor
#define DESCRIPTOR_PublishRequest     memoryd__v1__publish_request__descriptor
#define DESCRIPTOR_ReleaseRequest     memoryd__v1__release_request__descriptor
#define DESCRIPTOR_ReloadReply        memoryd__v1__reload_reply__descriptor
#define DESCRIPTOR_ReloadRequest      memoryd__v1__reload_request__descriptor
#define DESCRIPTOR_ReservationsReply  memoryd__v1__reservations_reply__descriptor
#define DESCRIPTOR_ReserveReply       memoryd__v1__reserve_reply__descriptor
#define DESCRIPTOR_ReserveRequest     memoryd__v1__reserve_request__descriptor
#define DESCRIPTOR_RevokeReply        memoryd__v1__revoke_reply__descriptor
#define DESCRIPTOR_RevokeRequest      memoryd__v1__revoke_request__descriptor
#define DESCRIPTOR_SelectRequest      memoryd__v1__select_request__descriptor
#define DESCRIPTOR_SessionsReply      memoryd__v1__sessions_reply__descriptor
#define DESCRIPTOR_ShareReply         memoryd__v1__share_reply__descriptor
#define DESCRIPTOR_ShareRequest       memoryd__v1__share_request__descriptor
#define DESCRIPTOR_ShutdownEvent      memoryd__v1__shutdown_event__descriptor
#define DESCRIPTOR_StatusReply        memoryd__v1__status_reply__descriptor
#define DESCRIPTOR_StatusRequest      memoryd__v1__status_request__descriptor
#define DESCRIPTOR_Statuses           memoryd__v1__statuses__descriptor
#define DESCRIPTOR_SubscribeRequest   memoryd__v1__subscribe_request__descriptor
#define DESCRIPTOR_SubscribeToRequest memoryd__v1__subscribe_to_request__descriptor
#define DESCRIPTOR_TokensReply        memoryd__v1__tokens_reply__descriptor
#define DESCRIPTOR_UnreserveRequest   memoryd__v1__unreserve_request__descriptor
#define DESCRIPTOR_UpgradeRequest     memoryd__v1__upgrade_request__descriptor

static const struct schema_method methods[] = {
#define X(id, NAME, name, Request, Reply, session, in, out, cost, repeat, grants) \
    {id, #name, DESCRIPTOR(Request), DESCRIPTOR(Reply), session, in, out, cost, repeat, grants},
    MEMORYD_METHODS(X)
#undef X
};

static const struct schema_event events[] = {
#define X(id, NAME, name, Message) {id, #name, DESCRIPTOR(Message)},
    MEMORYD_EVENTS(X)
#undef X
};

const struct schema_method *schema_methods(size_t *n)
{
    *n = sizeof(methods) / sizeof(methods[0]);
    return methods;
}

const struct schema_event *schema_events(size_t *n)
{
    *n = sizeof(events) / sizeof(events[0]);
    return events;
}

const struct schema_method *schema_method(uint16_t id)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (methods[i].id == id)
            return &methods[i];
    return NULL;
}

const struct schema_event *schema_event(uint16_t id)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (events[i].id == id)
            return &events[i];
    return NULL;
}

static void *member_at(ProtobufCMessage *message, unsigned offset)
{
    return (char *)message + offset;
}

void schema_page(ProtobufCMessage *reply, struct schema_page *ret)
{
    const ProtobufCMessageDescriptor *type = reply->descriptor;
    const ProtobufCFieldDescriptor *rows = &type->fields[0];
    const ProtobufCFieldDescriptor *next = protobuf_c_message_descriptor_get_field_by_name(type, "next");
    const ProtobufCFieldDescriptor *simulated = protobuf_c_message_descriptor_get_field_by_name(type, "simulated");

    *ret = (struct schema_page){
        .row = rows->descriptor,
        .n_rows = member_at(reply, rows->quantifier_offset),
        .rows = member_at(reply, rows->offset),
        .next = member_at(reply, next->offset),
        .simulated = simulated ? member_at(reply, simulated->offset) : NULL,
    };
}
