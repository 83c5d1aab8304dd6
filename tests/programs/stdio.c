/*
 * Lines over a connection by the C library's own buffers.
 *
 *   stdio serve PORT     accepts once; the connection is its standard input and output
 *   stdio ask PORT [N]   sends N lines by fprintf and dprintf, and prints the answers
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int must(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

static void serve(const struct sockaddr_in *place)
{
    int on = 1;
    int listener = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
    must(bind(listener, (const struct sockaddr *)place, sizeof *place), "bind");
    must(listen(listener, 1), "listen");
    int fd = must(accept(listener, NULL, NULL), "accept");
    must(dup2(fd, STDIN_FILENO), "dup2");
    must(dup2(fd, STDOUT_FILENO), "dup2");
    close(fd);
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    unsigned lines = 0;
    while ((length = getline(&line, &room, stdin)) > 0) {
        printf("%u: %zd bytes, %s", lines++, length, length < 60 ? line : "long\n");
        if (lines % 2)
            puts("odd");
        fflush(stdout);
    }
    /* What is left in a buffer goes at the end of the program. */
    printf("%u lines, %s", lines, feof(stdin) ? "the end\n" : "an error\n");
}

static void ask(const struct sockaddr_in *place, unsigned turns)
{
    int fd = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(connect(fd, (const struct sockaddr *)place, sizeof *place), "connect");
    FILE *in = fdopen(must(dup(fd), "dup"), "r");
    FILE *out = fdopen(fd, "w");
    char line[100];
    /* Some programs look at it after calls that succeed. */
    FILE *file = fopen("/proc/self/exe", "r");
    errno = 0;
    printf("file: %zu, errno %d\n", fread(line, 1, 4, file), errno);
    fclose(file);
    errno = 0;
    for (unsigned i = 0; i < turns; i++) {
        /* A short program on slow devices gives the connection time to move. */
        if (turns < 100 && i < 20)
            usleep(100000);
        if (i % 3 == 0)
            dprintf(fd, "directly %u\n", i);
        else
            fprintf(out, "%0*u by buffer\n", i % 3 == 1 ? 5 : 70000, i);
        fflush(out);
        for (unsigned answers = 0; answers < 1 + (i + 1) % 2; answers++) {
            if (fgets(line, sizeof line, in) == NULL) {
                perror("fgets");
                exit(1);
            }
            fputs(line, stdout);
        }
    }
    printf("errno %d\n", errno);
    must(shutdown(fd, SHUT_WR), "shutdown");
    while (fgets(line, sizeof line, in) != NULL)
        fputs(line, stdout);
    printf("end: %d, error: %d\n", feof(in) != 0, ferror(in) != 0);
    /* Nobody reads any more: the buffer's bytes meet an error. */
    fprintf(out, "late\n");
    printf("late: %d, error: %d\n", fclose(out), ferror(in) != 0);
    fclose(in);
}

int main(int argc, char **argv)
{
    struct sockaddr_in place = {.sin_family = AF_INET};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    signal(SIGPIPE, SIG_IGN);
    if (argc != 3 && argc != 4)
        return 2;
    place.sin_port = htons((unsigned short)atoi(argv[2]));
    if (strcmp(argv[1], "serve") == 0)
        serve(&place);
    else
        ask(&place, argc == 4 ? (unsigned)atoi(argv[3]) : 400);
    return 0;
}
