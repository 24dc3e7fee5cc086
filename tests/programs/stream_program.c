/* A rank that uses the memory of a CUDA device, in C11 and with nothing but dtrun.h.
 *
 *   stream_program [INDEX]    of its device, 0 by default
 *   stream_program route      what would carry the memory, and no more
 *
 * Its device is the fake one; the process reads and writes its memory itself. Prints what carries the
 * memory and the sum of an allreduce; every surprise is one line on stderr, and the exit status is then 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtrun/device.h"

enum { COUNT = 1000, ROUNDS = 5 };

static dtrun_error error;
static int device;

static void must(dtrun_status status, const char* what) {
  if (status == DTRUN_OK) return;
  fprintf(stderr, "%s: %s\n", what, error.message);
  dtrun_finalize();
  exit(1);
}

static float* device_memory(dtrun_comm* world, float value) {
  void* memory = NULL;
  must(dtrun_alloc_on(world, COUNT * sizeof(float), DTRUN_DEVICE_CUDA, device, &memory, &error), "memory");
  float* values = memory;
  for (int i = 0; i < COUNT; ++i) values[i] = value;
  return values;
}

int main(int argc, char** argv) {
  if (argc > 1) device = atoi(argv[1]);
  DTRUN_ERROR_INIT(error);
  must(dtrun_init(&error), "dtrun_init");
  dtrun_comm* world = dtrun_world();
  if (argc > 1 && strcmp(argv[1], "route") == 0) {
    const char* by = dtrun_comm_route(world, DTRUN_DEVICE_CUDA, &error);
    must(error.code, "dtrun_comm_route");
    printf("cuda memory by %s\n", by);
    dtrun_finalize();
    return 0;
  }
  must(dtrun_comm_connect(world, DTRUN_DEVICE_CUDA, device, &error), "dtrun_comm_connect");
  printf("host memory by %s, cuda memory by %s\n", dtrun_comm_route(world, DTRUN_DEVICE_HOST, &error),
         dtrun_comm_route(world, DTRUN_DEVICE_CUDA, &error));

  dtrun_stream stream;
  DTRUN_INIT(stream);
  must(dtrun_stream_create(world, DTRUN_DEVICE_CUDA, device, 1, &stream, &error), "dtrun_stream_create");
  float* send = device_memory(world, 2);
  float* recv = device_memory(world, 0);
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = DTRUN_ALLREDUCE;
  op.dtype = DTRUN_FLOAT32;
  op.reduce = DTRUN_PREMUL_SUM;
  op.scale = 0.5;
  op.root = op.peer = -1;
  op.send = send;
  op.recv = recv;
  op.count = COUNT;
  for (int round = 1; round < ROUNDS; ++round)
    must(dtrun_submit_on(world, &op, &stream, NULL, &error), "an allreduce without a handle");
  dtrun_work* work = NULL;
  must(dtrun_submit_on(world, &op, &stream, &work, &error), "an allreduce");
  must(dtrun_work_wait(work, -1, &error), "its end");
  dtrun_work_release(work);
  must(dtrun_barrier(world, NULL, &error), "a barrier of the host");
  printf("sum %g\n", (double)recv[COUNT - 1]);

  float on_host[COUNT];
  op.recv = on_host;
  if (dtrun_submit_on(world, &op, &stream, NULL, &error) == DTRUN_INVALID_ARGUMENT)
    printf("refused: %s\n", error.message);
  dtrun_stream_destroy(world, &stream);
  dtrun_free(world, send);
  dtrun_free(world, recv);
  dtrun_finalize();
  return 0;
}
