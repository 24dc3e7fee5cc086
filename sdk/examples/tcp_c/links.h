/* links.h - messages over the connections of a communicator, and how it fails.
 *
 * As simple as the rules allow: a message is copied when it is sent and when it is received. Two threads for
 * each peer, one that sends and one that receives, so that a message waits for no other rank's. For one
 * source file.
 */
#ifndef TCP_LINKS_H
#define TCP_LINKS_H

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "counters.h"
#include "sockets.h"

/* Goes before each message. A receive takes the first one with an equal header, so one of another size never.
 */
struct header {
  uint64_t key, bytes;
};

struct message {
  struct message* next;
  struct header header;
  char data[];
};

/* Lives until it is done. */
struct receive {
  struct receive* next;
  int32_t peer;
  struct header header;
  void* data;
  int64_t deadline;
  int done;
  int failed;
};

struct peer {
  struct links* links;
  int32_t rank;
  int fd; /* -1: this rank itself */
  int gone;
  struct message* sends;    /* the first one is under way */
  struct message* messages; /* without a receive so far */
  struct receive* receives;
  int threads; /* that run: the sender, then the receiver */
  pthread_t sender, receiver;
};

struct links {
  const dtrun_host* host;
  dtrun_kv* kv;
  const dtrun_membership_service* members;
  dtrun_membership* membership;
  int32_t rank, size;
  pthread_mutex_t mutex; /* guards the rest */
  pthread_cond_t changed;
  int failed, shut, reported;
  uint64_t moved; /* pieces that were sent */
  dtrun_error failure;
  link_counts counts;
  struct peer* peers;
};

/* ---- with the mutex ------------------------------------------------------------------ */

static void end_receives(struct links* links, struct peer* peer) {
  while (peer->receives != NULL) {
    struct receive* const receive = peer->receives;
    peer->receives = receive->next;
    receive->failed = 1;
    receive->done = 1;
  }
  pthread_cond_broadcast(&links->changed);
}

/* Gives messages to their receives. */
static void match(struct links* links, struct peer* peer) {
  struct message** at = &peer->messages;
  while (*at != NULL) {
    struct message* const message = *at;
    struct receive** to = &peer->receives;
    while (*to != NULL && memcmp(&(*to)->header, &message->header, sizeof message->header) != 0)
      to = &(*to)->next;
    /* One that is late has timed out, whether or not its rank has looked. */
    if (*to == NULL || ((*to)->deadline >= 0 && time_left((*to)->deadline) == 0)) {
      at = &message->next;
      continue;
    }
    if (message->header.bytes > 0) memcpy((*to)->data, message->data, message->header.bytes);
    (*to)->done = 1;
    *to = (*to)->next;
    *at = message->next;
    free(message);
    pthread_cond_broadcast(&links->changed);
  }
}

static void append_message(struct message** list, struct message* message) {
  while (*list != NULL) list = &(*list)->next;
  *list = message;
}

/* ---- without it ---------------------------------------------------------------------- */

static void shut(struct links* links) {
  int32_t rank;
  pthread_mutex_lock(&links->mutex);
  links->shut = 1;
  for (rank = 0; rank < links->size; ++rank) {
    if (links->peers[rank].fd >= 0) shutdown(links->peers[rank].fd, SHUT_RDWR);
    end_receives(links, &links->peers[rank]);
  }
  pthread_mutex_unlock(&links->mutex);
}

/* Ends every receive and tells the other ranks. Only the first failure counts. */
static void fail(struct links* links, dtrun_status code, int32_t peer, const char* text) {
  int first;
  pthread_mutex_lock(&links->mutex);
  first = !links->failed;
  if (first) dtrun_error_set(&links->failure, code, peer, text);
  links->failed = 1;
  pthread_mutex_unlock(&links->mutex);
  if (!first) return;
  /* Before the connections end, so that others find it. Without the store they see that they end. */
  links->members->publish_failure(links->host, links->membership, &links->failure, NULL);
  shut(links);
}

/* The failure of the communicator, or DTRUN_OK; core hears first who is to blame. */
static dtrun_status failure_of(struct links* links, dtrun_error* err) {
  int failed, report;
  pthread_mutex_lock(&links->mutex);
  failed = links->failed;
  report = failed && links->failure.code == DTRUN_REMOTE_FAILURE && !links->reported;
  if (report) links->reported = 1;
  pthread_mutex_unlock(&links->mutex);
  if (!failed) return DTRUN_OK;
  if (report) {
    const dtrun_health_service* health = links->host->get_service(links->host, DTRUN_HEALTH_SERVICE);
    const dtrun_string what = {links->failure.message, strlen(links->failure.message)};
    health->report_peer(links->host, links->kv, links->failure.peer, what);
  }
  return dtrun_error_set(err, links->failure.code, links->failure.peer, links->failure.message);
}

/* A connection has ended: a failure, unless its rank has left and is not needed. */
static void lost(struct peer* peer, int needed) {
  struct links* const links = peer->links;
  const dtrun_memory_service* memory = links->host->get_service(links->host, DTRUN_MEMORY_SERVICE);
  dtrun_error first;
  int32_t who = -1;
  void* last = NULL;
  uint64_t bytes = 0;
  char text[128];
  int closing;
  pthread_mutex_lock(&links->mutex);
  closing = links->shut;
  pthread_mutex_unlock(&links->mutex);
  if (closing) return;
  DTRUN_ERROR_INIT(first);
  if (links->members->first_failure(links->host, links->membership, &who, &first, NULL) == DTRUN_OK) {
    fail(links, first.code, first.peer, first.message);
    return;
  }
  if (links->members->left(links->host, links->membership, peer->rank, &last, &bytes, NULL) == DTRUN_OK) {
    memory->release(links->host, last);
    if (!needed) return;
    snprintf(text, sizeof text, "rank %d has left; every rank must make the same calls", (int)peer->rank);
  } else {
    snprintf(text, sizeof text, "the connection with rank %d has ended", (int)peer->rank);
  }
  fail(links, DTRUN_REMOTE_FAILURE, peer->rank, text);
}

static void declare_thread(const struct links* links, const char* name) {
  const dtrun_threads_service* threads = links->host->get_service(links->host, DTRUN_THREADS_SERVICE);
  threads->on_start(links->host, name);
}

static void forget_thread(const struct links* links) {
  const dtrun_threads_service* threads = links->host->get_service(links->host, DTRUN_THREADS_SERVICE);
  threads->on_stop(links->host);
}

/* In pieces, so that close_links sees that it moves. */
static int send_pieces(const struct peer* peer, const char* data, uint64_t bytes) {
  static const uint64_t piece = 1 << 20;
  while (bytes > 0) {
    const uint64_t size = bytes < piece ? bytes : piece;
    if (!send_all(peer->fd, data, size)) return 0;
    data += size;
    bytes -= size;
    pthread_mutex_lock(&peer->links->mutex);
    ++peer->links->moved;
    pthread_mutex_unlock(&peer->links->mutex);
  }
  return 1;
}

static void* run_sender(void* context) {
  struct peer* const peer = context;
  struct links* const links = peer->links;
  declare_thread(links, "tcp-send");
  pthread_mutex_lock(&links->mutex);
  for (;;) {
    struct message* message;
    int sent;
    while (!links->shut && peer->sends == NULL) pthread_cond_wait(&links->changed, &links->mutex);
    if (links->shut) break;
    message = peer->sends;
    sent = !peer->gone;
    pthread_mutex_unlock(&links->mutex);
    sent = sent && send_pieces(peer, (const char*)message + offsetof(struct message, header),
                               sizeof message->header + message->header.bytes);
    if (!sent) lost(peer, 1);
    pthread_mutex_lock(&links->mutex);
    if (!sent) break;
    peer->sends = message->next;
    free(message);
    pthread_cond_broadcast(&links->changed);
  }
  pthread_mutex_unlock(&links->mutex);
  forget_thread(links);
  return NULL;
}

static void* run_receiver(void* context) {
  struct peer* const peer = context;
  struct links* const links = peer->links;
  struct header header;
  int needed;
  declare_thread(links, "tcp-receive");
  while (recv_all(peer->fd, &header, sizeof header)) {
    struct message* const message = malloc(sizeof *message + header.bytes);
    if (message == NULL) {
      fail(links, DTRUN_OUT_OF_MEMORY, -1, "no memory for a message; receive earlier, or send less at once");
      break;
    }
    message->next = NULL;
    message->header = header;
    if (!recv_all(peer->fd, message->data, header.bytes)) {
      free(message);
      break;
    }
    pthread_mutex_lock(&links->mutex);
    ++links->counts.messages_received;
    links->counts.bytes_received += header.bytes;
    append_message(&peer->messages, message);
    match(links, peer);
    pthread_mutex_unlock(&links->mutex);
  }
  pthread_mutex_lock(&links->mutex);
  peer->gone = 1;
  needed = peer->receives != NULL;
  pthread_cond_broadcast(&links->changed);
  pthread_mutex_unlock(&links->mutex);
  lost(peer, needed);
  forget_thread(links);
  return NULL;
}

/* ---- messages ------------------------------------------------------------------------ */

/* The memory is the caller's again at once. */
static dtrun_status send_message(struct links* links, int32_t rank, struct header header, const void* data,
                                 dtrun_error* err) {
  const dtrun_status status = failure_of(links, err);
  struct message* message;
  if (status != DTRUN_OK) return status;
  message = malloc(sizeof *message + header.bytes);
  if (message == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a message");
  message->next = NULL;
  message->header = header;
  if (header.bytes > 0) memcpy(message->data, data, header.bytes);
  pthread_mutex_lock(&links->mutex);
  ++links->counts.messages_sent;
  links->counts.bytes_sent += header.bytes;
  append_message(&links->peers[rank].sends, message);
  pthread_cond_broadcast(&links->changed);
  pthread_mutex_unlock(&links->mutex);
  return DTRUN_OK;
}

static void start_receive(struct links* links, struct receive* receive) {
  struct peer* const peer = &links->peers[receive->peer];
  struct receive** at = &peer->receives;
  int needed;
  pthread_mutex_lock(&links->mutex);
  while (*at != NULL) at = &(*at)->next;
  *at = receive;
  match(links, peer);
  if (links->shut) end_receives(links, peer);
  needed = peer->gone && !receive->done;
  pthread_mutex_unlock(&links->mutex);
  if (needed) lost(peer, 1);
}

/* DTRUN_PENDING when it still runs after `timeout_ns`. */
static dtrun_status wait_receive(struct links* links, const struct receive* receive, int64_t timeout_ns,
                                 dtrun_error* err) {
  const int64_t patience = deadline_after(timeout_ns);
  int failed;
  pthread_mutex_lock(&links->mutex);
  while (!receive->done) {
    int64_t until = receive->deadline;
    if (until >= 0 && time_left(until) == 0) {
      char text[96];
      pthread_mutex_unlock(&links->mutex);
      snprintf(text, sizeof text, "timed out waiting for rank %d; look at what it is doing",
               (int)receive->peer);
      fail(links, DTRUN_TIMEOUT, receive->peer, text);
      pthread_mutex_lock(&links->mutex); /* another failure may be ahead of this one */
      while (!receive->done) pthread_cond_wait(&links->changed, &links->mutex);
      break;
    }
    if (patience >= 0 && time_left(patience) == 0) {
      pthread_mutex_unlock(&links->mutex);
      return DTRUN_PENDING;
    }
    if (until < 0 || (patience >= 0 && patience < until)) until = patience;
    if (until < 0) {
      pthread_cond_wait(&links->changed, &links->mutex);
    } else {
      const struct timespec moment = {until / 1000000000, until % 1000000000};
      pthread_cond_timedwait(&links->changed, &links->mutex, &moment);
    }
  }
  failed = receive->failed;
  pthread_mutex_unlock(&links->mutex);
  return failed ? failure_of(links, err) : DTRUN_OK;
}

#endif
