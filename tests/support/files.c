/* SPDX-License-Identifier: Apache-2.0 */
/* See files.h. */
#include "tests/support/files.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

char files_root[PATH_MAX];

int files_set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(files_root, sizeof(files_root), "%s/files.XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(files_root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int files_clean_up(void **state)
{
    return nftw(files_root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void files_put(const char *path, const char *text)
{
    char full[2 * PATH_MAX];
    FILE *file;

    (void)snprintf(full, sizeof(full), "%s/%s", files_root, path);
    if (!text) {
        assert_ok(unlink(full));
        return;
    }
    for (char *slash = strchr(full + strlen(files_root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    file = fopen(full, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}
