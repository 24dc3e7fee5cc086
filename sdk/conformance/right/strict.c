/* strict.c - a right backend that is unlike dtrun's own: over Unix sockets, with one thread for each
 * communicator; a send ends only when its receive has taken it, and each collective compares what all ranks
 * call (rule C9).
 *
 * The suite must find nothing in it. Its ranks are threads or processes of one host.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "connect.h"

/* ---- the thread ------------------------------------------------------------------------- */

/* A whole frame without its payload. */
static void begin_payload(dtrun_backend_comm* comm, struct peer* peer) {
  const struct frame* const frame = &peer->frame;
  if (frame->what == CALL || frame->what == OFFER) {
    peer->call = malloc(sizeof *peer->call + (frame->what == CALL ? frame->bytes : 0));
    if (peer->call == NULL) {
      fail(comm, DTRUN_OUT_OF_MEMORY, -1, "no memory for a call of another rank");
      return;
    }
    peer->call->next = NULL;
    peer->call->frame = *frame;
  } else if (frame->what == DATA) {
    peer->into = message_of(comm, peer, DTRUN_RECV, frame->number);
  }
}

static void end_payload(dtrun_backend_comm* comm, struct peer* peer) {
  struct frame frame = peer->frame;
  dtrun_request* sender;
  if (peer->call != NULL) {
    struct arrived** at = frame.what == CALL ? &peer->calls : &peer->offers;
    while (*at != NULL) at = &(*at)->next;
    *at = peer->call;
    peer->call = NULL;
  } else if (frame.what == TAKE && (sender = message_of(comm, peer, DTRUN_SEND, frame.number)) != NULL) {
    frame.what = DATA;
    frame.bytes = bytes_of(sender);
    push(peer, &frame, sender->op.send, sender);
  } else if (frame.what == DATA && peer->into != NULL) {
    end(peer->into, DTRUN_OK);
    peer->into = NULL;
  } else if (frame.what == FAILED) {
    gone(peer, frame.root, "has failed");
  } else if (frame.what == BYE) {
    gone(peer, peer->rank, "has left");
  }
}

/* 0 when there is nothing to read now. */
static int read_some(dtrun_backend_comm* comm, struct peer* peer) {
  char unused[65536];
  const uint64_t head = sizeof peer->frame;
  char* to = (char*)&peer->frame + peer->got;
  uint64_t room = head - peer->got;
  if (peer->got >= head) {
    const uint64_t at = peer->got - head;
    room = peer->frame.bytes - at;
    to = peer->call != NULL   ? peer->call->data + at
         : peer->into != NULL ? (char*)peer->into->op.recv + at
                              : unused;
    if (to == unused && room > sizeof unused) room = sizeof unused;
  }
  const ssize_t got = recv(peer->fd, to, room > PIECE_BYTES ? PIECE_BYTES : room, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) {
    gone(peer, peer->rank, "has ended without a word");
    close(peer->fd);
    peer->fd = -1;
    return 0;
  }
  peer->got += (uint64_t)got;
  if (peer->got == head) begin_payload(comm, peer);
  if (peer->got < head || peer->got < head + peer->frame.bytes) return 1;
  peer->got = 0;
  end_payload(comm, peer);
  return 1;
}

static int write_some(struct peer* peer) {
  struct outgoing* const one = peer->out;
  const uint64_t head = sizeof one->frame;
  const char* const from = one->sent < head ? (char*)&one->frame + one->sent : one->data + (one->sent - head);
  const uint64_t left = one->sent < head ? head - one->sent : head + one->frame.bytes - one->sent;
  const ssize_t sent =
      send(peer->fd, from, left > PIECE_BYTES ? PIECE_BYTES : left, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return 0; /* full; a connection that has ended is seen by who reads */
  one->sent += (uint64_t)sent;
  if (one->sent < head + one->frame.bytes) return 1;
  if (one->request != NULL) {
    if (one->frame.what == DATA)
      end(one->request, DTRUN_OK);
    else
      --one->request->unsent;
  }
  peer->out = without_first(one);
  return peer->out != NULL;
}

static int may_stop(const dtrun_backend_comm* comm) {
  if (comm->closing == 0) return 0;
  for (int32_t rank = 0; rank < comm->size; ++rank) {
    if (comm->peers[rank].fd >= 0 && comm->peers[rank].out != NULL) return now() >= comm->closing;
  }
  return 1;
}

static int patience(const dtrun_backend_comm* comm) {
  int64_t first = comm->closing == 0 ? INT64_MAX : comm->closing;
  for (const dtrun_request* one = comm->running; one != NULL; one = one->next) {
    if (one->deadline < first) first = one->deadline;
  }
  if (first == INT64_MAX) return -1;
  const int64_t left = (first - now()) / 1000000 + 1;
  return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void* run(void* context) {
  dtrun_backend_comm* const comm = context;
  const dtrun_host* const host = comm->instance->host;
  const dtrun_threads_service* const threads = host->get_service(host, DTRUN_THREADS_SERVICE);
  struct pollfd* const fds = calloc((size_t)comm->size + 1, sizeof *fds);
  if (threads != NULL) threads->on_start(host, "strict");
  pthread_mutex_lock(&comm->mutex);
  while (fds != NULL && !may_stop(comm)) {
    for (int32_t rank = 0; rank < comm->size; ++rank) {
      fds[rank].fd = comm->peers[rank].fd;
      fds[rank].events = (short)(POLLIN | (comm->peers[rank].out != NULL ? POLLOUT : 0));
      fds[rank].revents = 0;
    }
    fds[comm->size].fd = comm->wake;
    fds[comm->size].events = POLLIN;
    const int wait = patience(comm);
    pthread_mutex_unlock(&comm->mutex);
    poll(fds, (nfds_t)comm->size + 1, wait);
    pthread_mutex_lock(&comm->mutex);
    uint64_t woken;
    if (read(comm->wake, &woken, sizeof woken) < 0) woken = 0;
    for (int32_t rank = 0; rank < comm->size; ++rank) {
      struct peer* const peer = &comm->peers[rank];
      int rounds = 64; /* then another peer has its turn */
      while (peer->fd >= 0 && fds[rank].revents != 0 && rounds-- > 0 && read_some(comm, peer)) continue;
      while (peer->fd >= 0 && peer->out != NULL && write_some(peer)) continue;
    }
    advance(comm);
    expire(comm);
  }
  pthread_mutex_unlock(&comm->mutex);
  free(fds);
  if (threads != NULL) threads->on_stop(host);
  return NULL;
}

/* ---- the slots -------------------------------------------------------------------------- */

static dtrun_status refuse(dtrun_error* err) {
  return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1,
                         "a flag that must be understood is not known here; use a newer backend");
}

static dtrun_status query_caps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  dtrun_backend_caps caps;
  (void)self, (void)err;
  DTRUN_INIT(caps);
  caps.features = DTRUN_CAP_ABORT;
  caps.ops = 1u << DTRUN_ALLREDUCE | 1u << DTRUN_BROADCAST | 1u << DTRUN_ALLGATHER |
             1u << DTRUN_REDUCE_SCATTER | 1u << DTRUN_BARRIER | 1u << DTRUN_SEND | 1u << DTRUN_RECV;
  caps.dtypes = caps.reduce_dtypes = 1u << DTRUN_FLOAT16 | 1u << DTRUN_BFLOAT16 | 1u << DTRUN_FLOAT32 |
                                     1u << DTRUN_FLOAT64 | 1u << DTRUN_INT32 | 1u << DTRUN_INT64 |
                                     1u << DTRUN_UINT8;
  caps.reduces = 1u << DTRUN_SUM | 1u << DTRUN_PROD | 1u << DTRUN_MIN | 1u << DTRUN_MAX | 1u << DTRUN_AVG;
  caps.max_bytes = UINT64_C(1) << 30;
  caps.device_kinds = 1u << DTRUN_DEVICE_HOST;
  dtrun_struct_write(out, &caps, sizeof caps);
  return DTRUN_OK;
}

static void comm_destroy(dtrun_backend_comm* comm) {
  const struct frame bye = {BYE, 0, 0, 0, 0, 0, 0, 0, 0};
  pthread_mutex_lock(&comm->mutex);
  for (int32_t rank = 0; rank < comm->size; ++rank) push(&comm->peers[rank], &bye, NULL, NULL);
  comm->closing = now() + INT64_C(5000000000);
  pthread_mutex_unlock(&comm->mutex);
  wake(comm);
  if (comm->started) pthread_join(comm->thread, NULL);
  for (int32_t rank = 0; rank < comm->size; ++rank) {
    struct peer* const peer = &comm->peers[rank];
    struct arrived* lists[] = {peer->calls, peer->offers, peer->call};
    if (peer->fd >= 0) close(peer->fd);
    while (peer->out != NULL) peer->out = without_first(peer->out);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
      for (struct arrived* one = lists[i]; one != NULL;) {
        struct arrived* const next = one->next;
        free(one);
        one = next;
      }
    }
  }
  close(comm->wake);
  pthread_cond_destroy(&comm->changed);
  pthread_mutex_destroy(&comm->mutex);
  free(comm->peers);
  free(comm);
}

static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* given,
                                dtrun_backend_comm** out, dtrun_error* err) {
  dtrun_comm_params params;
  pthread_condattr_t clock;
  dtrun_struct_read(&params, sizeof params, given);
  if ((params.flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  dtrun_backend_comm* const comm = calloc(1, sizeof *comm);
  if (comm != NULL) comm->peers = calloc((size_t)params.size, sizeof *comm->peers);
  if (comm == NULL || comm->peers == NULL) {
    free(comm);
    return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a communicator");
  }
  comm->instance = self;
  comm->kv = params.kv;
  comm->rank = params.rank;
  comm->size = params.size;
  DTRUN_ERROR_INIT(comm->failure);
  for (int32_t rank = 0; rank < comm->size; ++rank) {
    comm->peers[rank].fd = -1;
    comm->peers[rank].rank = rank;
  }
  pthread_mutex_init(&comm->mutex, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&comm->changed, &clock);
  comm->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  dtrun_status status = connect_all(comm, deadline_of(params.timeout_ns), err);
  if (status == DTRUN_OK) {
    comm->started = pthread_create(&comm->thread, NULL, run, comm) == 0;
    if (!comm->started) status = dtrun_error_set(err, DTRUN_SYSTEM, -1, "cannot start a thread");
  }
  if (status == DTRUN_OK)
    *out = comm;
  else
    comm_destroy(comm);
  return status;
}

static dtrun_status comm_abort(dtrun_backend_comm* comm, const dtrun_abort_params* given, dtrun_error* err) {
  dtrun_abort_params params;
  dtrun_struct_read(&params, sizeof params, given);
  if ((params.flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  pthread_mutex_lock(&comm->mutex);
  fail(comm, DTRUN_ABORTED, -1, params.reason.size > 0 ? params.reason.data : "aborted");
  pthread_mutex_unlock(&comm->mutex);
  wake(comm);
  return DTRUN_OK;
}

static dtrun_status outcome(const dtrun_request* request, dtrun_error* err) {
  const dtrun_error* const failure = &request->comm->failure;
  if (request->status == DTRUN_OK) return DTRUN_OK;
  return dtrun_error_set(err, failure->code, failure->peer, failure->message);
}

static dtrun_status enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                            dtrun_request** out, dtrun_error* err) {
  dtrun_status status = DTRUN_PENDING;
  (void)stream;
  if ((op->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  dtrun_request* const request = calloc(1, sizeof *request);
  if (request == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a request");
  dtrun_struct_read(&request->op, sizeof request->op, op);
  request->comm = comm;
  request->deadline = deadline_of(request->op.timeout_ns);
  pthread_mutex_lock(&comm->mutex);
  request->status = comm->failure.code;
  if (comm->failure.code == DTRUN_OK) {
    dtrun_request** at = &comm->running;
    while (*at != NULL) at = &(*at)->next;
    *at = request;
    start(request);
    advance(comm);
  } else {
    request->done = 1;
  }
#ifdef STRICT_WAITS /* the one fault of a broken plugin, which only a peer that reads nothing shows */
  wake(comm);
  while (request->unsent > 0 && !request->done) {
    const struct timespec moment = {0, 1000000};
    pthread_mutex_unlock(&comm->mutex);
    nanosleep(&moment, NULL);
    pthread_mutex_lock(&comm->mutex);
  }
#endif
  if (request->done) status = outcome(request, err);
  pthread_mutex_unlock(&comm->mutex);
  wake(comm);
  if (status == DTRUN_PENDING)
    *out = request;
  else
    free(request);
  return status;
}

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  dtrun_backend_comm* const comm = request->comm;
  const int64_t until = deadline_of(timeout_ns);
  const struct timespec moment = {until / 1000000000, until % 1000000000};
  pthread_mutex_lock(&comm->mutex);
  while (!request->done && now() < until) {
    if (until == INT64_MAX)
      pthread_cond_wait(&comm->changed, &comm->mutex);
    else
      pthread_cond_timedwait(&comm->changed, &comm->mutex, &moment);
  }
  const dtrun_status status = request->done ? outcome(request, err) : DTRUN_PENDING;
  pthread_mutex_unlock(&comm->mutex);
  return status;
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) {
  return req_wait_host(request, 0, err);
}

static void req_release(dtrun_request* request) {
  req_wait_host(request, -1, NULL);
  free(request);
}

/* ---- the plugin ------------------------------------------------------------------------- */

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  const dtrun_kernels_service* const kernels = host->get_service(host, DTRUN_KERNELS_SERVICE);
  if ((params->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  dtrun_instance* const self = malloc(sizeof *self);
  if (kernels == NULL || self == NULL) {
    free(self);
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "this host has no kernels, or no memory");
  }
  self->host = host;
  self->kernels = kernels;
  *out = self;
  return DTRUN_OK;
}

static void shutdown_instance(dtrun_instance* self) { free(self); }

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_backend backend;
  static dtrun_plugin plugin;
  (void)host, (void)err;
  DTRUN_INIT(backend);
  backend.query_caps = query_caps;
  backend.comm_create = comm_create;
  backend.comm_destroy = comm_destroy;
  backend.comm_abort = comm_abort;
  backend.enqueue = enqueue;
  backend.req_test = req_test;
  backend.req_wait_host = req_wait_host;
  backend.req_release = req_release;
  DTRUN_PLUGIN_INIT(plugin);
  plugin.kind = DTRUN_KIND_BACKEND;
  plugin.name = STRICT_NAME;
  plugin.version = "1.0";
  plugin.vendor = "dtrun tests";
  plugin.license = "Apache-2.0";
  plugin.summary = "compares the calls of all ranks, over Unix sockets";
  plugin.init = init;
  plugin.shutdown = shutdown_instance;
  plugin.backend = &backend;
  *out = &plugin;
  return DTRUN_OK;
}
