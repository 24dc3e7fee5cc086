/* sockets.h - IPv4 connections between the ranks of a communicator, with blocking sockets.
 *
 * For one source file. One thread may send on a connection while another receives and a third shuts it.
 */
#ifndef TCP_SOCKETS_H
#define TCP_SOCKETS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "dtrun/abi.h"

/* Where a rank listens and its secret, as it publishes them. Who connects sends this back with its own rank.
 */
struct place {
  struct sockaddr_in address;
  uint64_t secret;
  uint64_t rank;
};

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The moment at which a time limit is over; -1: never. */
static int64_t deadline_after(int64_t timeout_ns) {
  const int64_t now = now_ns();
  return timeout_ns < 0 || timeout_ns > INT64_MAX - now ? -1 : now + timeout_ns;
}

static int64_t time_left(int64_t deadline) {
  const int64_t left = deadline - now_ns();
  return deadline < 0 ? -1 : left < 0 ? 0 : left;
}

/* Fills `err` with `what` and the system's own text for `number`. */
static dtrun_status fail_system(dtrun_error* err, dtrun_status code, int32_t peer, const char* what,
                                int number) {
  char text[256];
  snprintf(text, sizeof text, "%s: %s", what, strerror(number));
  dtrun_error_set(err, code, peer, text);
  dtrun_error_set_vendor(err, "errno", number);
  return code;
}

/* 0 when the connection has ended, or its time limit was reached. */
static int send_all(int fd, const void* data, uint64_t bytes) {
  const char* next = data;
  while (bytes > 0) {
    const ssize_t sent = send(fd, next, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return 0;
    next += sent;
    bytes -= (uint64_t)sent;
  }
  return 1;
}

static int recv_all(int fd, void* data, uint64_t bytes) {
  char* next = data;
  while (bytes > 0) {
    const ssize_t got = recv(fd, next, bytes, 0);
    if (got <= 0) return 0;
    next += got;
    bytes -= (uint64_t)got;
  }
  return 1;
}

/* How long one call on the socket may take; -1: for ever. */
static void limit_calls(int fd, int64_t ns) {
  const int64_t us = ns < 0 ? 0 : ns < 1000000 ? 1000 : ns / 1000;
  const struct timeval value = {us / 1000000, us % 1000000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof value);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
}

static int new_socket(void) {
  const int on = 1; /* also for what it accepts */
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

/* Listens on a free port of `address` and fills `own` with the place. */
static dtrun_status listen_on(const char* address, int32_t size, struct place* own, int* out_fd,
                              dtrun_error* err) {
  socklen_t bytes = sizeof own->address;
  int fd;
  own->address.sin_family = AF_INET;
  if (inet_pton(AF_INET, address, &own->address.sin_addr) != 1) {
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1,
                           "dtrun has no IPv4 address for this host; set network.interface");
  }
  fd = new_socket();
  if (bind(fd, (struct sockaddr*)&own->address, bytes) != 0 || listen(fd, size) != 0 ||
      getsockname(fd, (struct sockaddr*)&own->address, &bytes) != 0 ||
      getrandom(&own->secret, sizeof own->secret, 0) != sizeof own->secret) {
    const int number = errno;
    if (fd >= 0) close(fd);
    return fail_system(err, DTRUN_SYSTEM, -1, "cannot listen for the other ranks", number);
  }
  *out_fd = fd;
  return DTRUN_OK;
}

/* A connection with `peer`, which listens at `place`. */
static dtrun_status connect_to(struct place place, int32_t peer, uint64_t own_rank, int64_t deadline,
                               int* out_fd, dtrun_error* err) {
  const int fd = new_socket();
  limit_calls(fd, time_left(deadline));
  place.rank = own_rank;
  if (connect(fd, (struct sockaddr*)&place.address, sizeof place.address) != 0 ||
      !send_all(fd, &place, sizeof place)) {
    const int number = errno;
    char what[64];
    snprintf(what, sizeof what, "cannot connect to rank %d", (int)peer);
    if (fd >= 0) close(fd);
    return fail_system(err, DTRUN_REMOTE_FAILURE, peer, what, number);
  }
  *out_fd = fd;
  return DTRUN_OK;
}

/* Fills fds, by rank, until each rank above this one has connected. */
static dtrun_status accept_all(int listener, const struct place* own, int32_t size, int64_t deadline,
                               int* fds, dtrun_error* err) {
  int32_t missing = size - 1 - (int32_t)own->rank;
  while (missing > 0) {
    struct place place;
    int fd;
    limit_calls(listener, time_left(deadline));
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
      const int number = errno;
      int32_t absent = (int32_t)own->rank + 1;
      char what[64];
      while (fds[absent] >= 0) ++absent;
      snprintf(what, sizeof what, "rank %d has not connected", (int)absent);
      return fail_system(err, DTRUN_TIMEOUT, absent, what, number);
    }
    limit_calls(fd, 2000000000);
    if (!recv_all(fd, &place, sizeof place) || place.secret != own->secret || place.rank <= own->rank ||
        place.rank >= (uint64_t)size || fds[place.rank] >= 0) {
      close(fd); /* a stranger: it does not know the secret */
      continue;
    }
    fds[place.rank] = fd;
    --missing;
  }
  return DTRUN_OK;
}

#endif
