/* SPDX-License-Identifier: Apache-2.0 */
/* Shared virtual memory as OpenCL gives it out: a part of a buffer that has others' allocations too. */
#include <memclient/svm.h>

#include "tests/integration/handles/facade.h"

static struct memclient_svm *new_heap(struct memory *memory)
{
    struct memclient_svm *svm;

    CHECK(!memclient_svm_create(NULL, &svm));
    memory->object = svm;
    return svm;
}

static void make(struct memory *memory)
{
    struct memclient_svm *svm = new_heap(memory);
    void *first, *ptr;

    CHECK(!memclient_svm_alloc(svm, 0, MEMORY_SIZE, 0, &first));
    CHECK(!memclient_svm_alloc(svm, 0, MEMORY_SIZE, 0, &ptr));
    memory->at = ptr;
}

static void get_token(const struct memory *memory, struct handed *handed)
{
    uint64_t offset, length;

    CHECK(!memclient_svm_share(memory->at, NULL, &handed->token, &offset, &length));
    CHECK(offset == handed->offset && length == MEMORY_SIZE);
}

static void get_fd(const struct memory *memory, struct handed *handed)
{
    uint64_t offset, length;

    CHECK(!memclient_svm_export_fd(memory->at, 0, &handed->fd, &offset, &length));
    CHECK(offset == handed->offset && length == MEMORY_SIZE);
}

static void open_token(const struct handed *handed, struct memory *memory)
{
    struct memclient_svm *svm = new_heap(memory);
    void *ptr;

    CHECK(!memclient_svm_open_token(svm, &handed->token, handed->offset, MEMORY_SIZE, &ptr));
    memory->at = ptr;
}

static void open_fd(const struct handed *handed, struct memory *memory)
{
    struct memclient_svm *svm = new_heap(memory);
    void *ptr;

    CHECK(!memclient_svm_import_fd(svm, handed->fd, handed->offset, MEMORY_SIZE, &ptr));
    memory->at = ptr;
}

static void give_back(struct memory *memory)
{
    CHECK(!memclient_svm_free(memory->object, memory->at));
    memclient_svm_destroy(memory->object);
}

const struct facade svm_facade = {
    .name = "SVM",
    .make = make,
    .get_token = get_token,
    .get_fd = get_fd,
    .give_back = give_back,
    .open_token = open_token,
    .open_fd = open_fd,
    .close_token = give_back,
    .close_fd = give_back,
};
