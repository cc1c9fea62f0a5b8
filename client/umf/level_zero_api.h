/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Level Zero's interface, version 1.x, that the provider uses. It is declared here so that building does
 * not need Level Zero. Where its header is installed, a test compares the two.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define L0_LOADER "libze_loader.so.1"

/* ze_result_t: those that have a meaning here, and common ones. */
enum l0_result {
    L0_SUCCESS = 0,
    L0_DEVICE_LOST = 0x70000001,
    L0_OUT_OF_HOST_MEMORY = 0x70000002,
    L0_OUT_OF_DEVICE_MEMORY = 0x70000003,
    L0_UNINITIALIZED = 0x78000001,
    L0_UNSUPPORTED_FEATURE = 0x78000003,
    L0_INVALID_ARGUMENT = 0x78000004,
    L0_INVALID_NULL_HANDLE = 0x78000005,
    L0_HANDLE_OBJECT_IN_USE = 0x78000006,
    L0_INVALID_NULL_POINTER = 0x78000007,
    L0_INVALID_SIZE = 0x78000008,
    L0_UNSUPPORTED_SIZE = 0x78000009,
    L0_UNSUPPORTED_ALIGNMENT = 0x7800000a,
    L0_UNKNOWN = 0x7ffffffe
};

/* ze_structure_type_t: the first member of a struct. */
enum l0_structure { L0_STRUCTURE_DEVICE_DESC = 0x15, L0_STRUCTURE_HOST_DESC = 0x16, L0_STRUCTURE_PROPERTIES = 0x17 };

/* ze_memory_type_t */
enum l0_memory {
    L0_MEMORY_UNKNOWN = 0, /* not Level Zero's memory */
    L0_MEMORY_HOST = 1,
    L0_MEMORY_DEVICE = 2,
    L0_MEMORY_SHARED = 3
};

/* ze_host_mem_alloc_desc_t */
struct l0_host_desc {
    uint32_t structure;
    const void *next;
    uint32_t flags;
};

/* ze_device_mem_alloc_desc_t */
struct l0_device_desc {
    uint32_t structure;
    const void *next;
    uint32_t flags;
    uint32_t ordinal;
};

/* ze_memory_allocation_properties_t */
struct l0_properties {
    uint32_t structure;
    void *next;
    uint32_t type;
    uint64_t id;
    uint64_t page_size;
};

/* ze_ipc_mem_handle_t. On Linux it begins with a descriptor, an int. */
struct l0_ipc_handle {
    uint8_t data[64];
};

/* The loader's functions. Handles are pointers. */
struct l0_functions {
    uint32_t (*init)(uint32_t flags);
    uint32_t (*alloc_host)(void *context, const struct l0_host_desc *host, size_t size, size_t alignment, void **ptr);
    uint32_t (*alloc_device)(void *context, const struct l0_device_desc *desc, size_t size, size_t alignment,
                             void *device, void **ptr);
    uint32_t (*alloc_shared)(void *context, const struct l0_device_desc *desc, const struct l0_host_desc *host,
                             size_t size, size_t alignment, void *device, void **ptr);
    uint32_t (*free)(void *context, void *ptr);
    uint32_t (*get_properties)(void *context, const void *ptr, struct l0_properties *properties, void **device);
    uint32_t (*get_range)(void *context, const void *ptr, void **base, size_t *size);
    uint32_t (*get_ipc)(void *context, const void *ptr, struct l0_ipc_handle *handle);
    uint32_t (*put_ipc)(void *context, struct l0_ipc_handle handle); /* since 1.6; else NULL */
    uint32_t (*open_ipc)(void *context, void *device, struct l0_ipc_handle handle, uint32_t flags, void **ptr);
    uint32_t (*close_ipc)(void *context, const void *ptr);
};
