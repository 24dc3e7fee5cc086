/* connect.h - connects all ranks of a communicator of strict.c: each with those below it. For one source
 * file. */
#ifndef STRICT_CONNECT_H
#define STRICT_CONNECT_H

#include <poll.h>
#include <sys/random.h>
#include <sys/un.h>

#include "wire.h"

static socklen_t address_of(const char* name, size_t bytes, struct sockaddr_un* out) {
  memset(out, 0, sizeof *out);
  out->sun_family = AF_UNIX;
  memcpy(out->sun_path + 1, name, bytes); /* abstract: no file */
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

static dtrun_status too_late(dtrun_error* err, int32_t rank) {
  char text[TEXT_BYTES];
  snprintf(text, sizeof text, "rank %d did not come in time; look at what it is doing", (int)rank);
  return dtrun_error_set(err, DTRUN_TIMEOUT, rank, text);
}

static dtrun_status connect_to(dtrun_backend_comm* comm, int32_t rank, int64_t deadline, dtrun_error* err) {
  const dtrun_host* const host = comm->instance->host;
  const dtrun_kv_service* const kv = host->get_service(host, DTRUN_KV_SERVICE);
  const dtrun_memory_service* const memory = host->get_service(host, DTRUN_MEMORY_SERVICE);
  struct sockaddr_un address;
  char key[32];
  void* name = NULL;
  uint64_t bytes = 0;
  const int64_t left = deadline == INT64_MAX ? -1 : deadline > now() ? deadline - now() : 0;
  const int length = snprintf(key, sizeof key, "strict/%d", (int)rank);
  const dtrun_status status =
      kv->get(host, comm->kv, (dtrun_string){key, (uint64_t)length}, left, &name, &bytes, err);
  if (status == DTRUN_TIMEOUT) return too_late(err, rank);
  if (status != DTRUN_OK) return status;
  const socklen_t size = address_of(name, bytes, &address);
  memory->release(host, name);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  comm->peers[rank].fd = fd;
  if (connect(fd, (struct sockaddr*)&address, size) == 0 &&
      send(fd, &comm->rank, sizeof comm->rank, MSG_NOSIGNAL) > 0)
    return DTRUN_OK;
  return too_late(err, rank);
}

static dtrun_status accept_from_above(dtrun_backend_comm* comm, int listener, int64_t deadline,
                                      dtrun_error* err) {
  const dtrun_host* const host = comm->instance->host;
  const dtrun_kv_service* const kv = host->get_service(host, DTRUN_KV_SERVICE);
  int32_t missing = comm->rank + 1;
  while (missing < comm->size) {
    void* value;
    uint64_t bytes;
    int32_t rank = -1;
    struct pollfd wait = {listener, POLLIN, 0};
    if (kv->try_get(host, comm->kv, (dtrun_string){"strict/none", 11}, &value, &bytes, NULL) !=
        DTRUN_NOT_FOUND)
      return dtrun_error_set(err, DTRUN_REMOTE_FAILURE, -1,
                             "another rank could not make its communicator"); /* B17 */
    if (now() >= deadline) return too_late(err, missing);
    const int64_t left = (deadline - now()) / 1000000 + 1;
    if (poll(&wait, 1, left > 100 ? 100 : (int)left) <= 0) continue;
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    const struct timeval second = {1, 0};
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    if (recv(fd, &rank, sizeof rank, MSG_WAITALL) != sizeof rank || rank <= comm->rank ||
        rank >= comm->size || comm->peers[rank].fd >= 0)
      close(fd);
    else
      comm->peers[rank].fd = fd;
    while (missing < comm->size && comm->peers[missing].fd >= 0) ++missing;
  }
  return DTRUN_OK;
}

static dtrun_status connect_all(dtrun_backend_comm* comm, int64_t deadline, dtrun_error* err) {
  const dtrun_host* const host = comm->instance->host;
  const dtrun_kv_service* const kv = host->get_service(host, DTRUN_KV_SERVICE);
  struct sockaddr_un address;
  unsigned char seed[16];
  char name[40], key[32];
  if (getrandom(seed, sizeof seed, 0) != sizeof seed)
    return dtrun_error_set(err, DTRUN_SYSTEM, -1, "no random bytes");
  int bytes = snprintf(name, sizeof name, "strict");
  for (size_t i = 0; i < sizeof seed; ++i)
    bytes += snprintf(name + bytes, sizeof name - (size_t)bytes, "%02x", seed[i]);
  const int length = snprintf(key, sizeof key, "strict/%d", (int)comm->rank);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const socklen_t size = address_of(name, (size_t)bytes, &address);
  dtrun_status status = DTRUN_OK;
  if (bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, comm->size) != 0)
    status = dtrun_error_set(err, DTRUN_SYSTEM, -1, strerror(errno));
  if (status == DTRUN_OK)
    status = kv->set(host, comm->kv, (dtrun_string){key, (uint64_t)length}, name, (uint64_t)bytes, err);
  for (int32_t rank = 0; status == DTRUN_OK && rank < comm->rank; ++rank)
    status = connect_to(comm, rank, deadline, err);
  if (status == DTRUN_OK) status = accept_from_above(comm, listener, deadline, err);
  close(listener);
  return status;
}

#endif
