/* The frame of the conformance suite: see frame.h. */
#define _GNU_SOURCE
#include "frame.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds after which a row has hung. */
#define ROW_SECONDS 60

typedef struct {
    level_t level;
    const char *name, *function, *what;
    void (*run)(void);
} row_t;

static row_t *rows;
static size_t row_count;
static const char *running;
static char urls[2][512];

static const char *const LEVELS[] = {"early", "functional", "full"};

void row_add(level_t level, const char *name, const char *function, const char *what,
             void (*run)(void))
{
    rows = realloc(rows, (row_count + 1) * sizeof *rows);
    if (rows == NULL)
        abort();
    rows[row_count++] = (row_t){level, name, function, what, run};
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
    _exit(1);
}

const char *code_name(VIP_RETURN code)
{
    static const char *const NAMES[] = {
        "VIP_SUCCESS", "VIP_NOT_DONE", "VIP_INVALID_PARAMETER", "VIP_ERROR_RESOURCE",
        "VIP_TIMEOUT", "VIP_REJECT", "VIP_INVALID_RELIABILITY_LEVEL", "VIP_INVALID_MTU",
        "VIP_INVALID_QOS", "VIP_INVALID_PTAG", "VIP_INVALID_RDMAREAD", "VIP_DESCRIPTOR_ERROR",
        "VIP_INVALID_STATE", "VIP_ERROR_NAMESERVICE", "VIP_NO_MATCH", "VIP_NOT_REACHABLE",
        "VIP_ERROR_NOT_SUPPORTED",
    };
    return (unsigned)code < sizeof NAMES / sizeof *NAMES ? NAMES[code] : "(no code of VIPL)";
}

const char *device_url(int node) { return urls[node]; }

/* The URLs of both nodes from that of one. */
static void derive(const char *url, const char *peer)
{
    const char *place = strstr(url, "nic0.sock");
    if (peer != NULL) {
        snprintf(urls[0], sizeof urls[0], "%s", url);
        snprintf(urls[1], sizeof urls[1], "%s", peer);
    } else if (strncmp(url, "sim:", 4) == 0) {
        const char *join = strchr(url, '?') ? "&" : "?";
        for (int node = 0; node < 2; node++)
            snprintf(urls[node], sizeof urls[node], "%s%snode=%d", url, join, node);
    } else if (place != NULL) {
        int front = (int)(place - url);
        snprintf(urls[0], sizeof urls[0], "%s", url);
        snprintf(urls[1], sizeof urls[1], "%.*snic1.sock%s", front, url, place + 9);
    } else {
        fprintf(stderr, "give --peer URL too: the other node of %s is not known\n", url);
        exit(2);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const row_t *)a)->name, ((const row_t *)b)->name);
}

static void run_here(const row_t *row)
{
    running = row->name;
    row->run();
    printf("ok %s\n", row->name);
    fflush(stdout);
}

/* Runs a row in a process of its own. */
static int run_apart(const row_t *row)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(ROW_SECONDS);
        run_here(row);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        printf("FAIL %s: no process for it\n", row->name);
        return 0;
    }
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        if (number == SIGALRM)
            printf("FAIL %s: hung for %d s\n", row->name, ROW_SECONDS);
        else
            printf("FAIL %s: died of signal %d (%s)\n", row->name, number, strsignal(number));
    }
    fflush(stdout);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void usage(void)
{
    fprintf(stderr, "usage: conformance [--device URL [--peer URL]] [--level early|functional|full]"
                    " [--list] [--here] [FILTER]\n"
                    "  --list  print the rows as lines: name, level, function, what\n"
                    "  --here  run the rows in this process, for a debugger\n");
    exit(2);
}

int main(int count, char **words)
{
    const char *url = "sim:model", *peer = NULL, *filter = "";
    int level = FULL, list = 0, here = 0;
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
    qsort(rows, row_count, sizeof *rows, by_name);
    for (size_t i = 0; i < row_count; i++) {
        const row_t *row = &rows[i];
        if ((int)row->level > level || strstr(row->name, filter) == NULL)
            continue;
        run++;
        if (list)
            printf("%s\t%s\t%s\t%s\n", row->name, LEVELS[row->level], row->function, row->what);
        else if (here)
            run_here(row);
        else
            failed += !run_apart(row);
    }
    if (!list)
        printf("%zu rows, %zu failed\n", run, failed);
    return failed != 0;
}
