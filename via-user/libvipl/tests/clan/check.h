/* What the programs of this folder share. */
#ifndef CLAN_CHECK_H
#define CLAN_CHECK_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <clan.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, clan_error_text());\
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A call gives `code`. If it fails, the text begins with the name of the function, and has `part`. */
#define GIVES(code, part, call)                                                                    \
    do {                                                                                           \
        int gives_code = (call);                                                                   \
        const char *gives_text = clan_error_text();                                                \
        size_t gives_name = strcspn(#call, "(");                                                   \
        if (gives_code != (code)                                                                   \
            || ((code) != CLAN_OK                                                                  \
                && (strncmp(gives_text, #call, gives_name) != 0 || gives_text[gives_name] != ':'   \
                    || strstr(gives_text, part) == NULL))) {                                       \
            fprintf(stderr, "%s:%d: %s gave %s: %s\n", __FILE__, __LINE__, #call,                  \
                    clan_code_name(gives_code), gives_text);                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define MUST(call) GIVES(CLAN_OK, "", call)

static inline double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

#endif
