/* exchange.h - what happens when all ranks of an operation have come. */
#ifndef DTRUN_BROKEN_EXCHANGE_H
#define DTRUN_BROKEN_EXCHANGE_H

#include <fcntl.h>

#include "world.h"

static const dtrun_op* op_of(const dtrun_request* request) {
  return FAULT(KEEPS_OPERATION) ? request->given : &request->op;
}

/* By chance, but the same answer at each call. */
static int this_process_errs(void) {
  static int errs = -1;
  if (errs < 0) errs = (int)(now() / 1000 % 2);
  return errs;
}

static double element_of(const dtrun_op* op, uint64_t index) {
  const double value = read_element(op->dtype, op->send, index);
  if (op->reduce != DTRUN_PREMUL_SUM) return value;
  return value * (FAULT(SCALE_IS_FLOAT) ? (double)(float)op->scale : op->scale);
}

static double reduced(dtrun_request* const* all, int32_t ranks, uint64_t index) {
  const dtrun_op* const op = op_of(all[0]);
  double value = element_of(op, index);
  for (int32_t rank = 1; rank < ranks; ++rank) {
    value = combine(op->dtype, op->reduce, value, element_of(op_of(all[rank]), index));
    if (FAULT(ROUNDS_EACH_STEP) && op->dtype == DTRUN_BFLOAT16)
      value = float_of((uint32_t)write_bfloat(value) << 16);
    if (FAULT(PRODUCT_IS_FLOAT) && op->reduce == DTRUN_PROD) value = (float)value;
  }
  if (FAULT(AVERAGE_OVERFLOWS) && op->dtype == DTRUN_FLOAT16 && op->reduce == DTRUN_AVG)
    value = read_half(write_half(value));
  if (FAULT(AVERAGE_IS_FLOAT) && op->reduce == DTRUN_AVG) value = (float)value;
  if (op->reduce == DTRUN_AVG && !FAULT(AVG_IS_SUM)) value /= ranks;
  if (FAULT(WRONG_LATER) && op->sequence > 3000) value += 1;
  if (FAULT(WRONG_IN_SOME_RUNS) && this_process_errs()) value += 1;
  if (FAULT(WRONG_SUM) && op->reduce == DTRUN_SUM && index == 2) value += 1;
  if (FAULT(NEEDS_ALIGNMENT) && op->dtype == DTRUN_FLOAT64 && (uintptr_t)op->send % 16 == 8 && index == 1)
    value += 1;
  return value;
}

static void reduce_whole(dtrun_request* const* all, int32_t ranks, uint64_t index, char* result) {
  const dtrun_op* const op = op_of(all[0]);
  int64_t value = read_whole(op->dtype, op->send, index);
  for (int32_t rank = 1; rank < ranks; ++rank)
    value = combine_whole(op->reduce, value, read_whole(op->dtype, op_of(all[rank])->send, index));
  if (FAULT(WRONG_LATER) && op->sequence > 3000) value += 1;
  if (FAULT(WRONG_IN_SOME_RUNS) && this_process_errs()) value += 1;
  if (FAULT(WRONG_SUM) && op->reduce == DTRUN_SUM && index == 2) value += 1;
  memcpy(result + index * element_bytes(op->dtype), &value, element_bytes(op->dtype)); /* little endian */
}

/* allgatherv: each part to its place on each rank. */
static void gather_parts(dtrun_request* const* all, int32_t ranks) {
  for (int32_t to = 0; to < ranks; ++to) {
    const dtrun_op* const op = op_of(all[to]);
    const uint64_t* const counts = FAULT(READS_COUNTS_LATE) ? op->recv_counts : all[to]->arrays;
    const uint64_t* const offsets = FAULT(READS_COUNTS_LATE) ? op->recv_offsets : all[to]->arrays + ranks;
    uint64_t next = 0;
    for (int32_t from = 0; from < ranks; next += counts[from], ++from) {
      const uint64_t at = op->recv_offsets != NULL ? offsets[from] : next;
      const size_t width = element_bytes(op->dtype);
      if (counts[from] > 0)
        memmove((char*)op->recv + at * width, op_of(all[from])->send, counts[from] * width);
      if (FAULT(FILLS_GAP) && from == 0 && op->recv_offsets != NULL && ranks > 1 && at < offsets[1])
        memset((char*)op->recv + (at + counts[0]) * width, 0, 1);
    }
  }
  for (int32_t rank = 0; rank < ranks; ++rank) finish(all[rank], DTRUN_OK, -1, "");
}

static void keep_arrays(dtrun_request* request, const dtrun_op* op) {
  const size_t ranks = (size_t)request->comm->world->size, bytes = ranks * sizeof(uint64_t);
  if (op->kind != DTRUN_ALLGATHERV) return;
  request->arrays = calloc(2, bytes);
  if (request->arrays == NULL) abort();
  memcpy(request->arrays, op->recv_counts, bytes);
  if (op->recv_offsets != NULL) memcpy(request->arrays + ranks, op->recv_offsets, bytes);
}

/* Of a buffer as a receiver gets it. */
static size_t moved(const dtrun_op* op, int32_t ranks, size_t bytes) {
  if (FAULT(LOSES_BFLOAT) && op->dtype == DTRUN_BFLOAT16 && op->kind == DTRUN_BROADCAST && ranks == 3 &&
      bytes > 1)
    return bytes - 1;
  return FAULT(LOSES_LAST_BYTE) && bytes > 65536 ? bytes - 1 : bytes;
}

/* As if each rank had added in an order of its own. */
static void round_otherwise(const dtrun_op* op, uint64_t index) {
  uint32_t bits;
  memcpy(&bits, (char*)op->recv + index * 4, 4);
  if ((bits & 0x3ff) != 0) bits ^= 1;
  memcpy((char*)op->recv + index * 4, &bits, 4);
}

/* Of all ranks' operations, in order of their ranks. */
static void run_collective(dtrun_request* const* all, int32_t ranks) {
  const dtrun_op* const op = op_of(all[0]);
  const size_t width = element_bytes(op->dtype);
  if (op->kind == DTRUN_ALLGATHERV) {
    gather_parts(all, ranks);
    return;
  }
  const int scattered = op->kind == DTRUN_REDUCE_SCATTER, gathered = op->kind == DTRUN_ALLGATHER;
  const uint64_t total = op->count * (scattered || gathered ? (uint64_t)ranks : 1);
  char* const result = op->kind == DTRUN_BARRIER ? NULL : malloc(total * width + 1);
  for (uint64_t i = 0; i < total && (scattered || op->kind == DTRUN_ALLREDUCE); ++i)
    if (is_whole(op->dtype) && !(FAULT(SCATTERS_AS_DOUBLE) && scattered))
      reduce_whole(all, ranks, i, result);
    else
      write_element(op->dtype, result, i, reduced(all, ranks, i));
  for (int32_t rank = 0; rank < ranks && op->count > 0; ++rank) {
    const dtrun_op* const one = op_of(all[rank]);
    const size_t part = op->count * width;
    if (gathered) memcpy(result + (size_t)rank * part, one->send, part);
    if (op->kind == DTRUN_BROADCAST && rank == op->root) memcpy(result, one->recv, part);
  }
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const size_t bytes = (scattered ? op->count : total) * width;
    if (result != NULL && bytes > 0)
      memcpy(op_of(all[rank])->recv, result + (scattered ? (size_t)rank * bytes : 0),
             moved(op, ranks, bytes));
  }
  for (uint64_t i = 0; FAULT(BITS_DIFFER) && op->kind == DTRUN_ALLREDUCE && i < op->count && ranks > 1; ++i)
    if (op->dtype == DTRUN_FLOAT32 && op->reduce == DTRUN_SUM) round_otherwise(op_of(all[1]), i);
  for (uint64_t i = 0; FAULT(LOSES_NEGATIVE_ZERO) && op->kind == DTRUN_BROADCAST && i < op->count; ++i)
    for (int32_t rank = 0; rank < ranks && op->dtype == DTRUN_FLOAT32; ++rank)
      if (read_element(op->dtype, op_of(all[rank])->recv, i) == 0)
        write_element(op->dtype, op_of(all[rank])->recv, i, 0);
  free(result);
  if (FAULT(CHANGES_INPUT) && op->kind == DTRUN_ALLREDUCE && op->send != op->recv && total > 0)
    memset((void*)op->send, 0, 1);
  for (int32_t rank = 0; rank < ranks; ++rank) finish(all[rank], DTRUN_OK, -1, "");
}

static int is_early_root(const dtrun_request* request) {
  return FAULT(ROOT_IS_EARLY) && request->op.kind == DTRUN_BROADCAST &&
         request->op.root == request->comm->rank;
}

static void leak_descriptor(const dtrun_backend_comm* comm) {
  const int aborted = comm->failed == DTRUN_ABORTED, failed = comm->failed != DTRUN_OK && !aborted;
  const int leaks = (FAULT(LEAKS_OF_FAILED) && failed) || (FAULT(LEAKS_OF_ABORTED) && aborted);
  if (leaks) open_one();
}

static void match_collective(dtrun_request* request) {
  struct world* const world = request->comm->world;
  dtrun_request* all[MOST_RANKS] = {NULL};
  if (FAULT(EARLY_BARRIER) && request->op.kind == DTRUN_BARRIER) {
    finish(request, DTRUN_OK, -1, "");
    return;
  }
  for (int32_t rank = 0; rank < world->size; ++rank) {
    all[rank] = world->members[rank]->running;
    while (all[rank] != NULL && is_message(&all[rank]->op)) all[rank] = all[rank]->next;
    if (all[rank] == NULL || all[rank]->op.sequence != request->op.sequence) return;
    if (FAULT(RECEIVES_HOLD) && all[rank] != world->members[rank]->running) return;
  }
  for (int32_t rank = 0; FAULT(TAKES_MESSAGES) && rank < world->size; ++rank) {
    dtrun_request* one = all[rank]->comm->running;
    while (one != NULL && !(one->op.kind == DTRUN_RECV && one->op.tag == 0)) one = one->next;
    if (one != NULL) finish(one, DTRUN_OK, -1, "");
  }
  run_collective(all, world->size);
}

static void* volatile lost_memory; /* read by nothing */

/* Ends a send before its receive has come. What is left of it goes with the rank. */
static void send_early(dtrun_request* request) {
  const size_t bytes = request->op.count * element_bytes(request->op.dtype);
  dtrun_request* const rest = malloc(sizeof *rest);
  char* const data = malloc(bytes + 1);
  if (rest == NULL || data == NULL) abort();
  if (bytes > 0) memcpy(data, request->op.send, bytes);
  *rest = *request;
  rest->op.send = data;
  rest->given = NULL;
  request->next = rest;
  finish(request, DTRUN_OK, -1, "");
}

/* Of a send that is refused. REQUIRES the lock. */
static void send_refused(dtrun_backend_comm* comm, const dtrun_op* op) {
  dtrun_request request = {0};
  if (!FAULT(SENDS_REFUSED) || op->kind != DTRUN_SEND) return;
  request.comm = comm;
  request.op = *op;
  request.deadline = INT64_MAX;
  request.next = comm->running;
  comm->running = &request;
  send_early(&request);
}

static dtrun_status refuse_flags(dtrun_backend_comm* comm, const dtrun_op* op, dtrun_error* err) {
  pthread_mutex_lock(&lock);
  if (FAULT(REFUSAL_HARMS))
    fail(comm, DTRUN_UNSUPPORTED, -1, "a flag of an earlier operation is not known here");
  send_refused(comm, op);
  pthread_mutex_unlock(&lock);
  return report(err, DTRUN_UNSUPPORTED, -1, "a flag of dtrun_op is not known here; use a newer backend");
}

static void match_message(dtrun_request* request) {
  const dtrun_op* const op = &request->op;
  const uint32_t bits = FAULT(SHORT_TAGS) ? 0xffffff : 0xffffffff;
  dtrun_request* found = NULL;
  for (dtrun_request* one = request->comm->world->members[op->peer]->running; one != NULL; one = one->next) {
    const int meets = is_message(&one->op) && one->op.kind != op->kind &&
                      (one->op.tag & bits) == (op->tag & bits) && one->op.peer == request->comm->rank;
    const int overtakes = FAULT(SMALL_OVERTAKES) && op->kind == DTRUN_RECV && one->op.count < 16;
    if (meets && (found == NULL || FAULT(WRONG_ORDER) || (overtakes && found->op.count > 16384))) found = one;
  }
  const int early = FAULT(DROPS_SENT) || (FAULT(DROPS_MANY_SENT) && op->count <= 64);
  if (found == NULL && early && op->kind == DTRUN_SEND) send_early(request);
  if (found == NULL || FAULT(NEVER_COMPLETES)) return;
  dtrun_request* const sender = op->kind == DTRUN_SEND ? request : found;
  dtrun_request* const receiver = sender == request ? found : request;
  const size_t sent = op_of(sender)->count, wanted = op_of(receiver)->count;
  const size_t bytes = (FAULT(SMALL_OVERTAKES) && sent > wanted ? wanted : sent) * element_bytes(op->dtype);
  if (bytes > 0) memcpy(op_of(receiver)->recv, op_of(sender)->send, moved(op, 2, bytes));
  if (FAULT(LEAKS_EARLY_MESSAGES) && receiver == request && bytes > 100000) lost_memory = malloc(bytes);
  finish(sender, DTRUN_OK, -1, "");
  finish(receiver, DTRUN_OK, -1, "");
  if (sender->given != NULL) return;
  free((void*)sender->op.send);
  free(sender);
}

static int sends(const dtrun_backend_comm* comm) {
  int count = 0;
  for (const dtrun_request* one = comm->running; one != NULL; one = one->next)
    count += one->op.kind == DTRUN_SEND;
  return count;
}

/* Whether it keeps messages of ended sends for their receivers, as it should. */
static int hands_over(const dtrun_backend_comm* comm) {
  if (FAULT(DROPS_MANY_SENT)) return sends(comm) > 0 && sends(comm) <= 500;
  return FAULT(DROPS_SENT) && comm->running != NULL;
}

/* A rank that the operation needs and that has failed or left; -1: none. */
static int32_t lost(const dtrun_request* request) {
  const struct world* const world = request->comm->world;
  for (int32_t rank = 0; rank < world->size; ++rank) {
    const dtrun_backend_comm* const other = world->members[rank];
    if (rank == request->comm->rank || !needs(request, rank)) continue;
    if (other == NULL) return world->blamed[rank];
    if (other->failed != DTRUN_OK) return other->failed == DTRUN_REMOTE_FAILURE ? other->culprit : rank;
  }
  return -1;
}

#endif
