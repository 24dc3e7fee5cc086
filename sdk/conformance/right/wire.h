/* wire.h - frames between the ranks of a communicator of strict.c, and what they do.
 *
 * A collective sends each rank the call and what that rank needs of it. A message is offered, taken by its
 * receive, and only then sent. One mutex guards a communicator; its thread alone reads and writes the
 * sockets. For one source file.
 */
#ifndef STRICT_WIRE_H
#define STRICT_WIRE_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dtrun/abi.h"
#include "dtrun/abi/structs.h"

enum { CALL = 1, OFFER, TAKE, DATA, FAILED, BYE };
enum { TEXT_BYTES = 200, PIECE_BYTES = 4 << 20 };

struct frame {
  uint32_t what, tag;
  int32_t kind, dtype, reduce, root; /* of FAILED: kind is the status, root who is to blame */
  uint64_t number, count, bytes;     /* the collective's, or the message's of its sender; elements; payload */
};

struct outgoing {
  struct outgoing* next;
  struct frame frame;
  const char* data; /* of the request's buffer, or `copy` */
  char* copy;
  uint64_t sent; /* with the frame */
  dtrun_request* request;
};

struct arrived {
  struct arrived* next;
  struct frame frame;
  char data[];
};

struct peer {
  int fd; /* -1: this rank, or the connection has ended */
  int32_t rank;
  struct outgoing* out;
  struct arrived *calls, *offers;
  /* what arrives */
  struct frame frame;
  uint64_t got;
  struct arrived* call; /* CALL: its payload goes there */
  dtrun_request* into;  /* DATA: the receive, NULL when it has ended */
  /* it takes no more part */
  int gone;
  int32_t blame;
  char reason[TEXT_BYTES];
};

struct dtrun_request {
  dtrun_backend_comm* comm;
  dtrun_op op;
  int64_t deadline;
  uint64_t number; /* of a message; 0: not yet */
  int unsent;      /* frames */
  int done;
  dtrun_status status;
  dtrun_request* next; /* while it runs, in the order of the calls */
};

struct dtrun_instance {
  const dtrun_host* host;
  const dtrun_kernels_service* kernels;
};

struct dtrun_backend_comm {
  const dtrun_instance* instance;
  dtrun_kv* kv;
  int32_t rank, size;
  struct peer* peers;
  dtrun_request* running;
  dtrun_error failure; /* code DTRUN_OK: none */
  uint64_t messages;
  int wake, started;
  int64_t closing; /* 0: no; else when to stop waiting for what is not written */
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}
static int64_t deadline_of(int64_t timeout_ns) {
  return timeout_ns < 0 || timeout_ns > INT64_MAX / 2 ? INT64_MAX : now() + timeout_ns;
}

static int is_message(const dtrun_op* op) { return op->kind == DTRUN_SEND || op->kind == DTRUN_RECV; }
static uint64_t bytes_of(const dtrun_request* one) {
  return one->op.count *
         one->comm->instance->kernels->element_bytes(one->comm->instance->host, one->op.dtype);
}

static void wake(const dtrun_backend_comm* comm) {
  const uint64_t one = 1;
  if (write(comm->wake, &one, sizeof one) < 0) return; /* it is awake */
}

static void end(dtrun_request* request, dtrun_status status) {
  dtrun_request** at = &request->comm->running;
  while (*at != request) at = &(*at)->next;
  *at = request->next;
  request->status = status;
  request->done = 1;
  pthread_cond_broadcast(&request->comm->changed);
}

static void push(struct peer* peer, const struct frame* frame, const void* data, dtrun_request* request) {
  struct outgoing** at = &peer->out;
  struct outgoing* const one = calloc(1, sizeof *one);
  if (one == NULL) return; /* the deadline tells */
  one->frame = *frame;
  one->data = data;
  one->request = request;
  while (*at != NULL) at = &(*at)->next;
  *at = one;
}

static struct outgoing* without_first(struct outgoing* one) {
  struct outgoing* const next = one->next;
  free(one->copy);
  free(one);
  return next;
}

/* Buffers of requests are the caller's again: what is not under way is dropped, the rest of what is copied.
 */
static void forget_requests(struct peer* peer) {
  struct outgoing** at = &peer->out;
  peer->into = NULL;
  while (*at != NULL) {
    struct outgoing* const one = *at;
    if (one->request != NULL && one->sent == 0) {
      *at = without_first(one);
      continue;
    }
    if (one->request != NULL && one->frame.bytes > 0) {
      one->copy = malloc(one->frame.bytes);
      if (one->copy == NULL) {
        shutdown(peer->fd, SHUT_RDWR);
        *at = without_first(one);
        continue;
      }
      one->data = memcpy(one->copy, one->data, one->frame.bytes);
    }
    one->request = NULL;
    at = &one->next;
  }
}

static void fail(dtrun_backend_comm* comm, dtrun_status status, int32_t culprit, const char* text) {
  const dtrun_host* const host = comm->instance->host;
  struct frame frame = {FAILED, 0, status, 0, 0, status == DTRUN_REMOTE_FAILURE ? culprit : comm->rank,
                        0,      0, 0};
  if (comm->failure.code != DTRUN_OK) return;
  dtrun_error_set(&comm->failure, status, culprit, text);
  while (comm->running != NULL) end(comm->running, status);
  for (int32_t rank = 0; rank < comm->size; ++rank) {
    forget_requests(&comm->peers[rank]);
    push(&comm->peers[rank], &frame, NULL, NULL);
  }
  const dtrun_health_service* const health = host->get_service(host, DTRUN_HEALTH_SERVICE);
  if (status == DTRUN_REMOTE_FAILURE && health != NULL)
    health->report_peer(host, comm->kv, culprit,
                        (dtrun_string){comm->failure.message, strlen(comm->failure.message)});
}

static void gone(struct peer* peer, int32_t blame, const char* what) {
  if (peer->gone) return;
  peer->gone = 1;
  peer->blame = blame;
  snprintf(peer->reason, sizeof peer->reason, "rank %d %s", (int)blame, what);
}

/* ---- collectives ------------------------------------------------------------------------ */

static struct arrived* call_of(const struct peer* peer, uint64_t number) {
  struct arrived* one = peer->calls;
  while (one != NULL && one->frame.number != number) one = one->next;
  return one;
}

static const char* name_of(int32_t kind) {
  static const char* const names[] = {"?",         "allreduce",      "broadcast",
                                      "allgather", "reduce_scatter", "barrier"};
  return names[kind >= 1 && kind <= DTRUN_BARRIER ? kind : 0];
}

static int differs(dtrun_request* request, const struct peer* peer, const struct frame* theirs) {
  const dtrun_op* const op = &request->op;
  char text[TEXT_BYTES];
  if (op->kind == theirs->kind && op->dtype == theirs->dtype && op->reduce == theirs->reduce &&
      op->root == theirs->root && op->count == theirs->count)
    return 0;
  snprintf(text, sizeof text,
           "call %d is %s (type %d, reduction %d, root %d, count %d) on rank %d and %s (%d, %d, %d, %d) on "
           "rank %d",
           (int)op->sequence, name_of(op->kind), (int)op->dtype, (int)op->reduce, (int)op->root,
           (int)op->count, (int)request->comm->rank, name_of(theirs->kind), (int)theirs->dtype,
           (int)theirs->reduce, (int)theirs->root, (int)theirs->count, (int)peer->rank);
  fail(request->comm, DTRUN_MISMATCH, peer->rank, text);
  return 1;
}

static void combine(dtrun_request* request, const void** sources) {
  const dtrun_op* const op = &request->op;
  const dtrun_instance* const instance = request->comm->instance;
  const uint64_t bytes = bytes_of(request);
  char* const to = op->recv;
  dtrun_reduction reduction;
  DTRUN_INIT(reduction);
  reduction.dtype = op->dtype;
  reduction.reduce = op->reduce;
  reduction.out = op->recv;
  reduction.sources = sources;
  reduction.source_count = (uint64_t)request->comm->size;
  reduction.count = op->count;
  if (op->kind == DTRUN_ALLREDUCE || op->kind == DTRUN_REDUCE_SCATTER) {
    instance->kernels->reduce(instance->host, &reduction, NULL);
  } else if (op->kind == DTRUN_BROADCAST && bytes > 0) {
    memmove(to, sources[op->root], bytes);
  } else if (op->kind == DTRUN_ALLGATHER && bytes > 0) {
    for (int32_t rank = 0; rank < request->comm->size; ++rank)
      memmove(to + (uint64_t)rank * bytes, sources[rank], bytes);
  }
}

/* Whether the first collective, which `request` is, has ended. */
static int step(dtrun_request* request) {
  dtrun_backend_comm* const comm = request->comm;
  const dtrun_op* const op = &request->op;
  const void** const sources = malloc((size_t)comm->size * sizeof *sources);
  int missing = sources == NULL || request->unsent > 0;
  for (int32_t rank = 0; sources != NULL && rank < comm->size; ++rank) {
    struct arrived* const call = call_of(&comm->peers[rank], op->sequence);
    if (rank == comm->rank) {
      const char* const own = op->kind == DTRUN_BROADCAST ? op->recv : op->send;
      sources[rank] = op->kind == DTRUN_REDUCE_SCATTER ? own + (uint64_t)rank * bytes_of(request) : own;
    } else if (call == NULL) {
      missing = 1;
    } else if (differs(request, &comm->peers[rank], &call->frame)) {
      free(sources);
      return 0;
    } else {
      sources[rank] = call->data;
    }
  }
  if (!missing) {
    combine(request, sources);
    for (int32_t rank = 0; rank < comm->size; ++rank) {
      struct arrived* const call = comm->peers[rank].calls;
      if (rank == comm->rank) continue;
      comm->peers[rank].calls = call->next;
      free(call);
    }
    end(request, DTRUN_OK);
  }
  free(sources);
  return !missing;
}

/* ---- messages --------------------------------------------------------------------------- */

static void take_offer(dtrun_request* request) {
  struct peer* const peer = &request->comm->peers[request->op.peer];
  struct arrived** at = &peer->offers;
  while (*at != NULL && (*at)->frame.tag != request->op.tag) at = &(*at)->next;
  if (*at == NULL) return;
  struct arrived* const offer = *at;
  struct frame frame = offer->frame;
  *at = offer->next;
  free(offer);
  if (frame.count != request->op.count || frame.dtype != request->op.dtype) {
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "rank %d sends %d elements of type %d, and this rank receives %d of type %d",
             (int)peer->rank, (int)frame.count, (int)frame.dtype, (int)request->op.count,
             (int)request->op.dtype);
    fail(request->comm, DTRUN_MISMATCH, peer->rank, text);
    return;
  }
  frame.what = TAKE;
  request->number = frame.number;
  push(peer, &frame, NULL, NULL);
}

static dtrun_request* message_of(dtrun_backend_comm* comm, const struct peer* peer, int32_t kind,
                                 uint64_t number) {
  dtrun_request* one = comm->running;
  while (one != NULL && (one->op.kind != kind || one->op.peer != peer->rank || one->number != number))
    one = one->next;
  return one;
}

/* ---- all -------------------------------------------------------------------------------- */

static int needs(const dtrun_request* request, const struct peer* peer) {
  if (is_message(&request->op)) return request->op.peer == peer->rank;
  for (const struct outgoing* one = peer->out; one != NULL; one = one->next) {
    if (one->request == request) return 1;
  }
  return call_of(peer, request->op.sequence) == NULL;
}

/* Does what can be done. */
static void advance(dtrun_backend_comm* comm) {
  dtrun_request* one;
  do {
    for (one = comm->running; one != NULL && is_message(&one->op);) one = one->next;
  } while (one != NULL && step(one));
  for (one = comm->running; one != NULL;) {
    dtrun_request* const next = one->next;
    if (one->op.kind == DTRUN_RECV && one->number == 0) take_offer(one);
    one = comm->failure.code == DTRUN_OK ? next : NULL;
  }
  for (int32_t rank = 0; rank < comm->size; ++rank) {
    const struct peer* const peer = &comm->peers[rank];
    for (one = comm->running; peer->gone && one != NULL; one = one->next) {
      if (!needs(one, peer)) continue;
      fail(comm, DTRUN_REMOTE_FAILURE, peer->blame, peer->reason);
      break;
    }
  }
}

static void expire(dtrun_backend_comm* comm) {
  dtrun_request* one = comm->running;
  char text[TEXT_BYTES];
  while (one != NULL && one->deadline > now()) one = one->next;
  if (one == NULL) return;
  int32_t missing = is_message(&one->op) ? one->op.peer : 0;
  while (!is_message(&one->op) && missing < comm->size &&
         (missing == comm->rank || call_of(&comm->peers[missing], one->op.sequence) != NULL))
    ++missing;
  if (missing == comm->size) missing = -1; /* what is ahead of it has not ended */
  snprintf(text, sizeof text, "rank %d took no part in time; look at what it is doing", (int)missing);
  fail(comm, DTRUN_TIMEOUT, missing, missing < 0 ? "an earlier call has not ended in time" : text);
}

/* What starts a request: its frames. */
static void start(dtrun_request* request) {
  dtrun_backend_comm* const comm = request->comm;
  const dtrun_op* const op = &request->op;
  struct frame frame = {CALL, op->tag, op->kind, op->dtype, op->reduce, op->root, op->sequence, op->count, 0};
  if (op->kind == DTRUN_SEND) {
    frame.what = OFFER;
    frame.number = request->number = ++comm->messages;
    push(&comm->peers[op->peer], &frame, NULL, NULL);
  }
  for (int32_t rank = 0; !is_message(op) && rank < comm->size; ++rank) {
    const char* data = op->kind == DTRUN_BROADCAST ? op->recv : op->send;
    if (rank == comm->rank) continue;
    frame.bytes = op->kind == DTRUN_BARRIER || (op->kind == DTRUN_BROADCAST && op->root != comm->rank)
                      ? 0
                      : bytes_of(request);
    if (op->kind == DTRUN_REDUCE_SCATTER) data += (uint64_t)rank * frame.bytes;
    ++request->unsent;
    push(&comm->peers[rank], &frame, data, request);
  }
}

#endif
