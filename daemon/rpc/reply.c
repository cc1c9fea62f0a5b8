/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sentence may quote what the client wrote and may have been cut to fit, so it is made text again before it leaves.
 */

#include "rpc/reply.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"
#include "broker/broker.h"
#include "proto/envelope.h"
#include "proto/limits.h"
#include "proto/memoryd.pb-c.h"
#include "proto/status.h"
#include "rpc/rpc.h"

void reply_message(struct rpc_client *client, uint16_t method, uint64_t sequence, const ProtobufCMessage *message,
                   struct fdset *fds)
{
    struct rpc *rpc = client->rpc;
    struct frame_header header = {.method = method, .sequence = sequence};
    size_t size;
    int r = envelope_pack(message, rpc->out, MEMORYD_PAYLOAD_MAX, &size);

    /* replies are bounded by what they are made of: batches of 64, listings that count their bytes */
    assert(r == 0);
    (void)r;
    rpc->requests++;
    /* what it says must not be taken back any more */
    broker_commit(rpc->broker);
    rpc->transport->reply(client->connection, &header, rpc->out, size, fds);
}

static void make_text(char *sentence)
{
    size_t n = utf8_cut(sentence, strlen(sentence));

    sentence[n] = '\0';
    if (utf8_is_printable(sentence, n))
        return;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)sentence[i] < ' ' || (unsigned char)sentence[i] > '~')
            sentence[i] = '?';
}

char *reply_sentence(struct problem *problem)
{
    make_text(problem->sentence);
    return problem->sentence;
}

void reply_problem(struct rpc_client *client, uint16_t method, uint64_t sequence, int status,
                   struct problem *problem)
{
    struct rpc *rpc = client->rpc;
    struct frame_header header = {.method = method, .sequence = sequence, .status = (uint32_t)status};
    Memoryd__V1__Problem message = MEMORYD__V1__PROBLEM__INIT;
    size_t size;
    int r;

    if (!problem->sentence[0])
        problem_set(problem, "%s", status_text((unsigned)status));
    message.sentence = reply_sentence(problem);
    message.item = problem->item;
    r = envelope_pack(&message.base, rpc->out, MEMORYD_PAYLOAD_MAX, &size);
    assert(r == 0);
    (void)r;
    rpc->requests++;
    rpc->refused++;
    broker_commit(rpc->broker);
    rpc->transport->reply(client->connection, &header, rpc->out, size, NULL);
}
