/* joining.h - how ranks find the world that they share, and what becomes of one that did not come about. */
#ifndef DTRUN_BROKEN_JOINING_H
#define DTRUN_BROKEN_JOINING_H

#include "world.h"

/* Rank 0 makes the world and tells the others of its process where it is. */
static dtrun_status find_world(dtrun_instance* self, const dtrun_comm_params* params, struct world** out,
                               dtrun_error* err) {
  static const dtrun_string key = {"world", 5};
  const dtrun_kv_service* const kv = self->host->get_service(self->host, DTRUN_KV_SERVICE);
  const dtrun_memory_service* const memory = self->host->get_service(self->host, DTRUN_MEMORY_SERVICE);
  struct {
    struct world* world;
    pid_t process;
  } place = {NULL, getpid()};
  void* value = NULL;
  uint64_t bytes = 0;
  if (params->size > MOST_RANKS) return report(err, DTRUN_UNSUPPORTED, -1, "more than 64 ranks");
  if (params->rank == 0) {
    static struct world* first;
    place.world = *out = FAULT(MIXES_COMMUNICATORS) && first != NULL ? first : calloc(1, sizeof **out);
    first = *out;
    if (*out == NULL) return report(err, DTRUN_OUT_OF_MEMORY, -1, "out of memory");
    (*out)->size = params->size;
    return kv->set(self->host, params->kv, key, &place, sizeof place, err);
  }
  if (kv->get(self->host, params->kv, key, params->timeout_ns, &value, &bytes, NULL) != DTRUN_OK)
    return report(err, DTRUN_TIMEOUT, 0, "rank 0 did not come in time");
  memcpy(&place, value, sizeof place);
  memory->release(self->host, value);
  *out = place.world;
  if (place.process == getpid()) return DTRUN_OK;
  return report(err, DTRUN_FAILED_PRECONDITION, -1, "the ranks must be threads of one process");
}

static dtrun_status join(dtrun_backend_comm* comm, int64_t deadline, dtrun_error* err) {
  struct world* const world = comm->world;
  dtrun_status status = DTRUN_OK;
  pthread_mutex_lock(&lock);
  world->members[comm->rank] = comm;
  ++world->joined;
  pthread_cond_broadcast(&changed);
  while (world->joined < world->size && now() < deadline) sleep_until(deadline);
  if (world->joined < world->size) {
    char text[TEXT_BYTES];
    int32_t missing = 0;
    while (world->members[missing] != NULL) ++missing;
    snprintf(text, sizeof text, "rank %d did not come in time", missing);
    status = report(err, DTRUN_TIMEOUT, FAULT(MISSES_NOBODY) ? -1 : missing, text);
    if (FAULT(LEAKS_OF_ABSENT)) open_one();
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* Of a world to which no other rank has come; else others may still look at it. */
static void forget(dtrun_instance* self, const dtrun_comm_params* params, dtrun_backend_comm* comm) {
  const dtrun_kv_service* const kv = self->host->get_service(self->host, DTRUN_KV_SERVICE);
  int32_t existed;
  if (FAULT(LEAKS_FAILED_CREATION) || FAULT(MIXES_COMMUNICATORS) || params->rank != 0 ||
      comm->world == NULL || comm->world->joined > 1)
    return;
  kv->erase(self->host, params->kv, (dtrun_string){"world", 5}, &existed, NULL);
  free(comm->world);
  free(comm);
}

#endif
