/* The frame of the conformance suite: see frame.h. */
#define _GNU_SOURCE
#include "frame.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    level_t level;
    const char *name, *function, *what;
    void (*run)(void);
    int rtl;
} row_t;

static row_t *rows;
static size_t row_count;
static const char *running;
static unsigned row_seconds = 60;
static int processes = 1;
static char urls[2][512];

/* Exit code of the process of a row that ran to its end: one that a row's own exit() seldom has. */
#define PASSED 117
/* The same of one that `fail` ended. */
#define FAILED 118

static const char *const LEVELS[] = {"early", "functional", "full"};

void row_add(level_t level, const char *name, const char *function, const char *what,
             void (*run)(void))
{
    rows = realloc(rows, (row_count + 1) * sizeof *rows);
    if (rows == NULL)
        abort();
    rows[row_count++] = (row_t){level, name, function, what, run, 0};
}

void fail(const char *file, int line, const char *format, ...)
{
    const char *base = strrchr(file, '/');
    va_list list;
    char text[512];
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printf("FAIL %s: %s:%d: %s\n", running, base ? base + 1 : file, line, text);
    fflush(stdout);
    _exit(FAILED);
}

const char *device_url(int node) { return urls[node]; }

/* The URLs of both nodes from that of one. */
static void derive(const char *url, const char *peer)
{
    const char *place = strstr(url, "nic0.sock");
    if (peer != NULL) {
        snprintf(urls[0], sizeof urls[0], "%s", url);
        snprintf(urls[1], sizeof urls[1], "%s", peer);
    } else if (strncmp(url, "sim:", 4) == 0 || strncmp(url, "shm:", 4) == 0) {
        const char *join = strchr(url, '?') ? "&" : "?";
        for (int node = 0; node < 2; node++)
            snprintf(urls[node], sizeof urls[node], "%s%snode=%d", url, join, node);
    } else if (strcmp(url, "udp:") == 0) {
        /* node0 and node1, at a port that no other suite takes. */
        for (int node = 0; node < 2; node++)
            snprintf(urls[node], sizeof urls[node], "udp:127.0.0.%d:%d", node + 1,
                     10000 + getpid() % 20000);
    } else if (place != NULL) {
        int front = (int)(place - url);
        snprintf(urls[0], sizeof urls[0], "%s", url);
        snprintf(urls[1], sizeof urls[1], "%.*snic1.sock%s", front, url, place + 9);
    } else {
        fprintf(stderr, "give --peer URL too: the other node of %s is not known\n", url);
        exit(2);
    }
}

/* Marks the rows of rtl.c. */
static void mark_rtl(void)
{
    for (const char *const *name = rtl_rows; *name != NULL; name++) {
        size_t i = 0;
        while (i < row_count && strcmp(rows[i].name, *name) != 0)
            i++;
        if (i == row_count || rows[i].rtl) {
            fprintf(stderr, "rtl.c: `%s` is no row, or is there twice\n", *name);
            exit(2);
        }
        rows[i].rtl = 1;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const row_t *)a)->name, ((const row_t *)b)->name);
}

static void run_here(const row_t *row)
{
    int apart = 0;
    running = row->name;
    if (processes == 2)
        carry_start();
    row->run();
    if (processes == 2)
        apart = carry_finish();
    printf("ok %s%s\n", row->name, apart ? " in two processes" : "");
    fflush(stdout);
}

/* Waits until nobody has the writing end of a pipe: until all processes of a row are gone, and the
 * NICs are free. */
static void await_end(int pipe_end)
{
    struct pollfd end = {.fd = pipe_end, .events = POLLIN};
    (void)!poll(&end, 1, LONG);
    close(pipe_end);
}

/* Runs a row in a process of its own. */
static int run_apart(const row_t *row)
{
    int status, ends[2];
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0) {
        alarm(row_seconds);
        run_here(row);
        _exit(PASSED);
    }
    close(ends[1]);
    if (child < 0 || waitpid(child, &status, 0) != child) {
        printf("FAIL %s: no process for it\n", row->name);
        return 0;
    }
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        if (number == SIGALRM)
            printf("FAIL %s: hung for %u s\n", row->name, row_seconds);
        else
            printf("FAIL %s: died of signal %d (%s)\n", row->name, number, strsignal(number));
    }
    await_end(ends[0]);
    /* `fail` has reported the row itself. */
    if (WIFEXITED(status) && WEXITSTATUS(status) != PASSED && WEXITSTATUS(status) != FAILED)
        printf("FAIL %s: its process ended by exit(%d) before the row did\n", row->name,
               WEXITSTATUS(status));
    fflush(stdout);
    return WIFEXITED(status) && WEXITSTATUS(status) == PASSED;
}

static void usage(void)
{
    fprintf(stderr, "usage: conformance [--device URL [--peer URL]] [--level early|functional|full]"
                    " [--subset rtl]\n       [--processes 1|2] [--seconds N] [--list] [--here]"
                    " [FILTER]\n"
                    "  --processes 2  node 1 is another process's; its device is served to both\n"
                    "  --subset rtl   only the rows that are marked so (rtl.c)\n"
                    "  --seconds      after which a row has hung, 60\n"
                    "  --list         print rows as lines: name, level, function, subset, what\n"
                    "  --here         run the rows in this process, for a debugger\n");
    exit(2);
}

int main(int count, char **words)
{
    const char *url = "sim:model", *peer = NULL, *filter = "";
    int level = FULL, list = 0, here = 0, subset = 0;
    size_t failed = 0, run = 0;
    for (int i = 1; i < count; i++) {
        const char *word = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
        if (strcmp(word, "--list") == 0) {
            list = 1;
        } else if (strcmp(word, "--here") == 0) {
            here = 1;
        } else if (strncmp(word, "--", 2) != 0) {
            filter = word;
        } else if (value == NULL) {
            usage();
        } else if (i++, strcmp(word, "--device") == 0) {
            url = value;
        } else if (strcmp(word, "--peer") == 0) {
            peer = value;
        } else if (strcmp(word, "--subset") == 0 && strcmp(value, "rtl") == 0) {
            subset = 1;
        } else if (strcmp(word, "--processes") == 0 && (atoi(value) == 1 || atoi(value) == 2)) {
            processes = atoi(value);
        } else if (strcmp(word, "--seconds") == 0 && atoi(value) > 0) {
            row_seconds = (unsigned)atoi(value);
        } else if (strcmp(word, "--level") == 0) {
            for (level = EARLY; level <= FULL && strcmp(LEVELS[level], value) != 0; level++)
                ;
            if (level > FULL)
                usage();
        } else {
            usage();
        }
    }
    derive(url, peer);
    if (processes == 2 && !list && (strncmp(urls[0], "sim:", 4) == 0 || here))
        usage();
    mark_rtl();
    qsort(rows, row_count, sizeof *rows, by_name);
    for (size_t i = 0; i < row_count; i++) {
        const row_t *row = &rows[i];
        if ((int)row->level > level || strstr(row->name, filter) == NULL || (subset && !row->rtl))
            continue;
        run++;
        if (list)
            printf("%s\t%s\t%s\t%s\t%s\n", row->name, LEVELS[row->level], row->function,
                   row->rtl ? "rtl" : "", row->what);
        else if (here)
            run_here(row);
        else
            failed += !run_apart(row);
    }
    if (!list)
        printf("%zu rows, %zu failed\n", run, failed);
    return failed != 0;
}
