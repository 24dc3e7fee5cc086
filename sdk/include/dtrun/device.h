/* device.h - a draft: what a rank's program calls for operations on memory of a device.
 *
 * Not frozen by ABI 1.0: it changes with DTRUN_DEVICE_DRAFT (dtrun/abi/device.h), and so do the symbol versions of these
 * functions, so a program of another draft does not start. Everything else is as in dtrun.h; docs/devices.md
 * explains. Threads: as the communicator that is called.
 */
#ifndef DTRUN_DEVICE_H
#define DTRUN_DEVICE_H

#include "dtrun/abi/device.h"
#include "dtrun/dtrun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The operation that `op` describes, on buffers of the stream's device. It starts after the work that is
 * queued on `stream`, and the call does not wait for it. With work == NULL later work on `stream` starts
 * after it; otherwise dtrun_work_wait_on orders a stream after it, and until then its buffers belong to it.
 * Where the route has no streams of its own (staging, ucx, mpi), a call with work == NULL, and
 * dtrun_work_wait_on, block until the data has come. A NULL stream is dtrun_submit. The first operation on a
 * device connects the ranks and blocks; it must not be a send or a recv unless dtrun_comm_connect came
 * before. */
DTRUN_API dtrun_status dtrun_submit_on(dtrun_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                                       dtrun_work** work, dtrun_error* err);
/* Later work on `stream` starts after the operation, or all of a group. Does not wait for it, but for what is
 * said above, and says nothing about its success: dtrun_work_test, dtrun_work_wait and later calls on the
 * communicator do. For operations on memory of the stream's kind of device. */
DTRUN_API dtrun_status dtrun_work_wait_on(dtrun_work* work, const dtrun_stream* stream, dtrun_error* err);
/* A call of all ranks, in one order with their others: operations on this kind of device use `device_index`
 * of this process. Connects the ranks, which the first such operation does otherwise, with its stream's
 * device. Once it is connected, another device is DTRUN_INVALID_ARGUMENT. */
DTRUN_API dtrun_status dtrun_comm_connect(dtrun_comm* comm, int32_t device_kind, int32_t device_index,
                                          dtrun_error* err);
/* What carries the operations on that kind of device: "nccl", "staging over shm+gloo", ...; "" when nothing
 * does, and `err` says why. Connects nothing. Valid until `comm` is freed. */
DTRUN_API const char* dtrun_comm_route(dtrun_comm* comm, int32_t device_kind, dtrun_error* err);
/* 1 where ordering a stream after an operation on that kind of device blocks until the data has come, as with
 * staging, ucx and mpi; else 0. Connects nothing. */
DTRUN_API int32_t dtrun_comm_orders_on_host(dtrun_comm* comm, int32_t device_kind);
/* Memory of a device that `comm` is connected to: not zeroed, and freed with dtrun_free. Where the transport
 * has none of its own, the device's library's. */
DTRUN_API dtrun_status dtrun_alloc_on(dtrun_comm* comm, uint64_t bytes, int32_t device_kind,
                                      int32_t device_index, void** out, dtrun_error* err);
/* A stream of the device, for those who have no library of it at hand. priority: 0, or 1 for one with work that
 * goes before that of others. Ends with `comm` at the latest. */
DTRUN_API dtrun_status dtrun_stream_create(dtrun_comm* comm, int32_t device_kind, int32_t device_index,
                                           int32_t priority, dtrun_stream* out, dtrun_error* err);
/* When its work has ended. */
DTRUN_API void dtrun_stream_destroy(dtrun_comm* comm, const dtrun_stream* stream);

#ifdef __cplusplus
}
#endif

#endif
