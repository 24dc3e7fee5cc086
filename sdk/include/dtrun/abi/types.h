/* types.h - element types, reductions and operations, shared by plugins and programs.
 *
 * Values are written and never change; new ones are appended.
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
  DTRUN_DTYPE_COUNT = 8 /* one past the last value */
};

/* How elements of different ranks combine. Integer sums and products wrap. */
enum {
  DTRUN_SUM = 1,
  DTRUN_PROD = 2,
  DTRUN_MIN = 3,
  DTRUN_MAX = 4,
  DTRUN_AVG = 5, /* sum divided by the number of ranks; floating point only */
  DTRUN_REDUCE_COUNT = 6
};

/* What an operation does. `count` is in elements; n is the number of ranks. */
enum {
  DTRUN_ALLREDUCE = 1,      /* send: count, recv: count */
  DTRUN_BROADCAST = 2,      /* recv: count, read on `root`, written elsewhere */
  DTRUN_ALLGATHER = 3,      /* send: count, recv: n * count, rank r at r * count */
  DTRUN_REDUCE_SCATTER = 4, /* send: n * count, recv: count, rank r gets part r */
  DTRUN_BARRIER = 5,        /* no buffers */
  DTRUN_SEND = 6,           /* send: count, to `peer` */
  DTRUN_RECV = 7,           /* recv: count, from `peer` */
  DTRUN_OP_COUNT = 8
};

#endif
