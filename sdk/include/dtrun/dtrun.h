/* dtrun.h - what a rank's program calls: communicators and their operations.
 *
 * Link with libdtrun, or open it from any language: nothing here is C++ or torch.
 * `dtrun` starts the program and sets its environment; dtrun_init reads it, loads the
 * backend that the config names and joins the other ranks. A program that dtrun did
 * not start is a world of one rank, so the same binary runs alone.
 *
 * Buffers are host memory; dtrun/device.h, a draft, has the calls that take a device's. Counts and offsets are in
 * elements, and all ranks make the same calls on a communicator in the same order. Every function that can
 * fail returns a dtrun_status and fills `err` (which may be NULL). After any failure of an operation, other
 * than DTRUN_INVALID_ARGUMENT and DTRUN_UNSUPPORTED, which start nothing, the communicator stays failed:
 * later calls return the first cause again, also after an abort. What is frozen: docs/abi.md.
 *
 * Operations take a dtrun_work**. NULL: the call blocks until the result is there.
 * Otherwise it returns at once; the buffers belong to the operation until wait or test
 * report its end. Arrays of counts and offsets are read during the call only. An operation
 * that does not end within the config's backend.timeout fails with DTRUN_TIMEOUT.
 *
 * Threads: dtrun_init and dtrun_finalize from one thread, with no other call under way.
 * Communicators are made and freed by one thread at a time. Everything else from any
 * thread; operations started by several threads at once have no defined order. In a child
 * forked after dtrun_init every function that can fail says so, and the others do nothing.
 */
#ifndef DTRUN_DTRUN_H
#define DTRUN_DTRUN_H

#include "dtrun/abi/error.h"
#include "dtrun/abi/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DTRUN_API __attribute__((visibility("default")))

typedef struct dtrun_comm dtrun_comm;
typedef struct dtrun_work dtrun_work;
typedef struct dtrun_backend_comm dtrun_backend_comm; /* a backend's */

/* MAJOR.MINOR.PATCH. */
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

/* This rank's numbers. Valid between init and finalize; -1 before. */
DTRUN_API int32_t dtrun_rank(void);
DTRUN_API int32_t dtrun_world_size(void);
DTRUN_API int32_t dtrun_local_rank(void);
DTRUN_API int32_t dtrun_local_world_size(void);

/* ---- numbers to watch ------------------------------------------------------------ */

/* The newest value of `name`, such as "loss", for `metrics.jsonl` in the run folder and `metrics.listen`. `step`:
 * of the training; negative: none. A name has the characters a-z A-Z 0-9 _ : (no digit first), at most 128, and does
 * not begin with "dtrun_"; a process has at most 256 names. Costs well under a microsecond: what is newest is sent
 * once a second by a thread of libdtrun, and when the process exits. Needs no dtrun_init. No effect, and DTRUN_OK,
 * in a program that dtrun did not start and in a forked child. Any thread. */
DTRUN_API dtrun_status dtrun_metric(const char* name, double value, int64_t step, dtrun_error* err);

/* ---- communicators --------------------------------------------------------------- */

/* All ranks. NULL before init. Owned by the runtime. */
DTRUN_API dtrun_comm* dtrun_world(void);
/* This rank's number in `comm`, from 0; -1 for NULL. Everywhere below, ranks are those of
 * the communicator that is called. */
DTRUN_API int32_t dtrun_comm_rank(const dtrun_comm* comm);
DTRUN_API int32_t dtrun_comm_size(const dtrun_comm* comm);
/* "world", "world.1:0", ...: the same on every member, and never used twice in a job. */
DTRUN_API const char* dtrun_comm_name(const dtrun_comm* comm);
/* Name of the backend that carries it, such as "gloo"; "self" in a world of one that
 * dtrun did not start. */
DTRUN_API const char* dtrun_comm_backend(const dtrun_comm* comm);
/* From any thread, any time: every pending and later call on it returns DTRUN_ABORTED,
 * or the first cause if it had failed before. Communicators made from it keep working.
 * Idempotent. DTRUN_UNSUPPORTED when the backend cannot. */
DTRUN_API dtrun_status dtrun_comm_abort(dtrun_comm* comm, const char* reason, dtrun_error* err);

/* Called by every rank of `comm`. Ranks of equal `color` become a communicator, numbered by
 * `key` and, where keys are equal, by their rank in `comm`. A negative color takes part and
 * gets NULL. */
DTRUN_API dtrun_status dtrun_comm_split(dtrun_comm* comm, int32_t color, int32_t key, dtrun_comm** out,
                                        dtrun_error* err);
/* Called by the members only, with the same list: ranks of `comm`, none twice, the caller
 * among them. ranks[i] becomes rank i. */
DTRUN_API dtrun_status dtrun_comm_subset(dtrun_comm* comm, const int32_t* ranks, int32_t count,
                                         dtrun_comm** out, dtrun_error* err);
/* Ends a communicator made by one of the two; dtrun_finalize ends those that are left. Its
 * remaining work handles can then only be released. NULL and the world are left alone. */
DTRUN_API void dtrun_comm_free(dtrun_comm* comm);

/* ---- what a backend offers beyond these calls --------------------------------------- */

/* An extension, which its author documents in a header of its own. */
typedef struct dtrun_extension {
  uint32_t struct_size;
  uint32_t flags;
  const void* table; /* of that header; lives as long as the process */
  /* First argument of the table's members: the backend's communicator for `comm`. NULL where this rank has
   * none, as on a host that another rank speaks for. Unless dtrun_comm_backend is `backend`, its ranks may be
   * fewer than those of `comm` and have other numbers. */
  dtrun_backend_comm* comm;
  const char* backend; /* name of the plugin */
} dtrun_extension;

/* The extension `id`, "<vendor>.<name>/<revision>", of the plugin that carries host memory of `comm`, else of
 * one below it, else of the one that carries a device's. DTRUN_NOT_FOUND: none of them has it. Local; after a
 * failure or an abort of `comm` too. What it gives is valid until `comm` ends, and not in a forked child.
 * Which threads may call the table's members, and when, says their header. */
DTRUN_API dtrun_status dtrun_comm_extension(dtrun_comm* comm, const char* id, dtrun_extension* out,
                                            dtrun_error* err);

/* ---- memory ---------------------------------------------------------------------- */

/* Memory that the communicator's transport moves fastest, in operations of any communicator:
 * zeroed and 64-byte aligned. Other memory works too. Local: no other rank takes part. */
DTRUN_API dtrun_status dtrun_alloc(dtrun_comm* comm, uint64_t bytes, void** out, dtrun_error* err);
/* Frees it; no operation may still use it. Memory not freed ends with its communicator.
 * NULL is allowed, and memory that is not from dtrun_alloc on `comm` is left alone. */
DTRUN_API void dtrun_free(dtrun_comm* comm, void* memory);

/* ---- operations of all ranks ------------------------------------------------------- */
/* n is the number of ranks. abi/types.h lists which reductions each type supports. An
 * operation without elements on any rank moves nothing and does not wait. */

/* recv[i] on every rank = reduction of send[i] over all ranks. In place: send == recv.
 * `reduce` DTRUN_PREMUL_SUM scales by 1, since these calls take no scale. */
DTRUN_API dtrun_status dtrun_allreduce(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                       int32_t dtype, int32_t reduce, dtrun_work** work, dtrun_error* err);
/* recv[i] on every rank = sum of send[i] * scale over all ranks, each with its own scale. */
DTRUN_API dtrun_status dtrun_allreduce_premul(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                              int32_t dtype, double scale, dtrun_work** work,
                                              dtrun_error* err);
/* As allreduce, but only `root` has a result; elsewhere recv is not used. */
DTRUN_API dtrun_status dtrun_reduce(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                    int32_t dtype, int32_t reduce, int32_t root, dtrun_work** work,
                                    dtrun_error* err);
/* buffer on every rank = buffer of `root`. */
DTRUN_API dtrun_status dtrun_broadcast(dtrun_comm* comm, void* buffer, uint64_t count, int32_t dtype,
                                       int32_t root, dtrun_work** work, dtrun_error* err);
DTRUN_API dtrun_status dtrun_barrier(dtrun_comm* comm, dtrun_work** work, dtrun_error* err);

/* recv[r * count ..] on every rank = send of rank r. In place: send == recv + rank * count. */
DTRUN_API dtrun_status dtrun_allgather(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                       int32_t dtype, dtrun_work** work, dtrun_error* err);
/* recv of rank r = reduction of send[r * count ..] over all ranks; `count` elements each.
 * In place: recv == send + rank * count. */
DTRUN_API dtrun_status dtrun_reduce_scatter(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                            int32_t dtype, int32_t reduce, dtrun_work** work,
                                            dtrun_error* err);
/* recv[r * count ..] = send[rank * count ..] of rank r. In place: send == recv. */
DTRUN_API dtrun_status dtrun_alltoall(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                      int32_t dtype, dtrun_work** work, dtrun_error* err);
/* recv[r * count ..] on `root` = send of rank r; elsewhere recv is not used. In place, on
 * root: send == recv + rank * count. */
DTRUN_API dtrun_status dtrun_gather(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                    int32_t dtype, int32_t root, dtrun_work** work, dtrun_error* err);
/* recv of rank r = send[r * count ..] of `root`; elsewhere send is not used. In place, on
 * root: recv == send + rank * count. */
DTRUN_API dtrun_status dtrun_scatter(dtrun_comm* comm, const void* send, void* recv, uint64_t count,
                                     int32_t dtype, int32_t root, dtrun_work** work, dtrun_error* err);

/* The same with a count for every rank. Arrays have n entries. Part r is at offsets[r], or
 * follows part r - 1 when the offsets are NULL. In place: as above, at this rank's part. */

/* This rank sends recv_counts[rank]; all ranks give the same recv_counts. */
DTRUN_API dtrun_status dtrun_allgatherv(dtrun_comm* comm, const void* send, void* recv,
                                        const uint64_t* recv_counts, const uint64_t* recv_offsets,
                                        int32_t dtype, dtrun_work** work, dtrun_error* err);
/* This rank receives recv_counts[rank]; all ranks give the same recv_counts. The parts to
 * send are contiguous. */
DTRUN_API dtrun_status dtrun_reduce_scatterv(dtrun_comm* comm, const void* send, void* recv,
                                             const uint64_t* recv_counts, int32_t dtype, int32_t reduce,
                                             dtrun_work** work, dtrun_error* err);
/* send_counts[r] on this rank equals recv_counts[rank] on rank r. In place: send == recv with
 * equal counts and offsets. */
DTRUN_API dtrun_status dtrun_alltoallv(dtrun_comm* comm, const void* send, const uint64_t* send_counts,
                                       const uint64_t* send_offsets, void* recv, const uint64_t* recv_counts,
                                       const uint64_t* recv_offsets, int32_t dtype, dtrun_work** work,
                                       dtrun_error* err);
/* recv and its arrays are read on `root` only, where recv_counts[r] equals rank r's count. */
DTRUN_API dtrun_status dtrun_gatherv(dtrun_comm* comm, const void* send, uint64_t count, void* recv,
                                     const uint64_t* recv_counts, const uint64_t* recv_offsets, int32_t dtype,
                                     int32_t root, dtrun_work** work, dtrun_error* err);
/* send and its arrays are read on `root` only, where send_counts[r] equals rank r's count. */
DTRUN_API dtrun_status dtrun_scatterv(dtrun_comm* comm, const void* send, const uint64_t* send_counts,
                                      const uint64_t* send_offsets, void* recv, uint64_t count, int32_t dtype,
                                      int32_t root, dtrun_work** work, dtrun_error* err);

/* ---- operations of two ranks ------------------------------------------------------- */

/* Pairs of send and recv match by peer and tag, in order, and have equal counts and memory of one kind. A
 * rank cannot send to itself. Without elements no message is sent. */
DTRUN_API dtrun_status dtrun_send(dtrun_comm* comm, const void* send, uint64_t count, int32_t dtype,
                                  int32_t peer, uint32_t tag, dtrun_work** work, dtrun_error* err);
DTRUN_API dtrun_status dtrun_recv(dtrun_comm* comm, void* recv, uint64_t count, int32_t dtype, int32_t peer,
                                  uint32_t tag, dtrun_work** work, dtrun_error* err);
/* From any rank that sends with this tag; *source, which may be NULL, is its rank once the operation
 * has ended. `count` is not 0. DTRUN_UNSUPPORTED when the backend cannot. */
DTRUN_API dtrun_status dtrun_recv_any(dtrun_comm* comm, void* recv, uint64_t count, int32_t dtype,
                                      uint32_t tag, int32_t* source, dtrun_work** work, dtrun_error* err);

/* ---- memory that is used again and again ------------------------------------------- */

/* Makes `bytes` from `memory` on ready for the operations of `comm`, which may then cost less; operations
 * take other memory as well. device_kind DTRUN_DEVICE_HOST and index -1, or of a device that `comm` is
 * connected to (dtrun/device.h). Registrations of `comm` must not overlap. Local. Where the transport has nothing to do it
 * does nothing. */
DTRUN_API dtrun_status dtrun_register(dtrun_comm* comm, void* memory, uint64_t bytes, int32_t device_kind,
                                      int32_t device_index, dtrun_error* err);
/* Before the memory is freed, when no operation uses it. What is not registered is left alone; what still is
 * ends with `comm`. */
DTRUN_API void dtrun_deregister(dtrun_comm* comm, void* memory);

/* ---- any operation, and several as one --------------------------------------------- */

/* The operation that `op` describes. Members that its kind does not use are not read; flags
 * and sequence are core's. timeout_ns 0 is the communicator's own. */
DTRUN_API dtrun_status dtrun_submit(dtrun_comm* comm, const dtrun_op* op, dtrun_work** work,
                                    dtrun_error* err);

/* Operations between the two, all with work == NULL, return at once, may be started as one,
 * and end as one: `work` of group_end, or group_end itself when that is NULL, which does not wait for those
 * on a stream. A send and a recv of one group never wait for each other. An operation that is refused is not
 * part of the group. In between only the thread that began the group may use `comm`. After a failure of
 * group_end no operation of the group is running. */
DTRUN_API dtrun_status dtrun_group_begin(dtrun_comm* comm, dtrun_error* err);
DTRUN_API dtrun_status dtrun_group_end(dtrun_comm* comm, dtrun_work** work, dtrun_error* err);

/* ---- the end of an operation ------------------------------------------------------- */

/* *done is 0 or 1, without blocking. A failed operation is done and returns its failure. */
DTRUN_API dtrun_status dtrun_work_test(dtrun_work* work, int32_t* done, dtrun_error* err);
/* Blocks until done, at most timeout_ns (-1: only the operation's own timeout). DTRUN_PENDING: it still
 * runs, the handle is still live, and err has a text. DTRUN_TIMEOUT: the operation's own time is over, and it
 * has failed. */
DTRUN_API dtrun_status dtrun_work_wait(dtrun_work* work, int64_t timeout_ns, dtrun_error* err);
/* Drops the handle; waits first when the operation still runs and no stream was ordered after it. NULL is
 * allowed; a handle that was released before fails the world; its next call reports it. */
DTRUN_API void dtrun_work_release(dtrun_work* work);

#ifdef __cplusplus
}
#endif

#endif
