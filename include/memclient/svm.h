/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory as OpenCL's clSVMAlloc() gives it out, for programs with or without OpenCL: the same flags,
 * the same rules about sizes and alignments, from the broker's memory, so that other processes can open it and have
 * it at the same address.
 *
 *     struct memclient_svm *svm;
 *     void *p;
 *
 *     if (memclient_svm_create(NULL, &svm) < 0 ||
 *         memclient_svm_alloc(svm, MEMCLIENT_SVM_READ_WRITE, 1000, 0, &p) < 0)
 *         errx(1, "%s", memclient_svm_error());
 *
 * Build with `pkg-config --cflags --libs memclient-opencl`. The library links no OpenCL. It is also the layer that
 * gives programs of OpenCL such memory, see memclient-opencl(3).
 *
 * Memory. What is small is cut from larger buffers, which hold several allocations of one process; so whoever may open
 * one of these may read its neighbours. MEMCLIENT_SVM_SEPARATE makes every allocation a buffer of its own. Contents are
 * undefined at first.
 *
 * What others have of an allocation they have of its buffer: once it is freed where it was made, its place may be given
 * out again, and whoever still has it imported, or opens an old token or descriptor, sees the next one there. So free
 * last where it was made; or take MEMCLIENT_SVM_SEPARATE: then no place is used again while it is imported elsewhere.
 *
 * Errors. Functions return 0, or a negative errno; memclient_svm_error() then has a sentence in the same thread.
 * Output parameters are untouched on failure. Besides those named below there are memclient(3)'s, of the broker, and
 *     -EINVAL   an argument is outside of what is documented
 *     -ENOMEM   no memory for the library's own records
 *
 * Structs that start with their size grow as those of <memclient/memclient.h>.
 *
 * Threads. Every function may be called from any thread, also for the same objects; memclient_svm_destroy() comes after
 * all other uses of one. Freeing never waits for the broker: what goes back to it does so in a thread of the
 * library's, which starts when it is first needed, takes no signals and lives on. Nothing is async-signal-safe.
 *
 * fork(). What was allocated or imported is there in the child too, as the same memory, and is only forgotten by its
 * memclient_svm_free() there. The child's own allocations are memory of its own.
 *
 * Sizes are in bytes.
 */
#ifndef MEMCLIENT_SVM_H
#define MEMCLIENT_SVM_H

#include "memclient.h"

#ifdef __cplusplus
extern "C" {
#endif

struct memclient_svm;

/* What memory is to be used for; a bit mask with cl_svm_mem_flags' values. */
enum memclient_svm_flag {
    MEMCLIENT_SVM_READ_WRITE = 1 << 0, /* by kernels: read and written, the default; these three exclude each other */
    MEMCLIENT_SVM_WRITE_ONLY = 1 << 1,
    MEMCLIENT_SVM_READ_ONLY = 1 << 2,
    MEMCLIENT_SVM_FINE_GRAIN_BUFFER = 1 << 10,
    MEMCLIENT_SVM_ATOMICS = 1 << 11 /* only with FINE_GRAIN_BUFFER */
};

/* What a device can; a bit mask with cl_device_svm_capabilities' values. */
enum memclient_svm_capability {
    MEMCLIENT_SVM_CAN_COARSE_GRAIN_BUFFER = 1 << 0,
    MEMCLIENT_SVM_CAN_FINE_GRAIN_BUFFER = 1 << 1,
    MEMCLIENT_SVM_CAN_FINE_GRAIN_SYSTEM = 1 << 2,
    MEMCLIENT_SVM_CAN_ATOMICS = 1 << 3
};

/* Whatever uses the memory beside the host. */
struct memclient_svm_device {
    uint64_t max_alloc_size; /* of one allocation */
    uint64_t capabilities;   /* enum memclient_svm_capability; 0 = it has no shared virtual memory */
    uint32_t largest_type;   /* size of its largest data type: 128 (long16), or 64 without 64-bit integers */
    bool other_endian;       /* than the host */
};

/* Why an allocation is refused. */
enum memclient_svm_rule {
    MEMCLIENT_SVM_RULE_NONE = 0,           /* it is not */
    MEMCLIENT_SVM_RULE_DEVICES = 1,        /* no device has shared virtual memory */
    MEMCLIENT_SVM_RULE_UNKNOWN_FLAGS = 2,  /* a bit that is none of enum memclient_svm_flag */
    MEMCLIENT_SVM_RULE_ACCESS = 3,         /* more than one of READ_WRITE, WRITE_ONLY, READ_ONLY */
    MEMCLIENT_SVM_RULE_ATOMICS_ALONE = 4,  /* ATOMICS without FINE_GRAIN_BUFFER */
    MEMCLIENT_SVM_RULE_FINE_GRAIN = 5,     /* a device lacks FINE_GRAIN_BUFFER */
    MEMCLIENT_SVM_RULE_ATOMICS = 6,        /* a device lacks ATOMICS */
    MEMCLIENT_SVM_RULE_SIZE = 7,           /* 0, or more than a device's max_alloc_size */
    MEMCLIENT_SVM_RULE_ALIGNMENT = 8,      /* no power of two, or more than a device's largest type */
    MEMCLIENT_SVM_RULE_ENDIAN = 9          /* a device has the other byte order */
};

/*
 * May n devices together have such an allocation? 0, or -EINVAL, and then *broken, unless NULL, says why not; several
 * things may be wrong, the first of the enum is told. alignment 0 = the size of the largest type of any device.
 */
MEMCLIENT_API int memclient_svm_check(const struct memclient_svm_device *devices, size_t n, uint64_t flags,
                                      uint64_t size, uint32_t alignment, enum memclient_svm_rule *broken);

/* The sentence of this thread's last failed call of this header, as memclient_error()'s. */
MEMCLIENT_API const char *memclient_svm_error(void);

/* Of memclient_svm_options; a bit mask. */
enum memclient_svm_option {
    MEMCLIENT_SVM_SEPARATE = 1 /* each allocation is a buffer of its own */
};

struct memclient_svm_options {
    size_t size;
    struct memclient *context;  /* NULL = the process-wide one. It outlives what is created */
    const struct memclient_svm_device *devices; /* copied */
    size_t n_devices;           /* 0 = one that can everything, for any size */
    const char *pool;           /* of the broker, by name; NULL = chosen by nodes */
    const uint32_t *nodes;      /* NUMA nodes, at most 64 */
    size_t n_nodes;             /* 0 = any */
    unsigned placement;         /* enum memclient_placement */
    unsigned flags;             /* enum memclient_svm_option */
    uint64_t quarantine;        /* bytes of freed allocations that are kept from being used again, see below */
    const char *name;           /* buffers are named NAME/PID-SESSION-HEAP/1 and so on; NULL = svm */
};
#define MEMCLIENT_SVM_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_svm_options)

/*
 * Makes a heap of such memory. Makes no call: nothing is asked of the broker before memory is.
 *
 * Its buffers have names that end with this process or when they are freed, so that `memctl buffers` shows them with
 * process and ordinal, and whoever may can open them by that.
 *
 * With a quarantine, what is freed is used again, or goes back, only when that many bytes were freed after it;
 * allocations that are buffers of their own are inaccessible meanwhile, so that a late access is SIGSEGV rather than
 * damage. If memory runs out, the quarantine ends first.
 *     -EINVAL   an option is out of range
 */
MEMCLIENT_API int memclient_svm_create(const struct memclient_svm_options *options, struct memclient_svm **svm);

/* Ends it, and frees whatever was allocated or imported. NULL is ignored. */
MEMCLIENT_API void memclient_svm_destroy(struct memclient_svm *svm);

/*
 * Allocates, by memclient_svm_check()'s rules (-EINVAL).
 *     -ENOMEM, -EDQUOT, -EFBIG   there is no room, as memclient_alloc() has it
 */
MEMCLIENT_API int memclient_svm_alloc(struct memclient_svm *svm, uint64_t flags, uint64_t size, uint32_t alignment,
                                      void **ptr);

/* Frees what was allocated or imported. NULL is ignored. -EINVAL: it is not the start of any of svm's. */
MEMCLIENT_API int memclient_svm_free(struct memclient_svm *svm, void *ptr);

struct memclient_svm_info {
    size_t size;
    struct memclient_svm *svm;
    void *address;    /* where it starts */
    uint64_t length;  /* as asked for */
    uint64_t flags;   /* likewise */
    uint64_t ordinal; /* the how manieth of this process it is; 1, 2, ... */
    bool imported;
};
#define MEMCLIENT_SVM_INFO_INIT MEMCLIENT_SIZED(struct memclient_svm_info)

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* as of memclient_buffer_info() */
#endif
/* Which allocation or import an address is in. -EFAULT: in none. Makes no call. */
MEMCLIENT_API int memclient_svm_info(const void *ptr, struct memclient_svm_info *info);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ------------------------------------------------------------------------------------------------------- sharing */

/*
 * For other processes: the buffer that an allocation, of any address in it, lies in, and where in it. The reference is
 * the caller's, for memclient_buffer_unref(). -EFAULT: no allocation.
 */
MEMCLIENT_API int memclient_svm_buffer(const void *ptr, struct memclient_buffer **buf, uint64_t *offset,
                                       uint64_t *length);

/* Likewise a descriptor of that, see memclient_export_fd(); the caller's to close. */
MEMCLIENT_API int memclient_svm_export_fd(const void *ptr, unsigned rights, int *fd, uint64_t *offset,
                                          uint64_t *length);

/*
 * Likewise a token, see memclient_share(). options NULL = it grants what a descriptor gives: READ, WRITE if this
 * process has that, and SHARE, so that who opens it may hand it on.
 */
MEMCLIENT_API int memclient_svm_share(const void *ptr, const struct memclient_share_options *options,
                                      struct memclient_token *token, uint64_t *offset, uint64_t *length);

/*
 * Puts what others share into svm: the part of a buffer, at the address that it has there, until memclient_svm_free().
 * length 0 = to the end. `buf` stays the caller's. Importing again counts up; in a process that has it mapped already
 * it is that memory, for as long as it is.
 *     -EOVERFLOW       offset and length go beyond the buffer's end
 *     -EADDRNOTAVAIL   the buffer has no home, or the process that shares it has it elsewhere
 *     -EADDRINUSE      something else of this process is there
 */
MEMCLIENT_API int memclient_svm_import(struct memclient_svm *svm, struct memclient_buffer *buf, uint64_t offset,
                                       uint64_t length, void **ptr);

/* Likewise of a descriptor, see memclient_import_fd(), which stays the caller's. */
MEMCLIENT_API int memclient_svm_import_fd(struct memclient_svm *svm, int fd, uint64_t offset, uint64_t length,
                                          void **ptr);

/* Likewise of a token, see memclient_open_token(). */
MEMCLIENT_API int memclient_svm_open_token(struct memclient_svm *svm, const struct memclient_token *token,
                                           uint64_t offset, uint64_t length, void **ptr);

#ifdef __cplusplus
}
#endif

#endif
