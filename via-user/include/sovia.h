/*
 * Sockets over VIA, for programs that ask for them: "SOVIA: a user-level Sockets layer over Virtual
 * Interface Architecture", section 4.1.
 *
 *     int fd = socket(AF_INET, SOCK_VIA, 0);
 *
 * All other calls are those of TCP. Programs are linked with -lsovia, or started by `viaduct run`; without
 * either the kernel does not know the type, and socket() fails with EINVAL.
 */
#ifndef SOVIA_H
#define SOVIA_H

#include <sys/socket.h>

/*
 * A type of sockets: as SOCK_STREAM, of AF_INET or AF_INET6, and its connections move to VIA with their
 * first call instead of the fourth, if the other end can do the same; otherwise they stay TCP. Sockets that
 * are accepted have the type of the one that listens. SOCK_NONBLOCK and SOCK_CLOEXEC may be added;
 * SO_TYPE is SOCK_STREAM.
 */
#define SOCK_VIA 14

#endif
