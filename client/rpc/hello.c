/* SPDX-License-Identifier: Apache-2.0 */
/* HELLO: what a client says of itself, for a new session or one to be resumed, and what it learns of the broker. */
#include "rpc/convert.h"

#include <errno.h>

#include "base/align.h"

void hello_request(Memoryd__V1__HelloRequest *request, const char *program, const struct rpc_session *resume,
                   bool release_log)
{
    *request = (Memoryd__V1__HelloRequest)MEMORYD__V1__HELLO_REQUEST__INIT;
    request->version_min = MEMORYD_MINOR_MIN;
    request->version_max = MEMORYD_MINOR_MAX;
    request->program = (char *)(uintptr_t)program;
    request->release_log = release_log;
    if (resume) {
        request->session = resume->session;
        request->secret.data = (uint8_t *)(uintptr_t)resume->secret;
        request->secret.len = sizeof(resume->secret);
    }
}

int hello_decode(void *result, const ProtobufCMessage *reply, struct fdset *fds)
{
    const Memoryd__V1__HelloReply *hello = (const Memoryd__V1__HelloReply *)reply;
    struct rpc_session *session = result;

    if (!hello->session || hello->secret.len != sizeof(session->secret) || !is_power_of_two(hello->base_page))
        return -EPROTO;
    *session = (struct rpc_session){
        .version = hello->version,
        .session = hello->session,
        .broker = hello->broker,
        .arena_base = hello->arena_base,
        .arena_size = hello->arena_size,
        .base_page = hello->base_page,
        .broker_uid = hello->broker_uid,
        .simulated = hello->simulated,
        .release_log = fdset_count(fds) ? fdset_steal(fds, 0) : -1,
        .n_nodes = hello->nodes,
    };
    memcpy(session->secret, hello->secret.data, sizeof(session->secret));
    return 0;
}
