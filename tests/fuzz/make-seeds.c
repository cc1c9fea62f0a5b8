/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-seeds FOLDER: writes a sound packet of every kind there, as fuzz-packet reads it. They are
 * kept in corpus/fuzz-packet; seeds.sh finds out when a new method has none.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/envelope.h"
#include "proto/frame.h"
#include "proto/memoryd.pb-c.h"
#include "proto/schema.h"
#include "tests/unit/proto/fill.h"

static int folder;

static void write_seed(const char *name, enum frame_side side, struct frame_header header,
                       const ProtobufCMessageDescriptor *descriptor)
{
    static const struct filling filling = {.number = 300, .repeated = 2, .rows = 2, .text = 3, .bytes = 32};
    static uint8_t seed[2 + MEMORYD_FRAME_MAX];
    ProtobufCMessage *message = fill(descriptor, &filling);
    size_t head = header.answered ? MEMORYD_HEADER_LONG : MEMORYD_HEADER_SIZE;
    size_t n;
    int fd;

    if (envelope_pack(message, seed + 2 + head, MEMORYD_FRAME_MAX - head, &n))
        abort();
    protobuf_c_message_free_unpacked(message, NULL);
    header.payload_length = (uint32_t)n;
    seed[0] = side == FRAME_FROM_BROKER ? 3 : 2;
    seed[1] = (uint8_t)header.fd_count;
    n += 2 + frame_encode(seed + 2, side, &header);

    fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, seed, n) != (ssize_t)n || close(fd)) {
        perror(name);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const struct schema_method *methods;
    const struct schema_event *events;
    char name[64];
    size_t n;

    folder = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder < 0) {
        fprintf(stderr, "usage: make-seeds FOLDER\n");
        return 2;
    }
    methods = schema_methods(&n);
    for (size_t i = 0; i < n; i++) {
        struct frame_header header = {.method = methods[i].id, .sequence = 1000};

        header.acknowledged = 999;
        header.fd_count = (uint16_t)methods[i].fds_in;
        snprintf(name, sizeof(name), "%s-request", methods[i].name);
        write_seed(name, FRAME_FROM_CLIENT, header, methods[i].request);
        header.acknowledged = 0;
        header.fd_count = (uint16_t)methods[i].fds_out;
        snprintf(name, sizeof(name), "%s-reply", methods[i].name);
        write_seed(name, FRAME_FROM_BROKER, header, methods[i].reply);
    }
    events = schema_events(&n);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s-event", events[i].name);
        write_seed(name, FRAME_FROM_BROKER, (struct frame_header){.method = events[i].id}, events[i].message);
    }
    write_seed("answered-request", FRAME_FROM_CLIENT,
               (struct frame_header){.method = METHOD_PING, .sequence = 1000, .acknowledged = 7, .answered = 9},
               &memoryd__v1__ping_request__descriptor);
    write_seed("problem", FRAME_FROM_BROKER, (struct frame_header){.method = METHOD_ALLOC, .sequence = 1, .status = 8},
               &memoryd__v1__problem__descriptor);
    return 0;
}
