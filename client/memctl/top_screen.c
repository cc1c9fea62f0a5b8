/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal, by curses, which sends only what has changed. Bold, reverse and underlined text need no colours.
 */
#include "memctl/command.h"
#include "memctl/text.h"
#include "memctl/top.h"

#if HAVE_CURSES

#include <curses.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { ESCAPE = 27 };

struct screen {
    struct top *top;
    const struct invocation *invocation;
    struct memclient_context *ctx;
    struct top_page page;
    bool asking; /* for a filter: what was typed so far is in `typed` */
    bool stale;  /* another snapshot is wanted at once */
    char typed[96];
    char wrong[128]; /* what is wrong with the one that was given */
};

static attr_t screen_attribute(enum top_style style)
{
    switch (style) {
    case TOP_PLAIN:
        break;
    case TOP_TITLE:
        return A_BOLD;
    case TOP_HEADING:
        return A_UNDERLINE;
    case TOP_SELECTED:
    case TOP_TROUBLE:
        return A_REVERSE;
    case TOP_KEYS:
        return A_BOLD;
    }
    return A_NORMAL;
}

static void screen_show(struct screen *screen)
{
    struct top_page *page = &screen->page;
    int rows, columns;

    getmaxyx(stdscr, rows, columns);
    page->width = (unsigned)columns;
    page->height = rows < TOP_LINES_MAX ? (unsigned)rows : TOP_LINES_MAX;
    top_draw(screen->top, page);
    for (unsigned i = 0; i < page->n; i++) {
        attrset(screen_attribute(page->lines[i].style));
        (void)mvaddstr((int)i, 0, page->lines[i].text);
        clrtoeol();
    }
    attrset(A_NORMAL);
    if (screen->asking || *screen->wrong) {
        char text[sizeof(screen->typed) + sizeof(screen->wrong)];

        (void)snprintf(text, sizeof(text), "%s%s", screen->asking ? "filter: " : screen->wrong,
                       screen->asking ? screen->typed : "");
        (void)mvaddnstr(rows - 1, 0, text, columns - 1);
        clrtoeol();
    }
    (void)refresh();
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static const json_t *screen_selected(const struct screen *screen)
{
    const struct top *top = screen->top;

    return json_array_get(json_object_get(top->snapshot, top_view_words[top->view]), top->selected);
}

static void screen_begin_view(struct screen *screen, enum top_view view)
{
    struct top *top = screen->top;

    top->view = view;
    top->sort = TOP_BY_BYTES;
    top->selected = top->first = 0;
    screen->stale = true;
}

static void screen_look_into(struct screen *screen)
{
    const json_t *row = screen_selected(screen);
    struct top *top = screen->top;

    if (!row || top->detail)
        return;
    if (top->view == TOP_BUFFERS) {
        top->detail = (uint64_t)top_number(row, "id");
        top->detail_first = 0;
        (void)top_find_openers(top);
        return;
    }
    top->filter = (struct top_filter){.uid = -1};
    if (top->view == TOP_USERS)
        top->filter.uid = top_number(row, "uid");
    else
        top->filter.session = (uint64_t)top_number(row, "id");
    screen_begin_view(screen, TOP_BUFFERS);
}

static void screen_go_back(struct screen *screen)
{
    struct top *top = screen->top;
    char filter[128];

    top_format_filter(&top->filter, filter, sizeof(filter));
    if (top->detail) {
        top->detail = 0;
    } else if (*filter) {
        enum top_view from = top->filter.session ? TOP_PROCESSES : top->filter.uid >= 0 ? TOP_USERS : TOP_BUFFERS;

        top->filter = (struct top_filter){.uid = -1};
        screen_begin_view(screen, from);
    }
}

static void screen_type(struct screen *screen, int key)
{
    size_t n = strlen(screen->typed);

    if (key == ESCAPE) {
        screen->asking = false;
    } else if (key == '\n' || key == KEY_ENTER || key == '\r') {
        screen->asking = false;
        if (top_parse_filter(screen->typed, &screen->top->filter))
            screen_begin_view(screen, TOP_BUFFERS);
        else
            (void)snprintf(screen->wrong, sizeof(screen->wrong),
                           "that is no filter: uid:USER, pid:PID, session:N, pool:NAME, or nothing");
    } else if ((key == KEY_BACKSPACE || key == '\b' || key == 127) && n) {
        screen->typed[n - 1] = '\0';
    } else if (key >= ' ' && key < 127 && n + 1 < sizeof(screen->typed)) {
        screen->typed[n] = (char)key;
        screen->typed[n + 1] = '\0';
    }
}

static void screen_move(struct screen *screen, int64_t by)
{
    struct top *top = screen->top;

    if (top->detail) {
        /* drawing knows where the end is */
        top->detail_first = by < 0 && top->detail_first < -by ? 0 : (unsigned)(top->detail_first + by);
        return;
    }
    if (by < 0 && top->selected < (uint64_t)-by)
        top->selected = 0;
    else
        top->selected += (uint64_t)by;
    if (top->selected >= top->n_rows)
        top->selected = top->n_rows ? top->n_rows - 1 : 0;
}

/* False: that is all. */
static bool screen_press(struct screen *screen, int key)
{
    struct top *top = screen->top;

    if (screen->asking) {
        screen_type(screen, key);
        return true;
    }
    screen->wrong[0] = '\0';
    switch (key) {
    case 'q':
        return false;
    case '\t':
        top->detail = 0;
        screen_begin_view(screen, (enum top_view)((top->view + 1) % TOP_VIEWS));
        break;
    case 's':
        top->sort = top_next_sort(top->view, top->sort);
        top->selected = top->first = 0;
        screen->stale = true;
        break;
    case '/':
        screen->asking = true;
        screen->typed[0] = '\0';
        break;
    case 'r':
        screen->stale = true;
        break;
    case KEY_UP:
    case 'k':
        screen_move(screen, -1);
        break;
    case KEY_DOWN:
    case 'j':
        screen_move(screen, 1);
        break;
    case KEY_PPAGE:
        screen_move(screen, -10);
        break;
    case KEY_NPAGE:
        screen_move(screen, 10);
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
        screen_look_into(screen);
        break;
    case ESCAPE:
    case KEY_BACKSPACE:
        screen_go_back(screen);
        break;
    }
    return true;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static void screen_refresh(struct screen *screen)
{
    struct top *top = screen->top;

    /* as many as can be seen, so that who scrolls down to the last one has come to the rest */
    top->most = top->first + (uint64_t)(LINES > 0 ? LINES : 24);
    if (!top_refresh(top, screen->invocation, &screen->ctx))
        return;
    if (!*top->trouble)
        (void)snprintf(top->trouble, sizeof(top->trouble), "not enough memory");
    /* another broker may be there next time */
    memclient_context_close(screen->ctx);
    screen->ctx = NULL;
}

static void screen_loop(struct screen *screen)
{
    uint64_t due = 0;
    int key;

    do {
        uint64_t now = clock_now_ns() / NSEC_PER_MSEC;

        if (screen->stale || now >= due) {
            screen_refresh(screen);
            screen->stale = false;
            now = clock_now_ns() / NSEC_PER_MSEC;
            due = now + screen->top->interval_ms;
        }
        screen_show(screen);
        timeout(due > now ? (int)(due - now) : 0);
        key = getch();
    } while (key == ERR || screen_press(screen, key));
}

int top_run_screen(struct top *top, const struct invocation *invocation)
{
    static struct screen screen;
    SCREEN *terminal;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return refused(invocation, "this is no terminal; --once prints it once");
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal)
        return refused(invocation, "this terminal is of no known kind ($TERM); --once prints it once");
    screen = (struct screen){.top = top, .invocation = invocation};
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    (void)set_escdelay(50);
    screen_loop(&screen);
    (void)endwin();
    delscreen(terminal);
    memclient_context_close(screen.ctx);
    return EXIT_DONE;
}

#else

int top_run_screen(struct top *top, const struct invocation *invocation)
{
    return refused(invocation, "this memctl was built without curses; --once prints it once");
}

#endif
