/* What device_program shares: a device of this process, and the steps that all of its parts take.
 *
 * Copies go by a CUDA runtime that is opened when the program runs, streams and memory come from dtrun, so
 * the program is compiled where there is no CUDA and runs over libraries that stand in for it. A call that
 * fails ends the process with its text. One thread.
 */
#ifndef DTRUN_TESTS_DEVICE_H
#define DTRUN_TESTS_DEVICE_H

#include <stddef.h>

#include "dtrun/device.h"

typedef struct {
  int rank, size, index;
  int largest_mib; /* that is measured */
  dtrun_comm* world;
  dtrun_stream stream; /* of the device, from dtrun */
} Device;

/* Joins the job and makes the stream; connects the ranks. */
Device open_device(int index);
void close_device(Device* device);

/* Function of the runtime; NULL when it has none. */
void* runtime_function(const char* name);
/* The same into a variable that holds a pointer to a function; without one the process ends. */
void find(const char* name, void* out);
void* device_memory(const Device* device, size_t bytes);
/* Queued on `stream`; the host's memory is not touched until synchronize. */
void copy_on(const dtrun_stream* stream, void* to, const void* from, size_t bytes);
void synchronize(const dtrun_stream* stream);

dtrun_stream new_stream(const Device* device, int priority);
dtrun_op operation(int kind, int dtype, uint64_t count);
dtrun_op sum_of_floats(const void* send, void* recv, uint64_t count);
/* Submits on the device's stream, without a handle. */
void submit(const Device* device, const dtrun_op* op);

/* What `delay` delays a stream by: "kernels" or "functions of the host"; NULL where there is nothing. */
const char* prepare_delays(void);
enum { kDelayMs = 40 };
void delay(const dtrun_stream* stream);

double seconds_now(void);
/* A barrier of the hosts, which waits for no device. */
void barrier_of_host(const Device* device);
/* 1 + 2 + ... of all ranks, and a failure unless all elements are `want`. */
float total_of_ranks(const Device* device);
void expect_all(const float* got, size_t count, float want, const char* what);

/* Ends the process: "device_program: rank 1: WHAT: TEXT". */
void fail(const char* what, const char* text);
void must(dtrun_status status, const dtrun_error* error, const char* what);
/* Prints a line of this rank's. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* ---- what the program can be asked for; each returns its exit code */
int all_operations(Device* device);
int large(Device* device);
int order(Device* device);
int beside(Device* device);
int rate(Device* device);
int streams(Device* device);
int refusals(Device* device);
int capture(Device* device);
int abort_one(Device* device);
int deadline(Device* device);
int mismatch(Device* device);
int hang(Device* device);

#endif
