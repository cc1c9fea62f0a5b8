/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared virtual memory like that of OpenCL's clSVMAlloc(), for programs with or without OpenCL. Flags and the rules
 * about sizes and alignments are the same, but the memory is the broker's, so that other processes can open it, at the
 * same address.
 *
 *     struct memclient_svm *svm;
 *     void *p;
 *
 *     if (memclient_svm_create(NULL, &svm) < 0 ||
 *         memclient_svm_alloc(svm, MEMCLIENT_SVM_READ_WRITE, 1000, 0, &p) < 0)
 *         errx(1, "%s", memclient_svm_error());
 *
 * Build with `pkg-config --cflags --libs memclient-opencl`. The library links no OpenCL. It is also the layer that
 * gives such memory to programs of OpenCL, see memclient-opencl(3).
 *
 * Memory. Small allocations are cut from larger buffers, which hold several allocations of one process. A process that
 * may open one of them may read its neighbours. MEMCLIENT_SVM_SEPARATE makes each allocation a buffer of its own.
 * Contents are undefined at first.
 *
 * Other processes import a part of a buffer. Once its allocation is freed, its place may be used again, and whoever
 * still has it imported, or opens an old token or descriptor, sees the next allocation there. So the process that
 * allocated should free last. With MEMCLIENT_SVM_SEPARATE no place is used again while it is imported elsewhere.
 *
 * Errors. Functions return 0, or a negative errno; memclient_svm_error() then has a sentence in the same thread.
 * Output parameters are untouched on failure. Besides the errors named below there are those of the broker, see
 * memclient(3), and
 *     -EINVAL   an argument is outside of what is documented
 *     -ENOMEM   no memory for the library's own records
 *
 * Structs that start with their size grow as those of <memclient/memclient.h>.
 *
 * Threads. Any thread may call any function, also for the same object, but memclient_svm_destroy() must come after all
 * other uses of it. Freeing never waits for the broker: a thread of the library releases the memory. It starts when it
 * is first needed, handles no signals, and does not end. Nothing is async-signal-safe.
 *
 * fork(). A child shares what its parent allocated or imported; memclient_svm_free() only forgets it there. The child's
 * own allocations are its own memory.
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

/* The use of an allocation; a bit mask with the values of cl_svm_mem_flags. */
enum memclient_svm_flag {
    MEMCLIENT_SVM_READ_WRITE = 1 << 0, /* kernels read and write it, the default; these three exclude each other */
    MEMCLIENT_SVM_WRITE_ONLY = 1 << 1,
    MEMCLIENT_SVM_READ_ONLY = 1 << 2,
    MEMCLIENT_SVM_FINE_GRAIN_BUFFER = 1 << 10,
    MEMCLIENT_SVM_ATOMICS = 1 << 11 /* only with FINE_GRAIN_BUFFER */
};

/* What a device can do; a bit mask with the values of cl_device_svm_capabilities. */
enum memclient_svm_capability {
    MEMCLIENT_SVM_CAN_COARSE_GRAIN_BUFFER = 1 << 0,
    MEMCLIENT_SVM_CAN_FINE_GRAIN_BUFFER = 1 << 1,
    MEMCLIENT_SVM_CAN_FINE_GRAIN_SYSTEM = 1 << 2,
    MEMCLIENT_SVM_CAN_ATOMICS = 1 << 3
};

/* A device that uses the memory besides the host. */
struct memclient_svm_device {
    uint64_t max_alloc_size; /* of one allocation */
    uint64_t capabilities;   /* enum memclient_svm_capability; 0 = no shared virtual memory */
    uint32_t largest_type;   /* size of the largest data type: 128 (long16), or 64 without 64-bit integers */
    bool other_endian;       /* than the host */
};

/* Why an allocation is refused. */
enum memclient_svm_rule {
    MEMCLIENT_SVM_RULE_NONE = 0,          /* it is not refused */
    MEMCLIENT_SVM_RULE_DEVICES = 1,       /* no device has shared virtual memory */
    MEMCLIENT_SVM_RULE_UNKNOWN_FLAGS = 2, /* a bit is not in enum memclient_svm_flag */
    MEMCLIENT_SVM_RULE_ACCESS = 3,        /* more than one of READ_WRITE, WRITE_ONLY, READ_ONLY */
    MEMCLIENT_SVM_RULE_ATOMICS_ALONE = 4, /* ATOMICS without FINE_GRAIN_BUFFER */
    MEMCLIENT_SVM_RULE_FINE_GRAIN = 5,    /* a device lacks FINE_GRAIN_BUFFER */
    MEMCLIENT_SVM_RULE_ATOMICS = 6,       /* a device lacks ATOMICS */
    MEMCLIENT_SVM_RULE_SIZE = 7,          /* 0, or more than a device's max_alloc_size */
    MEMCLIENT_SVM_RULE_ALIGNMENT = 8,     /* no power of two, or more than a device's largest type */
    MEMCLIENT_SVM_RULE_ENDIAN = 9         /* a device has the other byte order */
};

/*
 * Checks whether n devices together may have such an allocation. 0, or -EINVAL, and then *broken, unless it is NULL, is
 * the first rule of the enum that refuses it. alignment 0 = the size of the largest type of any device.
 */
MEMCLIENT_API int memclient_svm_check(size_t n, const struct memclient_svm_device *devices, uint64_t flags,
                                      uint64_t size, uint32_t alignment, enum memclient_svm_rule *broken);

/* The sentence of this thread's last failed call of this header, like memclient_error(). */
MEMCLIENT_API const char *memclient_svm_error(void);

/* Of memclient_svm_options; a bit mask. */
enum memclient_svm_option {
    MEMCLIENT_SVM_SEPARATE = 1 /* each allocation is a buffer of its own */
};

struct memclient_svm_options {
    size_t size;
    struct memclient_context *context;          /* must outlive the heap; NULL = the process-wide one */
    const struct memclient_svm_device *devices; /* copied */
    size_t n_devices;                           /* 0 = one with all capabilities, and any size */
    const char *pool;                           /* name of a pool of the broker; NULL = chosen by nodes */
    const uint32_t *nodes;                      /* NUMA nodes, at most 64 */
    size_t n_nodes;                             /* 0 = any */
    unsigned placement;                         /* enum memclient_placement */
    unsigned flags;                             /* enum memclient_svm_option */
    uint64_t quarantine;                        /* bytes of freed allocations that are not used again, see below */
    const char *name;                           /* buffers are named NAME/PID-SESSION-HEAP/1 and so on; NULL = svm */
};
#define MEMCLIENT_SVM_OPTIONS_INIT MEMCLIENT_SIZED(struct memclient_svm_options)

/*
 * Makes a heap of such memory. Makes no call to the broker: only allocations do.
 *
 * Its buffers have names until they are freed or the process ends, so that `memctl buffers` shows them with process and
 * ordinal, and processes with the right can open them by name.
 *
 * With a quarantine, freed memory is used again or released only after that many bytes were freed after it. Allocations
 * that are buffers of their own are inaccessible meanwhile, so that a late access is SIGSEGV rather than damage. The
 * quarantine is emptied before an allocation fails for want of memory.
 *     -EINVAL   an option is out of range
 */
MEMCLIENT_API int memclient_svm_create(const struct memclient_svm_options *options, struct memclient_svm **svm);

/* Destroys the heap, and frees all that it allocated and imported. NULL is ignored. */
MEMCLIENT_API void memclient_svm_destroy(struct memclient_svm *svm);

/*
 * Allocates by the rules of memclient_svm_check() (-EINVAL).
 *     -ENOMEM, -EDQUOT, -EFBIG   there is no room, as in memclient_alloc()
 */
MEMCLIENT_API int memclient_svm_alloc(struct memclient_svm *svm, uint64_t flags, uint64_t size, uint32_t alignment,
                                      void **ptr);

/* Frees an allocation or import. NULL is ignored. -EINVAL: none of this heap starts there. */
MEMCLIENT_API int memclient_svm_free(struct memclient_svm *svm, void *ptr);

struct memclient_svm_info {
    size_t size;
    struct memclient_svm *svm;
    void *address;    /* of the first byte */
    uint64_t length;  /* as requested */
    uint64_t flags;   /* likewise */
    uint64_t ordinal; /* its number in this process: 1, 2, ... */
    bool imported;
};
#define MEMCLIENT_SVM_INFO_INIT MEMCLIENT_SIZED(struct memclient_svm_info)

/* Finds the allocation or import that holds an address. -EFAULT: none does. Makes no call to the broker. */
MEMCLIENT_API int memclient_svm_query(const void *ptr, struct memclient_svm_info *info);

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

/*
 * Finds the buffer that an allocation lies in, and where in it, by any address in the allocation. The reference is the
 * caller's to drop, by memclient_buffer_unref(). -EFAULT: it is no allocation.
 */
MEMCLIENT_API int memclient_svm_buffer(const void *ptr, struct memclient_buffer **buf, uint64_t *offset,
                                       uint64_t *length);

/* Likewise makes a descriptor, which the caller closes, see memclient_export_fd(). */
MEMCLIENT_API int memclient_svm_export_fd(const void *ptr, unsigned rights, int *fd, uint64_t *offset,
                                          uint64_t *length);

/*
 * Likewise makes a token, see memclient_share(). options NULL = it grants what a descriptor grants: READ, WRITE if this
 * process has that, and SHARE, so that its opener may share in turn.
 */
MEMCLIENT_API int memclient_svm_share(const void *ptr, const struct memclient_share_options *options,
                                      struct memclient_token *token, uint64_t *offset, uint64_t *length);

/*
 * Imports a part of a buffer that another process shares, at the address that it has there, until memclient_svm_free().
 * length 0 = to the end. `buf` stays the caller's. A part may be imported again, and is to be freed as often. Where the
 * process has the buffer mapped already, the import shares that mapping as long as it exists.
 *     -EOVERFLOW       offset and length go beyond the buffer's end
 *     -EADDRNOTAVAIL   the buffer has no home, or the sharing process has it elsewhere
 *     -EADDRINUSE      this process has something else at that address
 */
MEMCLIENT_API int memclient_svm_import(struct memclient_svm *svm, struct memclient_buffer *buf, uint64_t offset,
                                       uint64_t length, void **ptr);

/* Likewise by a descriptor, which stays the caller's, see memclient_import_fd(). */
MEMCLIENT_API int memclient_svm_import_fd(struct memclient_svm *svm, int fd, uint64_t offset, uint64_t length,
                                          void **ptr);

/* Likewise by a token, see memclient_open_token(). */
MEMCLIENT_API int memclient_svm_open_token(struct memclient_svm *svm, const struct memclient_token *token,
                                           uint64_t offset, uint64_t length, void **ptr);

#ifdef __cplusplus
}
#endif

#endif
