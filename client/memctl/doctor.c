/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command that looks why something of ours is not at work, where nobody else says so: a loader of OpenCL passes
 * over a layer that it cannot load without a word. Nothing here needs a broker.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "memctl/command.h"
#include "memctl/output.h"

#define LAYER_FILE  "libmemclient-opencl.so"
#define LOADER_FILE "libOpenCL.so.1"
/* Of OpenCL's layers: what is asked for its name; and of ocl-icd: for its version. */
#define LAYER_NAME     0x4241
#define LOADER_VERSION 2

typedef int32_t layer_info_fn(uint32_t what, size_t room, void *value, size_t *size_ret);
typedef int32_t loader_info_fn(uint32_t what, size_t room, void *value, size_t *size_ret);
typedef void *extension_fn(const char *name);

struct findings {
    struct output output;
    bool healthy;
    int r;
};

static void
find(struct findings *findings, const char *check, bool ok, const char *detail)
{
    int r = output_row(&findings->output, json_pack("{ss sb ss}", "check", check, "ok", ok, "detail", detail));

    findings->healthy &= ok;
    if (r)
        findings->r = r;
}

/* As a loader does it. */
static bool
look_at_layer(struct findings *findings, const char *file)
{
    void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    layer_info_fn *info = NULL;
    char name[128] = "";
    void *address;

    if (!library) {
        find(findings, file, false, dlerror());
        return false;
    }
    address = dlsym(library, "clGetLayerInfo");
    memcpy(&info, &address, sizeof(info));
    if (!info || info(LAYER_NAME, sizeof(name) - 1, name, NULL)) {
        find(findings, file, false, "is no layer of OpenCL, or was built without OpenCL's headers");
        return false;
    }
    find(findings, file, true, name);
    return !strncmp(name, "memoryd:", strlen("memoryd:"));
}

static void
look_at_layers(struct findings *findings)
{
    const char *value = secure_getenv("OPENCL_LAYERS");
    _cleanup_free_ char *layers = value && *value ? strdup(value) : NULL;
    bool ours = false;
    char *rest = NULL;

    if (!layers) {
        find(findings, "OPENCL_LAYERS", false, "is not set: set it to the path of " LAYER_FILE);
        return;
    }
    for (char *file = strtok_r(layers, ":", &rest); file; file = strtok_r(NULL, ":", &rest))
        ours |= look_at_layer(findings, file);
    find(findings, "OPENCL_LAYERS", ours, ours ? "has memoryd's layer" : "has not memoryd's layer among its files");
}

/* What tells the loader's version; NULL: it is not ocl-icd. */
static loader_info_fn *
loader_info_of(void *library)
{
    void *address = dlsym(library, "clGetExtensionFunctionAddress");
    extension_fn *extension = NULL;
    loader_info_fn *info = NULL;

    memcpy(&extension, &address, sizeof(extension));
    address = extension ? extension("clGetICDLoaderInfoOCLICD") : NULL;
    memcpy(&info, &address, sizeof(info));
    return info;
}

/* Loaders of older versions, and some others, know no layers. */
static void
look_at_loader(struct findings *findings)
{
    void *library = dlopen(LOADER_FILE, RTLD_LAZY | RTLD_LOCAL);
    char version[64] = "", detail[160], *rest;
    loader_info_fn *info;
    unsigned long major;
    bool knows;

    if (!library) {
        find(findings, LOADER_FILE, false, dlerror());
        return;
    }
    info = loader_info_of(library);
    if (!info || info(LOADER_VERSION, sizeof(version) - 1, version, NULL)) {
        find(findings, LOADER_FILE, true, "is not ocl-icd; its own manual says whether it knows OPENCL_LAYERS");
        return;
    }
    major = strtoul(version, &rest, 10);
    knows = major > 2 || (major == 2 && *rest == '.' && strtoul(rest + 1, NULL, 10) >= 3);
    (void)snprintf(detail, sizeof(detail), "ocl-icd %s%s", version,
                   knows ? "" : " does not know OPENCL_LAYERS: 2.3 does");
    find(findings, LOADER_FILE, knows, detail);
}

static void
look_at_process(struct findings *findings, const char *pid)
{
    char path[64], line[PATH_MAX + 128];
    bool found = false;

    (void)snprintf(path, sizeof(path), "/proc/%s/maps", pid);
    {
        _cleanup_fclose_ FILE *maps = fopen(path, "re");

        if (!maps) {
            find(findings, path, false, strerror(errno));
            return;
        }
        while (!found && fgets(line, sizeof(line), maps))
            found = strstr(line, "/" LAYER_FILE);
    }
    line[strcspn(line, "\n")] = '\0';
    find(findings, path, found,
         found ? strchr(line, '/') : "has no " LAYER_FILE ": OPENCL_LAYERS was not set when it started, or it has not "
                                     "called OpenCL yet");
}

static const struct column doctor_columns[] = {
    {"CHECK", "check", COLUMN_TEXT},
    {"OK", "ok", COLUMN_YES},
    {"DETAIL", "detail", COLUMN_TEXT},
    {NULL, NULL, COLUMN_TEXT},
};

static const char *process; /* to be looked at, or NULL */

static int
parse_doctor(struct invocation *invocation)
{
    if (next_option(invocation, NULL) != -1)
        return EXIT_USAGE;
    if (optind == invocation->argc || strcmp(invocation->argv[optind], "opencl") != 0)
        return usage_error(invocation, "it knows about `opencl' only");
    if (optind + 2 < invocation->argc)
        return usage_error(invocation, "`%s' is one argument too many", invocation->argv[optind + 2]);
    process = invocation->argv[optind + 1];
    if (process && (!*process || process[strspn(process, "0123456789")]))
        return usage_error(invocation, "`%s' is no process's number", process);
    return EXIT_DONE;
}

static int
run_doctor(struct invocation *invocation, struct memclient *ctx)
{
    struct findings findings = {.healthy = true};
    int r;

    (void)ctx;
    output_init(&findings.output, invocation->json, doctor_columns);
    if (process) {
        look_at_process(&findings, process);
    } else {
        look_at_layers(&findings);
        look_at_loader(&findings);
    }
    r = findings.r ? findings.r : output_print(&findings.output);
    output_deinit(&findings.output);
    if (r) {
        fputs("memctl: doctor: cannot write to standard output\n", stderr);
        return EXIT_REFUSED;
    }
    return findings.healthy ? EXIT_DONE : EXIT_REFUSED;
}

const struct command doctor_commands[] = {
    {.name = "doctor", .synopsis = "opencl [PID]",
     .summary = "Say whether OpenCL programs get their shared virtual memory from memoryd",
     .help = "Looks at OPENCL_LAYERS as programs started here would have it, loads what it names as OpenCL's loader\n"
             "would, and asks that for its version; or looks whether a running process has the layer. Needs no\n"
             "broker. Exit status 1 if anything is in the way.\n",
     .without_broker = true, .parse = parse_doctor, .run = run_doctor},
    {.name = NULL},
};
