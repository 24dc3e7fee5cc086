/* dtrun.h - what a rank's program calls: the world communicator and its operations.
 *
 * Link with libdtrun, or open it from any language: nothing here is C++ or torch.
 * `dtrun` starts the program and sets its environment; dtrun_init reads it, loads the
 * backend that the config names and meets the other ranks. A program that dtrun did
 * not start is a world of one rank, so the same binary runs alone.
 *
 * Buffers are host memory, `count` is in elements, and all ranks make the same calls on
 * a communicator in the same order. Every function that can fail returns a dtrun_status
 * and fills `err` (which may be NULL). After any failure of an operation, other than
 * DTRUN_INVALID_ARGUMENT and DTRUN_UNSUPPORTED, which start nothing, the communicator
 * stays failed: later calls return the first cause again, also after an abort.
 *
 * Operations take a dtrun_work**. NULL: the call blocks until the result is there.
 * Otherwise it returns at once; the buffers belong to the operation until wait or test
 * report its end.
 *
 * Threads: dtrun_init and dtrun_finalize from one thread. Everything else from any
 * thread; operations started by several threads at once have no defined order.
 */
#ifndef DTRUN_DTRUN_H
#define DTRUN_DTRUN_H

#include "dtrun/abi/error.h"
#include "dtrun/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DTRUN_API __attribute__((visibility("default")))

typedef struct dtrun_comm dtrun_comm;
typedef struct dtrun_work dtrun_work;

/* "0.1.0". */
DTRUN_API const char* dtrun_version(void);
/* "invalid argument", "timeout", ...; never NULL. */
DTRUN_API const char* dtrun_status_text(dtrun_status status);
/* Bytes of one element; 0 for an unknown type. */
DTRUN_API uint64_t dtrun_dtype_size(int32_t dtype);

/* Joins the job; blocks until every rank has, at most the config's backend.timeout.
 * Counted: each success needs one dtrun_finalize. */
DTRUN_API dtrun_status dtrun_init(dtrun_error* err);
/* Leaves the job. The last one invalidates every communicator and work handle. */
DTRUN_API void dtrun_finalize(void);
DTRUN_API int32_t dtrun_is_initialized(void);

/* This rank's place. Valid between init and finalize; -1 before. */
DTRUN_API int32_t dtrun_rank(void);
DTRUN_API int32_t dtrun_world_size(void);
DTRUN_API int32_t dtrun_local_rank(void);
DTRUN_API int32_t dtrun_local_world_size(void);

/* All ranks. NULL before init. Owned by the runtime. */
DTRUN_API dtrun_comm* dtrun_world(void);
DTRUN_API int32_t dtrun_comm_rank(const dtrun_comm* comm);
DTRUN_API int32_t dtrun_comm_size(const dtrun_comm* comm);
/* Name of the backend that carries it, such as "gloo"; "self" in a world of one that
 * dtrun did not start. */
DTRUN_API const char* dtrun_comm_backend(const dtrun_comm* comm);
/* From any thread, any time: every pending and later call on it returns DTRUN_ABORTED,
 * or the first cause when it had failed before.
 * Idempotent. DTRUN_UNSUPPORTED when the backend cannot. */
DTRUN_API dtrun_status dtrun_comm_abort(dtrun_comm* comm, const char* reason, dtrun_error* err);

/* recv[i] on every rank = reduction of send[i] over all ranks. send == recv is allowed. */
DTRUN_API dtrun_status dtrun_allreduce(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                       int32_t dtype, int32_t reduce, dtrun_work** work, dtrun_error* err);
/* buffer on every rank = buffer of `root`. */
DTRUN_API dtrun_status dtrun_broadcast(dtrun_comm* comm, void* buffer, uint64_t count, int32_t dtype,
                                       int32_t root, dtrun_work** work, dtrun_error* err);
/* recv[r * count ..] on every rank = send of rank r. In place: send == recv + rank * count. */
DTRUN_API dtrun_status dtrun_allgather(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                       int32_t dtype, dtrun_work** work, dtrun_error* err);
/* recv of rank r = reduction of send[r * count ..] over all ranks; `count` elements each.
 * In place: recv == send + rank * count. */
DTRUN_API dtrun_status dtrun_reduce_scatter(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                            int32_t dtype, int32_t reduce, dtrun_work** work,
                                            dtrun_error* err);
DTRUN_API dtrun_status dtrun_barrier(dtrun_comm* comm, dtrun_work** work, dtrun_error* err);
/* Pairs of send and recv match by peer and tag, in order. To oneself is an error. */
DTRUN_API dtrun_status dtrun_send(dtrun_comm* comm, const void* send, uint64_t count, int32_t dtype,
                                  int32_t peer, uint32_t tag, dtrun_work** work, dtrun_error* err);
DTRUN_API dtrun_status dtrun_recv(dtrun_comm* comm, void* recv, uint64_t count, int32_t dtype, int32_t peer,
                                  uint32_t tag, dtrun_work** work, dtrun_error* err);

/* *done is 0 or 1, without blocking. A failed operation is done and returns its failure. */
DTRUN_API dtrun_status dtrun_work_test(dtrun_work* work, int32_t* done, dtrun_error* err);
/* Blocks until done, at most timeout_ns (-1: only the operation's own timeout). After
 * DTRUN_TIMEOUT with the operation still running, the handle is still live. */
DTRUN_API dtrun_status dtrun_work_wait(dtrun_work* work, int64_t timeout_ns, dtrun_error* err);
/* Drops the handle; waits first when the operation still runs. NULL is allowed. */
DTRUN_API void dtrun_work_release(dtrun_work* work);

#ifdef __cplusplus
}
#endif

#endif
