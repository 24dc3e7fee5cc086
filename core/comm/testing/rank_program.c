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

#include "dtrun/dtrun.h"

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
  expect(y[0] == (float)(n * (n + 1) / 2) && y[1] == (float)(2 * n), "sum is right");
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
  all[rank] = rank * 10;
  expect(dtrun_allgather(world, all + rank, all, 1, DTRUN_INT64, NULL, &error) == DTRUN_OK, "allgather runs");
  for (int r = 0; r < n; ++r) expect(all[r] == r * 10, "allgather is right");
  int64_t part = -1;
  expect(dtrun_reduce_scatter(world, all, &part, 1, DTRUN_INT64, DTRUN_SUM, NULL, &error) == DTRUN_OK,
         "reduce_scatter runs");
  expect(part == (int64_t)n * rank * 10, "reduce_scatter is right");
  free(all);
  expect(dtrun_barrier(world, NULL, &error) == DTRUN_OK, "barrier runs");
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
  messages(world);
}

/* The last rank does not come to the barrier. */
static void missing_rank(void) {
  dtrun_comm* world = dtrun_world();
  if (dtrun_rank() == dtrun_world_size() - 1) return;
  expect(dtrun_barrier(world, NULL, &error) == DTRUN_TIMEOUT, "the barrier times out");
  expect(error.peer == dtrun_world_size() - 1, "the error names the rank that is missing");
  expect(strstr(error.message, "barrier #1 on 'world': ") == error.message, "the error names the call");
  dtrun_error again;
  DTRUN_INIT(again);
  expect(dtrun_barrier(world, NULL, &again) == DTRUN_TIMEOUT, "later calls fail too");
  expect(strcmp(again.message, error.message) == 0, "with the first cause");
}

/* Rank 0 starts what nobody answers, and gives up. */
static void aborted(void) {
  dtrun_comm* world = dtrun_world();
  if (dtrun_rank() != 0) return;
  float x = 1;
  dtrun_work* work = NULL;
  expect(dtrun_allreduce(world, &x, &x, 1, DTRUN_FLOAT32, DTRUN_SUM, &work, &error) == DTRUN_OK, "it starts");
  expect(dtrun_work_wait(work, 1000000, &error) == DTRUN_TIMEOUT, "it is still running");
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
    expect(strstr(error.message, "spawn") != NULL, "and is told what to do");
    expect(dtrun_init(&error) == DTRUN_FAILED_PRECONDITION, "nor join again");
    dtrun_finalize();
    _exit(failures);
  }
  int status = -1;
  expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child saw that");
  expect(dtrun_barrier(dtrun_world(), NULL, &error) == DTRUN_OK, "the parent still communicates");
}

/* A handle outlives the session that it came from. */
static void abandoned(void) {
  dtrun_work* work = NULL;
  expect(dtrun_barrier(dtrun_world(), &work, &error) == DTRUN_OK, "it starts");
  dtrun_finalize();
  expect(dtrun_work_wait(work, -1, &error) == DTRUN_FAILED_PRECONDITION, "it cannot be waited for any more");
  dtrun_work_release(work);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "everything";
  DTRUN_INIT(error);
  if (dtrun_init(&error) != DTRUN_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 3;
  }
  if (strcmp(mode, "everything") == 0) everything();
  if (strcmp(mode, "missing_rank") == 0) missing_rank();
  if (strcmp(mode, "aborted") == 0) aborted();
  if (strcmp(mode, "forked") == 0) forked();
  if (strcmp(mode, "abandoned") == 0) abandoned();
  dtrun_finalize();
  expect(dtrun_is_initialized() == 0, "finalized");
  return failures == 0 ? 0 : 1;
}
