/* types.h - element types, reductions and operations, shared by plugins and programs.
 *
 * Values are written and never change; new ones are appended. Constants: any thread.
 */
#ifndef DTRUN_ABI_TYPES_H
#define DTRUN_ABI_TYPES_H

#include "dtrun/abi/base.h"

/* Element type of a buffer. */
enum {
  DTRUN_FLOAT16 = 1,  /* IEEE 754 binary16; sums are accumulated in float32 */
  DTRUN_BFLOAT16 = 2, /* upper half of a float32; sums are accumulated in float32 */
  DTRUN_FLOAT32 = 3,
  DTRUN_FLOAT64 = 4,
  DTRUN_INT32 = 5,
  DTRUN_INT64 = 6,
  DTRUN_UINT8 = 7,
  DTRUN_INT8 = 8,
  DTRUN_INT16 = 9,
  DTRUN_UINT16 = 10,
  DTRUN_UINT32 = 11,
  DTRUN_UINT64 = 12,
  DTRUN_BOOL = 13,      /* one byte: 0 is false, anything else true; results are 0 or 1 */
  DTRUN_COMPLEX64 = 14, /* two float32: real, imaginary; aligned as one of them */
  DTRUN_COMPLEX128 = 15 /* two float64 */
};

/* How elements of different ranks combine. Integer sums and products wrap.
 *
 *                        floating  integer  bool           complex
 *   sum, prod            yes       yes      as lor, land   yes
 *   min, max             yes       yes      as land, lor   -
 *   avg, premul-sum      yes       -        -              yes
 *   band, bor, bxor      -         yes      logical        -
 *   land, lor            -         yes      yes            -
 *
 * min and max of floating types give NaN when any rank has one. */
enum {
  DTRUN_SUM = 1,
  DTRUN_PROD = 2,
  DTRUN_MIN = 3,
  DTRUN_MAX = 4,
  DTRUN_AVG = 5,        /* sum divided by the number of ranks */
  DTRUN_PREMUL_SUM = 6, /* sum of each rank's elements times that rank's dtrun_op.scale */
  DTRUN_BAND = 7,
  DTRUN_BOR = 8,
  DTRUN_BXOR = 9,
  DTRUN_LAND = 10, /* 1 when every rank's element is not 0, else 0 */
  DTRUN_LOR = 11   /* 1 when any rank's element is not 0, else 0 */
};

/* What an operation does. `count` is in elements; n is the number of ranks. A "v" form
 * has a count of its own for every rank: dtrun_op.send_counts and recv_counts. The
 * parts are contiguous unless send_offsets and recv_offsets place them. */
enum {
  DTRUN_ALLREDUCE = 1,        /* send: count, recv: count */
  DTRUN_BROADCAST = 2,        /* recv: count, read on `root`, written elsewhere */
  DTRUN_ALLGATHER = 3,        /* send: count, recv: n * count, rank r at r * count */
  DTRUN_REDUCE_SCATTER = 4,   /* send: n * count, recv: count, rank r gets part r */
  DTRUN_BARRIER = 5,          /* no buffers */
  DTRUN_SEND = 6,             /* send: count, to `peer` */
  DTRUN_RECV = 7,             /* recv: count, from `peer`, or from anyone: DTRUN_ANY_SOURCE */
  DTRUN_REDUCE = 8,           /* send: count, recv on `root` only: count */
  DTRUN_ALLTOALL = 9,         /* send: n * count, recv: n * count; part r to, and from, rank r */
  DTRUN_GATHER = 10,          /* send: count, recv on `root` only: n * count */
  DTRUN_SCATTER = 11,         /* send on `root` only: n * count, recv: count */
  DTRUN_ALLGATHERV = 12,      /* send: recv_counts[rank], recv: recv_counts, equal on all ranks */
  DTRUN_REDUCE_SCATTERV = 13, /* send: recv_counts, equal on all ranks, recv: recv_counts[rank] */
  DTRUN_ALLTOALLV = 14,       /* send: send_counts, recv: recv_counts */
  DTRUN_GATHERV = 15,         /* send: count, recv on `root` only: recv_counts */
  DTRUN_SCATTERV = 16         /* send on `root` only: send_counts, recv: count */
};

/* A receiver's `peer` that matches a message of any rank. */
enum { DTRUN_ANY_SOURCE = -1 };

/* What a buffer or a stream belongs to. */
enum {
  DTRUN_DEVICE_HOST = 0, /* the host's memory; its index is -1, and it has no streams */
  DTRUN_DEVICE_CUDA = 1,
  DTRUN_DEVICE_ROCM = 2,
  DTRUN_DEVICE_LEVEL_ZERO = 3,
  /* From here to 62: kinds that dtrun has no name for. A plugin of such a kind takes any number; two with the
   * same one do not work together. */
  DTRUN_DEVICE_OTHER = 32
};

#endif
