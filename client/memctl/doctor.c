/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command that finds out what is not as memoryd could use it, where nothing else reports it. About the machine,
 * machine.h says what. About OpenCL: its loader silently skips a layer that it cannot load, and a layer without a
 * broker leaves the memory to the driver. So the command checks the broker, the layer and the loader, and allocates a
 * little memory on every device of every driver. It loads OpenCL as programs do, and needs nothing of it to be built.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memclient/cl_svm_memoryd.h>
#include <memclient/memclient.h>

#include "base/cleanup.h"
#include "memctl/command.h"
#include "memctl/findings.h"
#include "memctl/library.h"
#include "memctl/machine.h"

#define LAYER_FILE  "libmemclient-opencl.so"
#define LOADER_FILE "libOpenCL.so.1"
/* Asks an OpenCL layer for its name, and ocl-icd for its version. */
#define LAYER_NAME     0x4241
#define LOADER_VERSION 2

typedef int32_t info_fn(uint32_t what, size_t size, void *value, size_t *size_ret);
typedef void *extension_fn(const char *name);

/* The part of OpenCL that is called, with its numbers and types. */
#define PLATFORM_VERSION 0x0901
#define PLATFORM_NAME    0x0902
#define DEVICE_NAME      0x102B
#define DEVICE_SVM       0x1053
#define DEVICES_ALL      0xFFFFFFFF
#define OBJECTS_MAX      32

struct opencl {
    int32_t (*clGetPlatformIDs)(uint32_t room, void **platforms, uint32_t *n);
    int32_t (*clGetPlatformInfo)(void *platform, uint32_t what, size_t room, void *value, size_t *size);
    int32_t (*clGetDeviceIDs)(void *platform, uint64_t type, uint32_t room, void **devices, uint32_t *n);
    int32_t (*clGetDeviceInfo)(void *device, uint32_t what, size_t room, void *value, size_t *size);
    void *(*clGetExtensionFunctionAddressForPlatform)(void *platform, const char *name);
    void *(*clCreateContext)(const intptr_t *properties, uint32_t n, void *const *devices, void *notify, void *data,
                             int32_t *error);
    int32_t (*clReleaseContext)(void *context);
    void *(*clSVMAlloc)(void *context, uint64_t flags, size_t size, uint32_t alignment);
    void (*clSVMFree)(void *context, void *ptr);
};

/* Loads a layer as a loader does. True: it is memoryd's. */
static bool doctor_check_layer(struct findings *findings, const char *file)
{
    void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    info_fn *info = NULL;
    char name[128] = "";
    void *address;

    if (!library) {
        findings_report(findings, file, false, "%s", dlerror());
        return false;
    }
    address = dlsym(library, "clGetLayerInfo");
    memcpy(&info, &address, sizeof(info));
    if (!info || info(LAYER_NAME, sizeof(name) - 1, name, NULL)) {
        findings_report(findings, file, false, "is no layer of OpenCL, or was built without OpenCL's headers");
        return false;
    }
    findings_report(findings, file, true, "%s", name);
    return !strncmp(name, "memoryd:", strlen("memoryd:"));
}

static void doctor_check_layers(struct findings *findings)
{
    const char *value = secure_getenv("OPENCL_LAYERS");
    _cleanup_free_ char *layers = value && *value ? strdup(value) : NULL;
    bool ours = false;
    char *rest = NULL;

    if (!layers) {
        findings_report(findings, "OPENCL_LAYERS", false, "is not set: set it to the path of " LAYER_FILE);
        return;
    }
    for (char *file = strtok_r(layers, ":", &rest); file; file = strtok_r(NULL, ":", &rest))
        ours |= doctor_check_layer(findings, file);
    findings_report(findings, "OPENCL_LAYERS", ours, "%s",
                    ours ? "has memoryd's layer" : "has not memoryd's layer among its files");
}

/* The function that tells the loader's version; NULL: the loader is not ocl-icd. */
static info_fn *doctor_loader_info_of(void *library)
{
    void *address = dlsym(library, "clGetExtensionFunctionAddress");
    extension_fn *extension = NULL;
    info_fn *info = NULL;

    memcpy(&extension, &address, sizeof(extension));
    address = extension ? extension("clGetICDLoaderInfoOCLICD") : NULL;
    memcpy(&info, &address, sizeof(info));
    return info;
}

/* Older loaders, and some others, know no layers. */
static void doctor_check_loader(struct findings *findings, void *library)
{
    info_fn *info = doctor_loader_info_of(library);
    char version[64] = "", *rest;
    unsigned long major;
    bool knows;

    if (!info || info(LOADER_VERSION, sizeof(version) - 1, version, NULL)) {
        findings_report(findings, LOADER_FILE, true,
                        "is not ocl-icd; its own manual says whether it knows OPENCL_LAYERS");
        return;
    }
    major = strtoul(version, &rest, 10);
    knows = major > 2 || (major == 2 && *rest == '.' && strtoul(rest + 1, NULL, 10) >= 3);
    findings_report(findings, LOADER_FILE, knows, "ocl-icd %s%s", version,
                    knows ? "" : " does not know OPENCL_LAYERS: 2.3 does");
}

/* The line that starts the system's broker, where that is the one which is wanted, and systemd runs. If somebody has
 * removed the socket, systemd takes it for active all the same; with it the service starts again, and keeps all. */
static const char *doctor_mend_broker(const struct invocation *invocation)
{
    const char *other = invocation->socket ? invocation->socket : secure_getenv("MEMORYD_SOCKET");

    return !other && !access("/run/systemd/system", F_OK)
               ? "systemctl enable memoryd.socket && systemctl restart memoryd.socket"
               : NULL;
}

/* Connects as a program does, but starts no broker. NULL: there is none. */
static struct memclient_context *doctor_check_broker(struct findings *findings, const struct invocation *invocation)
{
    struct memclient_context_info info = MEMCLIENT_CONTEXT_INFO_INIT;
    struct memclient_context_options options = MEMCLIENT_CONTEXT_OPTIONS_INIT;
    struct memclient_context *ctx;
    int r;

    options.socket = invocation->socket;
    options.program = "memctl";
    options.autostart = MEMCLIENT_AUTOSTART_NEVER;
    r = memclient_context_open(&options, &ctx);
    if (r < 0) {
        findings->no_broker = is_without_broker(r);
        findings_report_mend(findings, "broker", false,
                             (struct remedy){.mend = findings->no_broker ? doctor_mend_broker(invocation) : NULL}, "%s",
                             memclient_error());
        return NULL;
    }
    r = memclient_context_query(ctx, &info);
    findings_report(findings, "broker", !r, "%s%s", r < 0 ? memclient_error() : "answers at ",
                    r < 0 ? "" : info.socket);
    return ctx;
}

/* ---- drivers ----------------------------------------------------------------------------------------------------- */

static bool doctor_find_functions(void *library, struct opencl *cl)
{
    static const char *const names[] = {"clGetPlatformIDs",
                                        "clGetPlatformInfo",
                                        "clGetDeviceIDs",
                                        "clGetDeviceInfo",
                                        "clGetExtensionFunctionAddressForPlatform",
                                        "clCreateContext",
                                        "clReleaseContext",
                                        "clSVMAlloc",
                                        "clSVMFree"};

    _Static_assert(sizeof(*cl) == sizeof(names), "a name for each function");
    return library_find(library, names, sizeof(names) / sizeof(names[0]), cl);
}

/* Is the memory the broker's? Only then the layer gives a token for it. */
static bool doctor_is_of_broker(const struct opencl *cl, void *platform, void *context, const void *ptr)
{
    cl_svm_handle_memoryd handle = {.type = CL_SVM_HANDLE_TOKEN_MEMORYD};
    void *address = cl->clGetExtensionFunctionAddressForPlatform(platform, "clExportSVMMEMORYD");
    clExportSVMMEMORYD_fn export_svm;

    memcpy(&export_svm, &address, sizeof(export_svm));
    return export_svm && !export_svm(context, ptr, &handle);
}

/* Allocates a little shared virtual memory. NULL: it comes from the broker; else what is wrong. */
static const char *doctor_try_device(const struct opencl *cl, void *platform, void *device)
{
    const char *wrong = NULL;
    uint64_t capabilities = 0;
    int32_t error = 0;
    void *context, *ptr;

    if (cl->clGetDeviceInfo(device, DEVICE_SVM, sizeof(capabilities), &capabilities, NULL) || !capabilities)
        return "has no shared virtual memory";
    context = cl->clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    if (!context || error)
        return "makes no context";
    ptr = cl->clSVMAlloc(context, 0, 4096, 0);
    if (!ptr)
        wrong = "gives no shared virtual memory: MEMORYD_OPENCL_EXPLAIN=1 says why, if the layer is there";
    else if (!cl->clGetExtensionFunctionAddressForPlatform(platform, "clExportSVMMEMORYD"))
        wrong = "allocates shared virtual memory itself: no layer of memoryd's is between it and programs";
    else if (!doctor_is_of_broker(cl, platform, context, ptr))
        wrong = "allocates shared virtual memory itself: no broker answers the layer, or the driver takes no memory "
                "but its own, see memclient-opencl(3)";
    if (ptr)
        cl->clSVMFree(context, ptr);
    (void)cl->clReleaseContext(context);
    return wrong;
}

static void doctor_check_device(struct findings *findings, const struct opencl *cl, void *platform, void *device)
{
    char name[128] = "", version[128] = "", check[160];
    const char *wrong;

    (void)cl->clGetDeviceInfo(device, DEVICE_NAME, sizeof(name) - 1, name, NULL);
    (void)cl->clGetPlatformInfo(platform, PLATFORM_VERSION, sizeof(version) - 1, version, NULL);
    wrong = doctor_try_device(cl, platform, device);
    (void)snprintf(check, sizeof(check), "device %s", *name ? name : "without a name");
    findings_report(findings, check, !wrong, "%s: %s", version,
                    wrong ? wrong : "clSVMAlloc() gives memory of the broker");
}

static void doctor_check_platform(struct findings *findings, const struct opencl *cl, void *platform)
{
    char name[128] = "", check[160];
    void *devices[OBJECTS_MAX];
    uint32_t n = 0;

    if (cl->clGetDeviceIDs(platform, DEVICES_ALL, OBJECTS_MAX, devices, &n) || !n) {
        (void)cl->clGetPlatformInfo(platform, PLATFORM_NAME, sizeof(name) - 1, name, NULL);
        (void)snprintf(check, sizeof(check), "platform %s", name);
        findings_report(findings, check, false, "the driver has no device");
        return;
    }
    for (uint32_t i = 0; i < n && i < OBJECTS_MAX; i++)
        doctor_check_device(findings, cl, platform, devices[i]);
}

/* Tries all devices in the environment of this process, which has the layer and the broker. */
static void doctor_check_drivers(struct findings *findings, void *library)
{
    void *platforms[OBJECTS_MAX];
    struct opencl cl;
    uint32_t n = 0;

    if (!doctor_find_functions(library, &cl)) {
        findings_report(findings, "drivers", false,
                        "the loader has no shared virtual memory: it is older than OpenCL 2.0");
        return;
    }
    if (cl.clGetPlatformIDs(OBJECTS_MAX, platforms, &n) || !n) {
        findings_report(findings, "drivers", false, "the loader finds no driver of OpenCL");
        return;
    }
    for (uint32_t i = 0; i < n && i < OBJECTS_MAX; i++)
        doctor_check_platform(findings, &cl, platforms[i]);
}

static void doctor_check_opencl(struct findings *findings)
{
    void *library = dlopen(LOADER_FILE, RTLD_LAZY | RTLD_LOCAL);

    if (!library) {
        findings_report(findings, LOADER_FILE, false, "%s", dlerror());
        return;
    }
    doctor_check_loader(findings, library);
    doctor_check_drivers(findings, library);
}

/* ---- a process --------------------------------------------------------------------------------------------------- */

static void doctor_check_process(struct findings *findings, const char *pid)
{
    _cleanup_fclose_ FILE *maps = NULL;
    char path[64], line[PATH_MAX + 128];
    bool found = false;

    (void)snprintf(path, sizeof(path), "/proc/%s/maps", pid);
    maps = fopen(path, "re");
    if (!maps) {
        findings_report(findings, path, false, "%s", strerror(errno));
        return;
    }
    while (!found && fgets(line, sizeof(line), maps))
        found = strstr(line, "/" LAYER_FILE);
    line[strcspn(line, "\n")] = '\0';
    findings_report(findings, path, found, "%s",
                    found ? strchr(line, '/')
                          : "has no " LAYER_FILE ": OPENCL_LAYERS was not set when it started, or it has not called "
                            "OpenCL yet");
}

static const char *process; /* to be examined, or NULL */

static bool examines_opencl;

static int parse_doctor(struct invocation *invocation)
{
    if (next_option(invocation) != -1)
        return EXIT_USAGE;
    if (optind == invocation->argc)
        return EXIT_DONE;
    if (strcmp(invocation->argv[optind], "opencl") != 0)
        return usage_error(invocation, "`%s' is nothing to examine: there is `opencl', and the machine without that",
                           invocation->argv[optind]);
    examines_opencl = true;
    if (optind + 2 < invocation->argc)
        return usage_error(invocation, "`%s' is one argument too many", invocation->argv[optind + 2]);
    process = invocation->argv[optind + 1];
    if (process && (!*process || process[strspn(process, "0123456789")]))
        return usage_error(invocation, "`%s' is not a process id", process);
    return EXIT_DONE;
}

static int run_doctor(struct invocation *invocation, struct memclient_context *none)
{
    struct findings findings;
    struct memclient_context *ctx;

    findings_init(&findings, invocation->json);
    if (process) {
        doctor_check_process(&findings, process);
        return findings_end(&findings);
    }
    /* the layer asks the same broker, and nothing here starts one */
    (void)setenv("MEMORYD_AUTOSTART", "0", 1);
    if (invocation->socket)
        (void)setenv("MEMORYD_SOCKET", invocation->socket, 1);
    ctx = doctor_check_broker(&findings, invocation);
    if (examines_opencl) {
        doctor_check_layers(&findings);
        doctor_check_opencl(&findings);
    } else {
        machine_check(&findings, ctx);
    }
    memclient_context_close(ctx);
    return findings_end(&findings);
}

const struct command doctor_commands[] = {
    {.name = "doctor",
     .synopsis = "[opencl [PID]]",
     .summary = "Say whether this machine is set up for memoryd, or whether OpenCL programs use it",
     .help =
         "Asks the broker, and looks whether the machine gives it what it can make use of: descriptors, memory,\n"
         "nodes, huge pages, ways to devices, and what newer kernels have. RATIO is how many times as long something\n"
         "takes otherwise, measured now, or how many times as many there would be; memctl(1) says of what. The lines\n"
         "below the table, entered by root, change what is not as it should be.\n"
         "\n"
         "With `opencl' it looks at OPENCL_LAYERS as programs started here would have it, loads what that names as\n"
         "OpenCL's loader would, and asks each device of each driver for a little shared virtual memory, to see\n"
         "whether that comes from the broker. With PID it looks whether that process has the layer.\n"
         "\n"
         "Exit status 1 if anything is in the way, 3 if no broker answers.\n",
     .without_broker = true,
     .parse = parse_doctor,
     .run = run_doctor},
    {.name = NULL},
};
