/*
 * Connections by functions that have other names, or none: `__read`, `preadv2`, `syscall`; and programs
 * that take the place of others by `execl` and its like.
 *
 *   names serve PORT   accepts once for each way to go on
 *   names ask PORT     sends, and compares what comes back
 *   names rest         sends back what comes by standard input
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 60
#define BYTES 3000

/* Exported, and declared nowhere. */
extern ssize_t __read(int, void *, size_t), __write(int, const void *, size_t);
extern ssize_t __send(int, const void *, size_t, int);

static const char *const ways[] = {"execl", "execle", "execlp", "fork", "end"};
#define WAYS (sizeof ways / sizeof *ways)

static long must(long result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

static long take(int fd, unsigned char *to, size_t length, unsigned turn)
{
    struct iovec list[2] = {{to, length / 2}, {to + length / 2, length - length / 2}};
    struct msghdr message = {.msg_iov = list, .msg_iovlen = 2};
    switch (turn % 7) {
    case 0: return read(fd, to, length);
    case 1: return __read(fd, to, length);
    case 2: return preadv2(fd, list, 2, -1, 0);
    case 3: return syscall(SYS_read, fd, to, length);
    case 4: return syscall(SYS_recvfrom, fd, to, length, 0, NULL, NULL);
    case 5: return syscall(SYS_readv, fd, list, 2);
    default: return syscall(SYS_recvmsg, fd, &message, 0);
    }
}

static long give(int fd, unsigned char *from, size_t length, unsigned turn)
{
    struct iovec list[2] = {{from, length / 2}, {from + length / 2, length - length / 2}};
    struct msghdr message = {.msg_iov = list, .msg_iovlen = 2};
    switch (turn % 7) {
    case 0: return __write(fd, from, length);
    case 1: return pwritev2(fd, list, 2, -1, 0);
    case 2: return syscall(SYS_write, fd, from, length);
    case 3: return syscall(SYS_sendto, fd, from, length, MSG_NOSIGNAL, NULL, 0);
    case 4: return syscall(SYS_writev, fd, list, 2);
    case 5: return __send(fd, from, length, MSG_NOSIGNAL);
    default: return syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL);
    }
}

static size_t take_all(int fd, unsigned char *to, size_t length, unsigned turn)
{
    size_t done = 0;
    long count;
    while (done < length && (count = must(take(fd, to + done, length - done, turn++), "take")) > 0)
        done += (size_t)count;
    return done;
}

static void give_all(int fd, unsigned char *from, size_t length, unsigned turn)
{
    for (size_t done = 0; done < length;)
        done += (size_t)must(give(fd, from + done, length - done, turn++), "give");
}

/* Sends back what comes: so many times, or until the end. */
static void answer(int fd, int out, unsigned turns)
{
    unsigned char data[BYTES];
    for (unsigned turn = 0; turn < turns && take_all(fd, data, BYTES, turn) == BYTES; turn++)
        give_all(out, data, BYTES, turn);
}

static void go_on(int fd, const char *way, char **environment)
{
    char own[4096];
    own[must(readlink("/proc/self/exe", own, sizeof own - 1), "readlink")] = 0;
    must(dup2(fd, 0), "dup2");
    must(dup2(fd, 1), "dup2");
    close(fd);
    if (strcmp(way, "execl") == 0) {
        execl("/nowhere/names", "names", (char *)NULL);
        execl(own, "names", "rest", "3", "4", "5", "6", "7", "8", (char *)NULL);
    } else if (strcmp(way, "execle") == 0) {
        execle(own, "names", "rest", (char *)NULL, environment);
    } else if (strcmp(way, "execlp") == 0) {
        execlp("sh", "sh", "-c", "exec \"$0\" rest", own, (char *)NULL);
    } else if (strcmp(way, "fork") == 0) {
        long child = must(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0), "clone");
        if (child == 0) {
            answer(0, 1, -1u);
            syscall(SYS_exit_group, 0);
        }
        waitpid((pid_t)child, NULL, 0);
        exit(0);
    } else {
        syscall(SYS_shutdown, 1, SHUT_WR);
        syscall(SYS_exit_group, 0);
    }
    perror(way);
    exit(1);
}

static void serve(const struct sockaddr_in *place, char **environment)
{
    int on = 1;
    int listener = (int)must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
    must(bind(listener, (const struct sockaddr *)place, sizeof *place), "bind");
    must(listen(listener, 5), "listen");
    for (unsigned way = 0; way < WAYS; way++) {
        int fd = (int)must(accept(listener, NULL, NULL), "accept");
        if (must(fork(), "fork") == 0) {
            answer(fd, fd, TURNS);
            go_on(fd, ways[way], environment);
        }
        close(fd);
    }
    for (unsigned way = 0; way < WAYS; way++)
        wait(NULL);
}

static unsigned turn_of(int fd, unsigned seed)
{
    unsigned char sent[BYTES], got[BYTES];
    for (unsigned at = 0; at < BYTES; at++)
        sent[at] = (unsigned char)(at * 7 + at / 250 + seed);
    give_all(fd, sent, BYTES, seed);
    return take_all(fd, got, BYTES, seed) == BYTES && memcmp(sent, got, BYTES) == 0;
}

static void ask(const struct sockaddr_in *place)
{
    for (unsigned way = 0; way < WAYS; way++) {
        int fd = (int)must(socket(AF_INET, SOCK_STREAM, 0), "socket");
        unsigned before = 0, behind = 0;
        must(connect(fd, (const struct sockaddr *)place, sizeof *place), "connect");
        /* Slowly: the connection has time to move. */
        for (unsigned turn = 0; turn < TURNS; turn++, usleep(2000))
            before += turn_of(fd, turn);
        for (unsigned turn = 0; strcmp(ways[way], "end") != 0 && turn < TURNS; turn++)
            behind += turn_of(fd, turn);
        must(syscall(SYS_shutdown, fd, SHUT_WR), "shutdown");
        char end;
        printf("%s: %u, %u, end %zd\n", ways[way], before, behind, read(fd, &end, 1));
        must(syscall(SYS_close, fd), "close");
    }
}

int main(int argc, char **argv, char **environment)
{
    struct sockaddr_in place = {.sin_family = AF_INET};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "rest") == 0) {
        answer(0, 1, -1u);
        return argc == 2 || (argc == 8 && strcmp(argv[7], "8") == 0) ? 0 : 1;
    }
    if (argc != 3)
        return 2;
    place.sin_port = htons((unsigned short)atoi(argv[2]));
    if (strcmp(argv[1], "serve") == 0)
        serve(&place, environment);
    else
        ask(&place);
    return 0;
}
