/* op.h - one operation: what core gives a backend's `enqueue`, and a program dtrun_submit.
 *
 * A plain value, made and owned by the code that starts the operation, which may drop it as soon
 * as the call returns. types.h says what each kind reads and writes. Any thread.
 */
#ifndef DTRUN_ABI_OP_H
#define DTRUN_ABI_OP_H

#include "dtrun/abi/types.h"

/* Bits of dtrun_op.flags. */
enum {
  /* A hint: the thread that enqueues will wait for this request at once, so the backend may
   * do the work inside req_wait_host instead of handing it to a thread of its own; but the
   * operation must progress, and end, without that call too. */
  DTRUN_OP_BLOCKING = 1 /* 24 to 27 belong to the device draft */
};

/* One operation. Buffers stay valid and untouched by the caller until the request has
 * completed; counts and offsets are copied by enqueue.
 *
 * In-place forms: send == recv (allreduce; reduce on the root; alltoall and alltoallv with
 * equal counts and offsets); send at this rank's place in recv (allgather, allgatherv, and
 * gather, gatherv on the root); recv at this rank's place in send (reduce-scatter,
 * reduce-scatterv, and scatter, scatterv on the root). No other overlap occurs.
 *
 * Arrays have one entry per rank of the communicator and are NULL where types.h names none.
 * Offsets are in elements, belong to the counts of the same name, and are NULL when the parts
 * are contiguous, as they always are in reduce_scatterv. Parts that are received never
 * overlap. */
typedef struct dtrun_op {
  uint32_t struct_size;
  uint32_t flags;
  int32_t kind;      /* DTRUN_ALLREDUCE ... */
  int32_t dtype;     /* 0 for a barrier */
  int32_t reduce;    /* 0 where nothing is reduced */
  int32_t root;      /* broadcast, reduce, gather(v), scatter(v); otherwise -1 */
  int32_t peer;      /* send, recv; otherwise -1 */
  uint32_t tag;      /* send, recv */
  uint64_t sequence; /* collectives: number of this call on this communicator, from 1 */
  uint64_t count;    /* elements, as types.h defines for the kind. Where it defines none, core sets
                        the sum of recv_counts (alltoallv: send_counts), for messages */
  const void* send;
  void* recv;
  int64_t timeout_ns; /* from enqueue to completion; -1: no limit; 0: the communicator's own, which core
                         fills in: a backend never sees 0 */
  const uint64_t* send_counts; /* alltoallv; scatterv on the root */
  const uint64_t* send_offsets;
  const uint64_t* recv_counts; /* allgatherv, reduce_scatterv, alltoallv; gatherv on the root */
  const uint64_t* recv_offsets;
  double scale;    /* DTRUN_PREMUL_SUM: what this rank's elements are multiplied by */
  int32_t* source; /* recv from DTRUN_ANY_SOURCE: receives the sender's rank; may be NULL */
} dtrun_op;

#endif
