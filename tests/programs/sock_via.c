/*
 * Sockets that ask for VIA (sovia.h): all of a connection of three calls goes by VIA.
 *
 *   sock_via serve PORT
 *   sock_via ask PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sovia.h"

static int must(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

/* Without the library the kernel does not know the type. */
static int make(void)
{
    int fd = socket(AF_INET, SOCK_VIA | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EINVAL)
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return must(fd, "socket");
}

int main(int argc, char **argv)
{
    struct sockaddr_in place = {.sin_family = AF_INET};
    char text[8] = "";
    int on = 1, type = 0, fd = make();
    socklen_t length = sizeof type;
    if (argc != 3)
        return 2;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    place.sin_port = htons((unsigned short)atoi(argv[2]));
    must(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length), "SO_TYPE");
    if (strcmp(argv[1], "serve") == 0) {
        must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "SO_REUSEADDR");
        must(bind(fd, (struct sockaddr *)&place, sizeof place), "bind");
        must(listen(fd, 1), "listen");
        fd = must(accept(fd, NULL, NULL), "accept");
        must((int)recv(fd, text, sizeof text, 0), "recv");
        must((int)send(fd, text, sizeof text, 0), "send");
        must((int)recv(fd, text, 1, 0), "recv");
    } else {
        must(connect(fd, (struct sockaddr *)&place, sizeof place), "connect");
        must((int)send(fd, "asked", 6, 0), "send");
        must((int)recv(fd, text, sizeof text, MSG_WAITALL), "recv");
        sleep(1);
        printf("%s, type %d\n", text, type);
    }
    close(fd);
    return 0;
}
