/* A rank of a test job, in C11 and with nothing but dtrun.h.
 *
 * usage: rank_program MODE; the exit status is 0 when everything was as expected, and
 * every surprise is one line on stderr. Works in a world of any size, also alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dtrun/failure.h"

static int failures = 0;
static dtrun_error error;

static void expect(int condition, const char* what) {
  if (condition) return;
  ++failures;
  fprintf(stderr, "rank %d: not so: %s; last error: %s\n", dtrun_rank(), what, error.message);
}

static void reductions(dtrun_comm* world) {
  const int n = dtrun_comm_size(world), rank = dtrun_comm_rank(world);
  float x[3] = {(float)(rank + 1), 2.0f, -(float)rank};
  float y[3] = {0};
  expect(dtrun_allreduce(world, x, y, 3, DTRUN_FLOAT32, DTRUN_SUM, NULL, &error) == DTRUN_OK, "sum runs");
  expect(y[0] == (float)(n * (n + 1)) / 2 && y[1] == (float)(2 * n), "sum is right");
  expect(dtrun_allreduce(world, x, x, 3, DTRUN_FLOAT32, DTRUN_MAX, NULL, &error) == DTRUN_OK, "max in place");
  expect(x[0] == (float)n && x[2] == 0.0f, "max is right");
  double mean = rank;
  expect(dtrun_allreduce(world, &mean, &mean, 1, DTRUN_FLOAT64, DTRUN_AVG, NULL, &error) == DTRUN_OK, "avg");
  expect(mean == (n - 1) / 2.0, "avg is right");
  expect(dtrun_allreduce(world, x, y, 0, DTRUN_FLOAT32, DTRUN_SUM, NULL, &error) == DTRUN_OK, "no elements");
}

static void movements(dtrun_comm* world) {
  const int n = dtrun_comm_size(world), rank = dtrun_comm_rank(world);
  int64_t value = rank == n - 1 ? 42 : 0;
  expect(dtrun_broadcast(world, &value, 1, DTRUN_INT64, n - 1, NULL, &error) == DTRUN_OK, "broadcast runs");
  expect(value == 42, "broadcast is right");

  int64_t* all = calloc((size_t)n, sizeof *all);
  all[rank] = (int64_t)rank * 10;
  expect(dtrun_allgather(world, all + rank, all, 1, DTRUN_INT64, NULL, &error) == DTRUN_OK, "allgather runs");
  for (int r = 0; r < n; ++r) expect(all[r] == (int64_t)r * 10, "allgather is right");
  int64_t part = -1;
  expect(dtrun_reduce_scatter(world, all, &part, 1, DTRUN_INT64, DTRUN_SUM, NULL, &error) == DTRUN_OK,
         "reduce_scatter runs");
  expect(part == (int64_t)n * rank * 10, "reduce_scatter is right");
  free(all);
  expect(dtrun_barrier(world, NULL, &error) == DTRUN_OK, "barrier runs");
}

/* Every rank gives part r to rank r; the parts are uneven and lie apart. */
static void parts(dtrun_comm* world) {
  const int n = dtrun_comm_size(world), rank = dtrun_comm_rank(world);
  int32_t *send = calloc((size_t)n * (size_t)n, sizeof *send),
          *recv = calloc((size_t)n * (size_t)n, sizeof *recv);
  uint64_t *counts = calloc((size_t)n, sizeof *counts), *offsets = calloc((size_t)n, sizeof *offsets);
  uint64_t* mine = calloc((size_t)n, sizeof *mine);

  for (int r = 0; r < n; ++r) send[r] = 100 * rank + r;
  expect(dtrun_alltoall(world, send, recv, 1, DTRUN_INT32, NULL, &error) == DTRUN_OK, "alltoall runs");
  for (int r = 0; r < n; ++r) expect(recv[r] == 100 * r + rank, "alltoall is right");

  /* Rank r has r elements: rank 0 has none. */
  for (int r = 0; r < n; ++r) counts[r] = (uint64_t)r, offsets[r] = (uint64_t)n * (uint64_t)r;
  for (int i = 0; i < rank; ++i) send[i] = 100 * rank + i;
  expect(dtrun_allgatherv(world, send, recv, counts, offsets, DTRUN_INT32, NULL, &error) == DTRUN_OK,
         "allgatherv runs");
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < r; ++i) expect(recv[n * r + i] == 100 * r + i, "allgatherv is right");
  }
  memset(recv, 0, (size_t)n * (size_t)n * sizeof *recv);
  expect(dtrun_gatherv(world, send, (uint64_t)rank, recv, counts, offsets, DTRUN_INT32, n - 1, NULL,
                       &error) == DTRUN_OK,
         "gatherv runs");
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < r; ++i) {
      expect(recv[n * r + i] == (rank == n - 1 ? 100 * r + i : 0), "gatherv is right");
    }
  }
  for (int i = 0; i < n * n; ++i) send[i] = i;
  expect(dtrun_scatterv(world, send, counts, offsets, recv, (uint64_t)rank, DTRUN_INT32, 0, NULL, &error) ==
             DTRUN_OK,
         "scatterv runs");
  for (int i = 0; i < rank; ++i) expect(recv[i] == n * rank + i, "scatterv is right");
  expect(dtrun_reduce_scatterv(world, send, recv, counts, DTRUN_INT32, DTRUN_SUM, NULL, &error) == DTRUN_OK,
         "reduce_scatterv runs");
  for (int i = 0; i < rank; ++i)
    expect(recv[i] == n * (rank * (rank - 1) / 2 + i), "reduce_scatterv is right");

  /* Sends `rank` elements to rank r, and receives r elements from it. */
  for (int r = 0; r < n; ++r) mine[r] = (uint64_t)rank;
  for (int i = 0; i < n * rank; ++i) send[i] = 1000 * rank + i / rank;
  expect(
      dtrun_alltoallv(world, send, mine, NULL, recv, counts, offsets, DTRUN_INT32, NULL, &error) == DTRUN_OK,
      "alltoallv runs");
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < r; ++i) expect(recv[n * r + i] == 1000 * r + rank, "alltoallv is right");
  }
  free(send), free(recv), free(counts), free(offsets), free(mine);
}

static void roots(dtrun_comm* world) {
  const int n = dtrun_comm_size(world), rank = dtrun_comm_rank(world), root = n / 2;
  int16_t one = (int16_t)(rank + 1), product = -1, wanted = 1;
  for (int r = 0; r < n; ++r) wanted = (int16_t)(wanted * (r + 1));
  expect(dtrun_reduce(world, &one, &product, 1, DTRUN_INT16, DTRUN_PROD, root, NULL, &error) == DTRUN_OK,
         "reduce runs");
  expect(product == (rank == root ? wanted : -1), "reduce is right, on the root only");
  uint8_t* all = calloc((size_t)n, 1);
  uint8_t mine = (uint8_t)(rank * 2);
  expect(
      dtrun_gather(world, &mine, rank == root ? all : NULL, 1, DTRUN_UINT8, root, NULL, &error) == DTRUN_OK,
      "gather runs");
  for (int r = 0; r < n; ++r) expect(all[r] == (rank == root ? r * 2 : 0), "gather is right");
  mine = 0;
  expect(
      dtrun_scatter(world, rank == root ? all : NULL, &mine, 1, DTRUN_UINT8, root, NULL, &error) == DTRUN_OK,
      "scatter runs");
  expect(mine == rank * 2, "scatter is right");
  free(all);

  double x[2] = {2, 4};
  expect(dtrun_allreduce_premul(world, x, x, 2, DTRUN_FLOAT64, 0.5 * rank, NULL, &error) == DTRUN_OK,
         "premul");
  expect(x[0] == n * (n - 1) / 2.0 && x[1] == n * (n - 1), "premul is right");
  uint32_t bits = 1u << rank;
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = DTRUN_ALLREDUCE;
  op.dtype = DTRUN_UINT32;
  op.reduce = DTRUN_BXOR;
  op.send = op.recv = &bits;
  op.count = 1;
  expect(dtrun_submit(world, &op, NULL, &error) == DTRUN_OK, "submit runs");
  expect(bits == (1u << n) - 1, "bxor is right");
  op.reduce = DTRUN_AVG;
  expect(dtrun_submit(world, &op, NULL, &error) == DTRUN_UNSUPPORTED, "no average of integers");
  expect(strstr(error.message, "use sum and divide") != NULL, "and is told what to do");
}

/* Each rank exchanges with both neighbours at once; rank 0 receives from all in any order. */
static void groups(dtrun_comm* world) {
  const int n = dtrun_comm_size(world), rank = dtrun_comm_rank(world);
  if (n == 1) return;
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  int64_t up = -1, down = -1, sum = 1, out = rank;
  for (int round = 0; round < 2; ++round) {
    dtrun_work* work = NULL;
    expect(dtrun_group_begin(world, &error) == DTRUN_OK, "a group begins");
    expect(dtrun_recv(world, &up, 1, DTRUN_INT64, before, 1, NULL, &error) == DTRUN_OK, "recv joins");
    expect(dtrun_recv(world, &down, 1, DTRUN_INT64, next, 2, NULL, &error) == DTRUN_OK, "recv joins");
    expect(dtrun_send(world, &out, 1, DTRUN_INT64, next, 1, NULL, &error) == DTRUN_OK, "send joins");
    expect(dtrun_send(world, &out, 1, DTRUN_INT64, before, 2, NULL, &error) == DTRUN_OK, "send joins");
    expect(dtrun_allreduce(world, &sum, &sum, 1, DTRUN_INT64, DTRUN_SUM, NULL, &error) == DTRUN_OK,
           "so does sum");
    expect(dtrun_group_end(world, round == 0 ? &work : NULL, &error) == DTRUN_OK, "the group starts");
    if (round == 0) expect(dtrun_work_wait(work, -1, &error) == DTRUN_OK, "the group ends");
    dtrun_work_release(work);
    expect(up == before && down == next, "the messages are right");
  }
  expect(sum == (int64_t)n * n, "so is the sum");
  expect(dtrun_group_end(world, NULL, &error) == DTRUN_FAILED_PRECONDITION, "no group is open");

  if (rank > 0) {
    expect(dtrun_send(world, &out, 1, DTRUN_INT64, 0, 9, NULL, &error) == DTRUN_OK, "send to rank 0");
    return;
  }
  int64_t heard = 0;
  for (int r = 1; r < n; ++r) {
    int32_t source = -1;
    expect(dtrun_recv_any(world, &up, 1, DTRUN_INT64, 9, &source, NULL, &error) == DTRUN_OK, "recv from any");
    expect(source == up, "the source is right");
    heard += up;
  }
  expect(heard == n * (n - 1) / 2, "each is heard once");
}

static void subsets(dtrun_comm* world) {
  const int n = dtrun_comm_size(world), rank = dtrun_comm_rank(world);
  dtrun_comm *half = NULL, *pair = NULL;
  /* Backwards, so that the last of each color is its rank 0; the last rank does not take part. */
  const int color = rank == n - 1 && n > 1 ? -1 : rank % 2;
  expect(dtrun_comm_split(world, color, -rank, &half, &error) == DTRUN_OK, "split runs");
  expect((half == NULL) == (color < 0), "a negative color gets none");
  if (half != NULL) {
    const int size = (n - (n > 1) - color + 1) / 2;
    expect(dtrun_comm_size(half) == size, "the size is right");
    expect(dtrun_comm_rank(half) == size - 1 - rank / 2, "the order is right");
    expect(strcmp(dtrun_comm_name(half), color == 0 ? "world.1:0" : "world.1:1") == 0, "the name is right");
    int32_t sum = rank;
    expect(dtrun_allreduce(half, &sum, &sum, 1, DTRUN_INT32, DTRUN_SUM, NULL, &error) == DTRUN_OK, "it adds");
    expect(sum == size * (size - 1) + color * size, "only its own");
    dtrun_comm_free(half);
  }
  const int32_t ranks[2] = {n - 1, 0};
  if (n > 1 && (rank == 0 || rank == n - 1)) {
    expect(dtrun_comm_subset(world, ranks, 2, &pair, &error) == DTRUN_OK, "subset runs");
    expect(dtrun_comm_rank(pair) == (rank == 0), "the order is the list's");
    int32_t value = rank;
    expect(dtrun_broadcast(pair, &value, 1, DTRUN_INT32, 0, NULL, &error) == DTRUN_OK, "it broadcasts");
    expect(value == n - 1, "from its own rank 0");
    void* memory = NULL;
    expect(dtrun_alloc(pair, 100, &memory, &error) == DTRUN_OK && (uintptr_t)memory % 64 == 0,
           "it gives memory");
    dtrun_free(pair, memory);
  }
  expect(dtrun_barrier(world, NULL, &error) == DTRUN_OK, "the world goes on");
  /* `pair` is left to dtrun_finalize. */
}

static void messages(dtrun_comm* world) {
  const int n = dtrun_comm_size(world), rank = dtrun_comm_rank(world);
  if (n == 1) return;
  const int next = (rank + 1) % n, before = (rank + n - 1) % n;
  int64_t in = -1, out = rank;
  dtrun_work* work = NULL;
  expect(dtrun_recv(world, &in, 1, DTRUN_INT64, before, 7, &work, &error) == DTRUN_OK, "recv starts");
  expect(dtrun_send(world, &out, 1, DTRUN_INT64, next, 7, NULL, &error) == DTRUN_OK, "send runs");
  expect(dtrun_work_wait(work, -1, &error) == DTRUN_OK, "recv ends");
  int32_t done = 0;
  expect(dtrun_work_test(work, &done, &error) == DTRUN_OK && done == 1, "a finished recv tests as done");
  dtrun_work_release(work);
  expect(in == before, "the message is right");
  expect(dtrun_send(world, &out, 1, DTRUN_INT64, rank, 7, NULL, &error) == DTRUN_INVALID_ARGUMENT,
         "no message to oneself");
}

static void everything(void) {
  dtrun_comm* world = dtrun_world();
  expect(dtrun_is_initialized() == 1, "initialized");
  expect(dtrun_comm_rank(world) == dtrun_rank() && dtrun_comm_size(world) == dtrun_world_size(), "one world");
  reductions(world);
  movements(world);
  roots(world);
  parts(world);
  messages(world);
  groups(world);
  subsets(world);
}

/* The last rank does not join the split. */
static void missing_split(void) {
  dtrun_comm* made = NULL;
  if (dtrun_rank() == dtrun_world_size() - 1) return;
  expect(dtrun_comm_split(dtrun_world(), 0, 0, &made, &error) == DTRUN_TIMEOUT, "the split times out");
  expect(error.peer == dtrun_world_size() - 1, "the error names the rank that is missing");
  expect(strcmp(dtrun_error_id(&error), "comm.absent") == 0, "and its id says that a call is missing");
  int32_t absent = -1;
  expect(dtrun_error_ranks(&error, &absent, 1) == 1 && absent == error.peer, "of that rank alone");
  expect(made == NULL, "nothing is handed out");
}

/* The last rank does not enter the barrier. */
static void missing_rank(void) {
  dtrun_comm* world = dtrun_world();
  if (dtrun_rank() == dtrun_world_size() - 1) return;
  expect(dtrun_barrier(world, NULL, &error) == DTRUN_TIMEOUT, "the barrier times out");
  expect(error.peer == dtrun_world_size() - 1, "the error names the rank that is missing");
  expect(strstr(error.message, "barrier #1 on 'world': ") == error.message, "the error names the call");
  dtrun_error again;
  DTRUN_ERROR_INIT(again);
  expect(dtrun_barrier(world, NULL, &again) == DTRUN_TIMEOUT, "later calls fail too");
  expect(strcmp(again.message, error.message) == 0, "with the first cause");
}

/* Rank 0 starts an operation that no rank answers, and gives up. */
static void aborted(void) {
  dtrun_comm* world = dtrun_world();
  if (dtrun_rank() != 0) return;
  float x = 1;
  dtrun_work* work = NULL;
  expect(dtrun_allreduce(world, &x, &x, 1, DTRUN_FLOAT32, DTRUN_SUM, &work, &error) == DTRUN_OK, "it starts");
  expect(dtrun_work_wait(work, 1000000, &error) == DTRUN_PENDING, "it is still running");
  expect(dtrun_comm_abort(world, "the test says so", &error) == DTRUN_OK, "abort");
  expect(dtrun_comm_abort(world, "twice", &error) == DTRUN_OK, "abort again");
  expect(dtrun_work_wait(work, -1, &error) == DTRUN_ABORTED, "the pending call is aborted");
  expect(strstr(error.message, "the test says so") != NULL, "with the first reason");
  dtrun_work_release(work);
  expect(dtrun_barrier(world, NULL, &error) == DTRUN_ABORTED, "later calls are aborted");
}

/* A forked child may not communicate; its parent still may. */
static void forked(void) {
  const pid_t child = fork();
  if (child == 0) {
    float x = 1;
    expect(dtrun_is_initialized() == 0, "a forked child is not initialized");
    expect(dtrun_allreduce(dtrun_world(), &x, &x, 1, DTRUN_FLOAT32, DTRUN_SUM, NULL, &error) ==
               DTRUN_FAILED_PRECONDITION,
           "a forked child cannot communicate");
    expect(strcmp(dtrun_error_id(&error), "failed_precondition") == 0, "as its id says");
    expect(strstr(error.message, "spawn") != NULL, "and is told what to do");
    expect(dtrun_init(&error) == DTRUN_FAILED_PRECONDITION, "nor join again");
    dtrun_comm* made = NULL;
    void* memory = NULL;
    expect(dtrun_comm_split(dtrun_world(), 0, 0, &made, &error) == DTRUN_FAILED_PRECONDITION, "nor split");
    expect(dtrun_group_begin(dtrun_world(), &error) == DTRUN_FAILED_PRECONDITION, "nor open a group");
    expect(dtrun_alloc(dtrun_world(), 8, &memory, &error) == DTRUN_FAILED_PRECONDITION, "nor have memory");
    expect(dtrun_comm_abort(dtrun_world(), "", &error) == DTRUN_FAILED_PRECONDITION, "nor abort");
    dtrun_extension found;
    DTRUN_INIT(found);
    expect(dtrun_comm_extension(dtrun_world(), "a.b/1", &found, &error) == DTRUN_FAILED_PRECONDITION,
           "nor ask");
    dtrun_free(dtrun_world(), memory);
    dtrun_comm_free(dtrun_world());
    dtrun_finalize();
    _exit(failures);
  }
  int status = -1;
  expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child saw that");
  expect(dtrun_barrier(dtrun_world(), NULL, &error) == DTRUN_OK, "the parent still communicates");
}

/* A handle outlives its session. */
static void abandoned(void) {
  dtrun_work* work = NULL;
  expect(dtrun_barrier(dtrun_world(), &work, &error) == DTRUN_OK, "it starts");
  dtrun_finalize();
  expect(dtrun_work_wait(work, -1, &error) == DTRUN_FAILED_PRECONDITION, "it cannot be waited for any more");
  dtrun_work_release(work);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "everything";
  DTRUN_ERROR_INIT(error);
  if (dtrun_init(&error) != DTRUN_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 3;
  }
  dtrun_comm* const world = dtrun_world();
  if (strcmp(mode, "everything") == 0) everything();
  if (strcmp(mode, "missing_rank") == 0) missing_rank();
  if (strcmp(mode, "missing_split") == 0) missing_split();
  if (strcmp(mode, "aborted") == 0) aborted();
  if (strcmp(mode, "forked") == 0) forked();
  if (strcmp(mode, "abandoned") == 0) abandoned();
  dtrun_finalize();
  expect(dtrun_is_initialized() == 0, "finalized");
  expect(dtrun_barrier(world, NULL, &error) == DTRUN_FAILED_PRECONDITION, "the world has ended");
  expect(strstr(error.message, "ended before") != NULL && dtrun_comm_size(world) == -1,
         "and is no communicator");
  return failures == 0 ? 0 : 1;
}
