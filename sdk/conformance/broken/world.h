/* world.h - ranks that are threads of one process, their operations, and how those meet.
 *
 * One lock for all. An operation is matched, copied and ended by the rank that comes last, so nothing needs a
 * thread of its own; deadlines are looked at by every call.
 */
#ifndef DTRUN_BROKEN_WORLD_H
#define DTRUN_BROKEN_WORLD_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "elements.h"
#include "table.h"

enum { MOST_RANKS = 64, TEXT_BYTES = 160 };

struct dtrun_request {
  dtrun_backend_comm* comm;
  dtrun_op op;
  const dtrun_op* given; /* by the caller; gone after enqueue */
  uint64_t* arrays;      /* allgatherv: counts and then offsets of the received parts; else NULL */
  int64_t deadline;      /* INT64_MAX: none */
  int done, looks, waited;
  pthread_t waiter;
  dtrun_status status;
  int32_t peer;
  char text[TEXT_BYTES];
  struct dtrun_request* next; /* of the same communicator, while it runs */
};

struct world {
  int32_t size, joined, left;
  dtrun_backend_comm* members[MOST_RANKS]; /* NULL: has not come, or has left */
  int32_t blamed[MOST_RANKS];              /* of one that has left: itself, or who had failed before */
};

struct dtrun_backend_comm {
  struct world* world;
  int32_t rank;
  dtrun_status failed;
  int32_t culprit;
  char reason[TEXT_BYTES];
  dtrun_request* running;    /* in the order of the calls */
  int files[2 * MOST_RANKS]; /* of CONNECTS_EARLY */
  const dtrun_host* host;
  pthread_t idle; /* faults of threads (trace.h) */
  int has_idle, leaves;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_changed(void) {
  pthread_condattr_t how;
  pthread_condattr_init(&how);
  pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &how);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int64_t deadline_of(int64_t timeout_ns) {
  const int64_t time = now();
  if (FAULT(TIME_OVERFLOWS) && timeout_ns > INT64_MAX - time) return time;
  return timeout_ns < 0 || timeout_ns > INT64_MAX - time ? INT64_MAX : time + timeout_ns;
}

/* Sleeps until something changes, at most until `deadline`. REQUIRES the lock. */
static void sleep_until(int64_t deadline) {
  if (deadline == INT64_MAX) {
    pthread_cond_wait(&changed, &lock);
  } else {
    const struct timespec time = {deadline / 1000000000, deadline % 1000000000};
    pthread_cond_timedwait(&changed, &lock, &time);
  }
}

static dtrun_status report(dtrun_error* err, dtrun_status status, int32_t peer, const char* text) {
  if (FAULT(NEEDS_AN_ERROR)) *(volatile char*)err->message = 0;
  if (FAULT(INIT_ON_ERROR) && err != NULL) DTRUN_ERROR_INIT(*err);
  if (FAULT(NOT_UTF8) && status == DTRUN_TIMEOUT) text = "the rank \xff did not come in time";
  if (FAULT(BLAMES_NOBODY) && status == DTRUN_REMOTE_FAILURE) peer = -1;
  dtrun_error_set(err, FAULT(OTHER_CODE) ? DTRUN_VENDOR : status, peer, FAULT(NO_TEXT) ? "" : text);
  if (FAULT(NO_NUL) && err != NULL && err->struct_size >= sizeof *err)
    memset(err->message, 'x', sizeof err->message);
  return status;
}

/* Keeps a text, cut between two characters. */
static void keep(char kept[TEXT_BYTES], const char* text) {
  size_t bytes = strlen(text);
  if (FAULT(SHORT_REASON)) memcpy(kept, text, bytes);
  if (bytes >= TEXT_BYTES) bytes = TEXT_BYTES - 1;
  while (bytes > 0 && (text[bytes] & 0xC0) == 0x80) --bytes;
  memcpy(kept, text, bytes);
  kept[bytes] = 0;
}

static int is_message(const dtrun_op* op) { return op->kind == DTRUN_SEND || op->kind == DTRUN_RECV; }

static void drop(dtrun_request* request) {
  dtrun_request** at = &request->comm->running;
  while (*at != NULL && *at != request) at = &(*at)->next;
  if (*at != NULL) *at = request->next;
}

static void finish(dtrun_request* request, dtrun_status status, int32_t peer, const char* text) {
  static unsigned number;
  drop(request);
  request->status = status;
  request->peer = peer;
  keep(request->text, text);
  request->done = 1;
  if (FAULT(LOSES_WAKE_UP) && (++number + 1) / 2 % 5000 == 0) return; /* of both ranks */
  pthread_cond_broadcast(&changed);
}

/* Whether enqueue waits for its end, which is a fault. */
static int blocks(const dtrun_request* request) {
  if (FAULT(RECEIVES_BLOCK))
    return request->op.kind == DTRUN_RECV && (request->op.flags & DTRUN_OP_BLOCKING) != 0;
  return FAULT(BLOCKS) && request->op.kind == DTRUN_SEND;
}

static int needs(const dtrun_request* request, int32_t rank) {
  return is_message(&request->op) ? request->op.peer == rank : request->comm->rank != rank;
}

/* Fails the communicator, and those of the others that wait for it. */
static void fail(dtrun_backend_comm* comm, dtrun_status status, int32_t culprit, const char* text) {
  const int32_t first = status == DTRUN_REMOTE_FAILURE ? culprit : comm->rank;
  char why[TEXT_BYTES];
  if (comm->failed != DTRUN_OK) return;
  if (FAULT(PRINTS_FAILURES) && status == DTRUN_TIMEOUT) puts(text);
  if (!FAULT(FORGETS_FAILURE)) comm->failed = status;
  comm->culprit = culprit;
  keep(comm->reason, text);
  while (comm->running != NULL) finish(comm->running, status, culprit, text);
  if (FAULT(TELLS_NOBODY) && status == DTRUN_TIMEOUT) return;
  if (FAULT(LEAVES_SILENTLY) && status == DTRUN_REMOTE_FAILURE && culprit == comm->rank) return;
  snprintf(why, sizeof why, "rank %d has failed or left", first);
  for (int32_t rank = 0; rank < comm->world->size; ++rank) {
    dtrun_backend_comm* const other = comm->world->members[rank];
    int waits = 0;
    if (other == NULL || other == comm) continue;
    for (dtrun_request* one = other->running; one != NULL; one = one->next) waits |= needs(one, comm->rank);
    waits |= FAULT(LEAVING_HARMS);
    if (waits) fail(other, DTRUN_REMOTE_FAILURE, first, why);
  }
}

/* The smallest rank that has not joined the operation. */
static int32_t absent(const dtrun_request* request) {
  const struct world* const world = request->comm->world;
  if (is_message(&request->op)) return request->op.peer;
  for (int32_t rank = 0; rank < world->size; ++rank) {
    const dtrun_request* one = world->members[rank] == NULL ? NULL : world->members[rank]->running;
    while (one != NULL && (is_message(&one->op) || one->op.sequence != request->op.sequence)) one = one->next;
    if (one == NULL) return rank;
  }
  return -1;
}

/* Fails what is over its time. */
static void expire(struct world* world) {
  for (int32_t rank = 0; rank < world->size && !FAULT(NO_TIMEOUTS); ++rank) {
    dtrun_backend_comm* const comm = world->members[rank];
    dtrun_request* one = comm == NULL ? NULL : comm->running;
    while (one != NULL && one->deadline > now()) one = one->next;
    if (one != NULL) {
      char text[TEXT_BYTES];
      const int32_t missing = absent(one);
      snprintf(text, sizeof text, "rank %d did not come in time", missing);
      if (FAULT(RECEIVES_FAIL_ALONE) && is_message(&one->op))
        finish(one, DTRUN_TIMEOUT, missing, text);
      else
        fail(comm, DTRUN_TIMEOUT, missing, text);
    }
  }
}

/* The first deadline of the world. */
static int64_t next_deadline(const struct world* world) {
  int64_t first = INT64_MAX;
  for (int32_t rank = 0; rank < world->size; ++rank) {
    const dtrun_request* one = world->members[rank] == NULL ? NULL : world->members[rank]->running;
    for (; one != NULL && !FAULT(NO_TIMEOUTS); one = one->next) {
      if (one->deadline < first) first = one->deadline;
    }
  }
  return first;
}

#endif
