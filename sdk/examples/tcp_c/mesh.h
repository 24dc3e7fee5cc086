/* mesh.h - makes the connections of a communicator, and ends them. For one source file. */
#ifndef TCP_MESH_H
#define TCP_MESH_H

#include "links.h"

static void free_messages(struct message* message) {
  while (message != NULL) {
    struct message* const next = message->next;
    free(message);
    message = next;
  }
}

/* Frees what open_links has made, also of a part. */
static void free_links(struct links* links) {
  int32_t rank;
  for (rank = 0; links->peers != NULL && rank < links->size; ++rank) {
    if (links->peers[rank].fd >= 0) close(links->peers[rank].fd);
    free_messages(links->peers[rank].sends);
    free_messages(links->peers[rank].messages);
  }
  links->members->close(links->host, links->membership);
  pthread_cond_destroy(&links->changed);
  pthread_mutex_destroy(&links->mutex);
  free(links->peers);
  free(links);
}

static void end_threads(struct links* links) {
  int32_t rank;
  shut(links);
  for (rank = 0; rank < links->size; ++rank) {
    if (links->peers[rank].threads > 0) pthread_join(links->peers[rank].sender, NULL);
    if (links->peers[rank].threads > 1) pthread_join(links->peers[rank].receiver, NULL);
  }
}

static int has_sends(const struct links* links) {
  int32_t rank;
  for (rank = 0; rank < links->size; ++rank)
    if (links->peers[rank].sends != NULL) return 1;
  return 0;
}

/* When every receive is done. Hands over what was sent, until it moves no more for 10 s. */
static void close_links(struct links* links) {
  uint64_t before;
  pthread_mutex_lock(&links->mutex);
  do {
    const int64_t until = deadline_after(10000000000);
    const struct timespec moment = {until / 1000000000, until % 1000000000};
    int waited = 0;
    before = links->moved;
    while (has_sends(links) && !links->shut && waited != ETIMEDOUT)
      waited = pthread_cond_timedwait(&links->changed, &links->mutex, &moment);
  } while (has_sends(links) && !links->shut && links->moved != before);
  pthread_mutex_unlock(&links->mutex);
  /* Before the connections end, so that no rank takes that for a failure. */
  links->members->leave(links->host, links->membership, NULL, 0, NULL);
  end_threads(links);
  free_links(links);
}

/* Tells all ranks where this one listens, connects to those below and waits for those above. */
static dtrun_status connect_all(struct links* links, const dtrun_comm_params* params, int* fds,
                                dtrun_error* err) {
  const dtrun_memory_service* memory = links->host->get_service(links->host, DTRUN_MEMORY_SERVICE);
  const dtrun_string topic = {"tcp", 3};
  const int64_t deadline = deadline_after(params->timeout_ns);
  const char* const known = params->address.size == 0 ? "" : params->address.data;
  const char* const address = params->host_count == 1 ? "127.0.0.1" : known;
  struct place own;
  int listener = -1;
  int32_t peer;
  dtrun_status status;
  memset(&own, 0, sizeof own);
  own.rank = (uint64_t)params->rank;
  status = listen_on(address, params->size, &own, &listener, err);
  if (status != DTRUN_OK) return status;
  /* A rank that has joined listens, so no rank connects too early. */
  status =
      links->members->join(links->host, links->membership, topic, &own, sizeof own, params->timeout_ns, err);
  for (peer = 0; status == DTRUN_OK && peer < params->rank; ++peer) {
    void* value;
    uint64_t bytes;
    struct place place;
    status = links->members->said(links->host, links->membership, topic, peer, &value, &bytes, err);
    if (status != DTRUN_OK) break;
    memcpy(&place, value, sizeof place);
    memory->release(links->host, value);
    status = connect_to(place, peer, own.rank, deadline, &fds[peer], err);
  }
  if (status == DTRUN_OK) status = accept_all(listener, &own, params->size, deadline, fds, err);
  close(listener);
  return status;
}

static dtrun_status start_threads(struct peer* peer, dtrun_error* err) {
  int number;
  limit_calls(peer->fd, -1);
  number = pthread_create(&peer->sender, NULL, run_sender, peer);
  if (number == 0) peer->threads = 1;
  if (number == 0) number = pthread_create(&peer->receiver, NULL, run_receiver, peer);
  if (number != 0) return fail_system(err, DTRUN_SYSTEM, -1, "cannot start a thread", number);
  peer->threads = 2;
  return DTRUN_OK;
}

/* Connects all ranks. Ends within params->timeout_ns. */
static dtrun_status open_links(const dtrun_host* host, const dtrun_comm_params* params, struct links** out,
                               dtrun_error* err) {
  struct links* const links = calloc(1, sizeof *links);
  int* const fds = malloc((size_t)params->size * sizeof *fds);
  pthread_condattr_t clock;
  sigset_t all, before;
  dtrun_status status;
  int32_t rank;
  if (links != NULL) links->peers = calloc((size_t)params->size, sizeof *links->peers);
  if (links == NULL || fds == NULL || links->peers == NULL) {
    if (links != NULL) free(links->peers);
    free(links);
    free(fds);
    return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for the connections");
  }
  links->host = host;
  links->kv = params->kv;
  links->rank = params->rank;
  links->size = params->size;
  links->members = host->get_service(host, DTRUN_MEMBERSHIP_SERVICE);
  pthread_mutex_init(&links->mutex, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&links->changed, &clock);
  pthread_condattr_destroy(&clock);
  DTRUN_ERROR_INIT(links->failure);
  for (rank = 0; rank < params->size; ++rank) {
    fds[rank] = -1;
    links->peers[rank].links = links;
    links->peers[rank].rank = rank;
    links->peers[rank].fd = -1;
  }
  status = links->members->open(host, params, &links->membership, err);
  if (status == DTRUN_OK) status = connect_all(links, params, fds, err);
  for (rank = 0; rank < params->size; ++rank) links->peers[rank].fd = fds[rank];
  sigfillset(&all); /* the threads take no signals */
  pthread_sigmask(SIG_BLOCK, &all, &before);
  for (rank = 0; status == DTRUN_OK && rank < params->size; ++rank) {
    if (fds[rank] >= 0) status = start_threads(&links->peers[rank], err);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  free(fds);
  if (status == DTRUN_OK) {
    *out = links;
  } else {
    end_threads(links);
    free_links(links);
  }
  return status;
}

#endif
