/* Every operation, with every type and reduction, on the memory of a device: right, or refused with a text.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "values.h"

enum { kCount = 17, kMostRanks = 64 };
static const double kScale = 2;

/* One operation, and where its parts are. */
typedef struct {
  int kind, dtype, reduce, rank, size;
  uint64_t counts[kMostRanks]; /* of the parts that `rank` receives, or sends to each */
  size_t send_elements, recv_elements;
} Trial;

/* Number i that `rank` sends: to be reduced, or only moved. */
static double number(const Trial* trial, int rank, size_t i) {
  return trial->reduce != 0 ? (double)((i + 3 * (size_t)rank) % 4) : (double)((i + 5 * (size_t)rank) % 13);
}

static double reduced_at(const Trial* trial, size_t i) {
  double numbers[kMostRanks];
  for (int rank = 0; rank < trial->size; ++rank) numbers[rank] = number(trial, rank, i);
  return reduced(numbers, trial->size, trial->dtype, trial->reduce, kScale);
}

/* Elements before part `part` where the parts have part + first elements. */
static size_t before(int part, int first) { return (size_t)(part * first + part * (part - 1) / 2); }

/* The part that element i is in, where the parts have part + first elements; i becomes its place there. */
static int part_of(size_t* i, int first) {
  int part = 0;
  while (*i >= (size_t)(part + first)) *i -= (size_t)(first + part++);
  return part;
}

static int is_reducing(int kind) {
  return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE || kind == DTRUN_REDUCE_SCATTER ||
         kind == DTRUN_REDUCE_SCATTERV;
}
static int is_on_root_only(int kind) {
  return kind == DTRUN_REDUCE || kind == DTRUN_GATHER || kind == DTRUN_GATHERV;
}

static void lay_out(Trial* trial) {
  const size_t size = (size_t)trial->size, rank = (size_t)trial->rank;
  const size_t all = before(trial->size, 1);
  trial->send_elements = trial->recv_elements = kCount;
  for (size_t i = 0; i < size; ++i) trial->counts[i] = i + 1 + (trial->kind == DTRUN_ALLTOALLV ? rank : 0);
  switch (trial->kind) {
    case DTRUN_ALLGATHER:
    case DTRUN_GATHER: trial->recv_elements = size * kCount; break;
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_SCATTER: trial->send_elements = size * kCount; break;
    case DTRUN_ALLTOALL: trial->send_elements = trial->recv_elements = size * kCount; break;
    case DTRUN_ALLGATHERV:
    case DTRUN_GATHERV:
      trial->send_elements = rank + 1;
      trial->recv_elements = all;
      break;
    case DTRUN_REDUCE_SCATTERV:
    case DTRUN_SCATTERV:
      trial->send_elements = all;
      trial->recv_elements = rank + 1;
      break;
    case DTRUN_ALLTOALLV:
      trial->send_elements = trial->recv_elements = before(trial->size, 1 + trial->rank);
      break;
    default: break;
  }
}

static dtrun_op described(const Trial* trial) {
  const int kind = trial->kind;
  dtrun_op op = operation(kind, trial->dtype, kCount);
  op.reduce = trial->reduce;
  op.scale = kScale;
  if (is_on_root_only(kind) || kind == DTRUN_BROADCAST || kind == DTRUN_SCATTER || kind == DTRUN_SCATTERV)
    op.root = trial->size - 1;
  if (kind == DTRUN_SEND || kind == DTRUN_RECV) op.peer = 1 - trial->rank;
  if (kind == DTRUN_GATHERV) op.count = trial->send_elements;
  if (kind == DTRUN_SCATTERV) op.count = trial->recv_elements;
  if (kind == DTRUN_ALLTOALLV || kind == DTRUN_SCATTERV) op.send_counts = trial->counts;
  if (kind == DTRUN_ALLTOALLV || kind == DTRUN_ALLGATHERV || kind == DTRUN_REDUCE_SCATTERV ||
      kind == DTRUN_GATHERV)
    op.recv_counts = trial->counts;
  return op;
}

/* What element i of recv has to be. */
static double expected(const Trial* trial, size_t i) {
  const size_t rank = (size_t)trial->rank;
  const int root = trial->size - 1;
  int part;
  switch (trial->kind) {
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE: return reduced_at(trial, i);
    case DTRUN_REDUCE_SCATTER: return reduced_at(trial, rank * kCount + i);
    case DTRUN_REDUCE_SCATTERV: return reduced_at(trial, before(trial->rank, 1) + i);
    case DTRUN_BROADCAST: return number(trial, root, i);
    case DTRUN_RECV: return number(trial, 0, i);
    case DTRUN_SCATTER: return number(trial, root, rank * kCount + i);
    case DTRUN_SCATTERV: return number(trial, root, before(trial->rank, 1) + i);
    case DTRUN_ALLTOALL: return number(trial, (int)(i / kCount), rank * kCount + i % kCount);
    case DTRUN_ALLTOALLV:
      part = part_of(&i, 1 + trial->rank);
      return number(trial, part, before(trial->rank, 1 + part) + i);
    case DTRUN_ALLGATHERV:
    case DTRUN_GATHERV: part = part_of(&i, 1); return number(trial, part, i);
    default: return number(trial, (int)(i / kCount), i % kCount); /* allgather, gather */
  }
}

/* Imaginary parts equal the real ones, but in products, where they are 0. */
static double imaginary_of(const Trial* trial, double real) { return trial->reduce == DTRUN_PROD ? 0 : real; }

static void fill(const Trial* trial, void* elements, size_t count, int rank) {
  for (size_t i = 0; i < count; ++i) {
    const double value = rank < 0 ? 99 : number(trial, rank, i);
    put(elements, i, trial->dtype, value, imaginary_of(trial, value));
  }
}

static int is_right(const Trial* trial, const void* elements) {
  for (size_t i = 0; i < trial->recv_elements; ++i) {
    double want = expected(trial, i);
    if (trial->dtype == DTRUN_BOOL) want = want != 0;
    const double got = get(elements, i, trial->dtype, 0), imaginary = get(elements, i, trial->dtype, 1);
    const double also = trial->dtype >= DTRUN_COMPLEX64 ? imaginary_of(trial, want) : 0;
    if (fabs(got - want) <= 0.02 && fabs(imaginary - also) <= 0.02) continue;
    say("wrong: rank %d, %s of %s%s%s: element %zu is %g, not %g\n", trial->rank, kind_name(trial->kind),
        type_name(trial->dtype), trial->reduce != 0 ? ", " : "", reduction_name(trial->reduce), i, got, want);
    return 0;
  }
  return 1;
}

/* Types that were refused, by reduction (0: none) as a bit each, and the text of the last refusal. */
static struct {
  unsigned types[1 + kReductions];
  char text[DTRUN_ERROR_MESSAGE_BYTES];
} refused;

static void list_refusals(void) {
  for (int reduce = 0; reduce <= kReductions; ++reduce) {
    if (refused.types[reduce] == 0) continue;
    say("refused, %s of:", reduce == 0 ? "moving" : reduction_name(reduce));
    for (int dtype = 0; dtype < kFirstType + kTypes; ++dtype) {
      if (refused.types[reduce] >> dtype & 1) say(" %s", dtype == 0 ? "nothing" : type_name(dtype));
    }
    say("\n");
  }
  if (refused.text[0] != 0) say("as in: %s\n", refused.text);
}

/* 1: right; 0: refused; -1: wrong. */
static int try_one(const Device* device, Trial* trial, void* on_device[2], void* on_host) {
  dtrun_error error;
  dtrun_op op;
  DTRUN_ERROR_INIT(error);
  lay_out(trial);
  op = described(trial);
  const int has_result = trial->kind != DTRUN_SEND && trial->kind != DTRUN_BARRIER &&
                         (!is_on_root_only(trial->kind) || trial->rank == trial->size - 1);
  const int broadcasts = trial->kind == DTRUN_BROADCAST; /* which has one buffer */
  const uint64_t bytes = trial->kind == DTRUN_BARRIER ? 0 : dtrun_dtype_size(trial->dtype);
  fill(trial, on_host, trial->send_elements, trial->rank);
  copy_on(&device->stream, on_device[0], on_host, trial->send_elements * bytes);
  synchronize(&device->stream);
  fill(trial, on_host, trial->recv_elements, -1);
  copy_on(&device->stream, on_device[1], on_host, trial->recv_elements * bytes);
  op.send = on_device[0];
  op.recv = on_device[broadcasts ? 0 : 1];
  const dtrun_status status = dtrun_submit_on(device->world, &op, &device->stream, NULL, &error);
  if (status == DTRUN_UNSUPPORTED) {
    synchronize(&device->stream);
    refused.types[trial->reduce] |= 1u << trial->dtype;
    memcpy(refused.text, error.message, sizeof refused.text);
    return 0;
  }
  must(status, &error, kind_name(trial->kind));
  copy_on(&device->stream, on_host, op.recv, trial->recv_elements * bytes);
  synchronize(&device->stream);
  return has_result && !is_right(trial, on_host) ? -1 : 1;
}

int all_operations(Device* device) {
  const size_t room = 16 * (size_t)kCount * (size_t)(device->size + 1) * (size_t)(device->size + 1);
  void* on_device[2] = {device_memory(device, room), device_memory(device, room)};
  void* const on_host = malloc(room);
  int right = 0, none = 0, wrong = 0;
  if (on_host == NULL || device->size > kMostRanks) fail("operations", "too many ranks");
  for (int kind = kFirstKind; kind < kFirstKind + kKinds; ++kind) {
    const int reduces = is_reducing(kind), messages = kind == DTRUN_SEND || kind == DTRUN_RECV;
    if (messages && (device->size < 2 || device->rank > 1 || (device->rank == 0) != (kind == DTRUN_SEND)))
      continue;
    for (int dtype = kFirstType; dtype < kFirstType + (kind == DTRUN_BARRIER ? 1 : kTypes); ++dtype) {
      for (int reduce = reduces; reduce <= (reduces ? kReductions : 0); ++reduce) {
        if (reduces && !is_defined(dtype, reduce)) continue;
        Trial trial = {.kind = kind,
                       .dtype = kind == DTRUN_BARRIER ? 0 : dtype,
                       .reduce = reduce,
                       .rank = device->rank,
                       .size = device->size};
        const int outcome = try_one(device, &trial, on_device, on_host);
        if (outcome > 0) ++right;
        if (outcome == 0) ++none;
        if (outcome < 0) ++wrong;
      }
    }
  }
  dtrun_free(device->world, on_device[0]);
  dtrun_free(device->world, on_device[1]);
  free(on_host);
  say("rank %d: %d right, %d refused, %d wrong\n", device->rank, right, none, wrong);
  if (device->rank == 0) list_refusals();
  return wrong != 0 || right == 0;
}
