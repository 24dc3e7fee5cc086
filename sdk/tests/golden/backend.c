/* backend.c - a golden backend: barriers, broadcasts and sums through the key-value space.
 *
 * `enqueue` stores what this rank gives; the result is put together when the request is asked for it, from
 * what all ranks have stored. With the headers of appendix.py it also has what they append: eight-bit floats with a
 * scale, a callback, counters. GOLDEN_TRUSTS_SIZES makes one that empties a caller's error as if it were its own, which
 * golden_driver finds. One thread at a time per communicator.
 */
#include <stdio.h>
#include <stdlib.h>

#include "golden.h"

struct dtrun_instance {
  const dtrun_host* host;
  const dtrun_kv_service* kv;
  const dtrun_memory_service* memory;
};

struct dtrun_backend_comm {
  dtrun_instance* self;
  dtrun_comm_params params; /* its pointers but kv are only valid in comm_create */
  uint64_t operations, bytes; /* completed; given */
};

struct dtrun_request {
  dtrun_backend_comm* comm;
  dtrun_op op;
  dtrun_status status; /* DTRUN_PENDING until it has ended */
};

static dtrun_status golden_fail(dtrun_error* err, dtrun_status code, const char* message) {
#ifdef GOLDEN_TRUSTS_SIZES
  if (err != NULL) DTRUN_ERROR_INIT(*err);
#endif
  return dtrun_error_set(err, code, -1, message);
}

enum { KEY_BYTES = 48 };

static dtrun_string key_of(char* text, const dtrun_op* op, int32_t rank) {
  dtrun_string key;
  key.size = (uint64_t)snprintf(text, KEY_BYTES, "%llu/%d", (unsigned long long)op->sequence, (int)rank);
  key.data = text;
  return key;
}

#ifdef DTRUN_APPENDIX
#include "float8.h"
#endif

static size_t element_bytes(int32_t dtype) {
#ifdef DTRUN_APPENDIX
  if (dtype == DTRUN_FLOAT8_E4M3) return sizeof(float); /* of what is stored: values, not codes */
#endif
  if (dtype == DTRUN_FLOAT32 || dtype == DTRUN_INT32) return 4;
  return dtype == DTRUN_FLOAT64 || dtype == DTRUN_INT64 ? 8 : 0;
}

/* Adds the elements of `part` to those of `sum`. */
static void add(const dtrun_op* op, void* sum, const void* part) {
  uint64_t i;
  for (i = 0; i < op->count; ++i) {
    switch (op->dtype) {
#ifdef DTRUN_APPENDIX
      case DTRUN_FLOAT8_E4M3:
#endif
      case DTRUN_FLOAT32: ((float*)sum)[i] += ((const float*)part)[i]; break;
      case DTRUN_FLOAT64: ((double*)sum)[i] += ((const double*)part)[i]; break;
      case DTRUN_INT32: ((uint32_t*)sum)[i] += ((const uint32_t*)part)[i]; break;
      case DTRUN_INT64: ((uint64_t*)sum)[i] += ((const uint64_t*)part)[i]; break;
    }
  }
}

/* Takes what `rank` has stored, which is there. */
static dtrun_status take(dtrun_request* request, int32_t rank, int first, dtrun_error* err) {
  const dtrun_instance* self = request->comm->self;
  const dtrun_op* op = &request->op;
  const uint64_t expected = op->kind == DTRUN_BARRIER ? 0 : op->count * element_bytes(op->dtype);
  char text[KEY_BYTES];
  void* value = NULL;
  uint64_t bytes = 0;
  dtrun_status status =
      self->kv->try_get(self->host, request->comm->params.kv, key_of(text, op, rank), &value, &bytes, err);
  if (status != DTRUN_OK) return status;
  if (bytes != expected) {
    status = golden_fail(err, DTRUN_MISMATCH, "another rank gave another number of bytes");
  } else if (bytes > 0) {
    if (first) {
      memcpy(op->recv, value, (size_t)bytes);
    } else {
      add(op, op->recv, value);
    }
  }
  self->memory->release(self->host, value);
  return status;
}

/* Ends the request, or returns DTRUN_PENDING after `timeout_ns`. */
static dtrun_status finish_now(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  const dtrun_instance* self = request->comm->self;
  const dtrun_op* op = &request->op;
  const int32_t from = op->kind == DTRUN_BROADCAST ? op->root : 0;
  const int32_t to = op->kind == DTRUN_BROADCAST ? op->root + 1 : request->comm->params.size;
  int32_t rank;
  for (rank = from; rank < to; ++rank) {
    char text[KEY_BYTES];
    const dtrun_string key = key_of(text, op, rank);
    const dtrun_status status =
        self->kv->wait_many(self->host, request->comm->params.kv, &key, 1, timeout_ns, err);
    if (status == DTRUN_TIMEOUT) return DTRUN_PENDING;
    if (status != DTRUN_OK) return status;
  }
  for (rank = from; rank < to; ++rank) {
    const dtrun_status status = take(request, rank, rank == from, err);
    if (status != DTRUN_OK) return status;
  }
  return DTRUN_OK;
}

static dtrun_status finish(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  if (request->status != DTRUN_PENDING) return request->status;
#ifdef DTRUN_APPENDIX
  {
    float sums[FLOAT8_MOST];
    const dtrun_op caller_op = request->op;
    const int small = caller_op.dtype == DTRUN_FLOAT8_E4M3;
    if (small) request->op.recv = sums;
    request->status = finish_now(request, timeout_ns, err);
    request->op = caller_op;
    if (request->status == DTRUN_OK && small) float8_encode(caller_op.recv, sums, caller_op.count, caller_op.recv_scale);
    if (request->status != DTRUN_PENDING && caller_op.completed != NULL)
      caller_op.completed(caller_op.context, request->status);
  }
#else
  request->status = finish_now(request, timeout_ns, err);
#endif
  if (request->status == DTRUN_OK) ++request->comm->operations;
  return request->status;
}

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  dtrun_instance* self = malloc(sizeof *self);
  if (self == NULL) return golden_fail(err, DTRUN_OUT_OF_MEMORY, "out of memory");
  self->host = host;
  self->kv = host->get_service(host, DTRUN_KV_SERVICE);
  self->memory = host->get_service(host, DTRUN_MEMORY_SERVICE);
  if (self->kv == NULL || self->memory == NULL) {
    free(self);
    return golden_fail(err, DTRUN_UNSUPPORTED, "this host has no key-value space or no memory");
  }
  *out = self;
  return DTRUN_OK;
}

static void end(dtrun_instance* self) { free(self); }

static dtrun_status query_caps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  uint64_t types = 1u << DTRUN_FLOAT32 | 1u << DTRUN_FLOAT64 | 1u << DTRUN_INT32 | 1u << DTRUN_INT64;
#ifdef DTRUN_APPENDIX
  types |= 1u << DTRUN_FLOAT8_E4M3;
  out->features = DTRUN_CAP_CALLBACK;
#endif
  (void)self;
  (void)err;
  out->ops = 1u << DTRUN_ALLREDUCE | 1u << DTRUN_BROADCAST | 1u << DTRUN_BARRIER;
  out->dtypes = types;
  out->reduces = 1u << DTRUN_SUM;
  out->reduce_dtypes = types;
  out->device_kinds = 1u << DTRUN_DEVICE_HOST;
  return DTRUN_OK;
}

static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* params,
                                dtrun_backend_comm** out, dtrun_error* err) {
  dtrun_backend_comm* comm = malloc(sizeof *comm);
  if (comm == NULL) return golden_fail(err, DTRUN_OUT_OF_MEMORY, "out of memory");
  comm->self = self;
  comm->operations = comm->bytes = 0;
  GOLDEN_READ(comm->params, params);
  *out = comm;
  return DTRUN_OK;
}

static void comm_destroy(dtrun_backend_comm* comm) { free(comm); }

/* A text that no caller's buffer holds whole. */
static dtrun_status refuse(dtrun_error* err) {
  char text[700];
  memset(text, '.', sizeof text);
  memcpy(text, "not an operation of this backend", 32);
  text[sizeof text - 1] = '\0';
  return golden_fail(err, DTRUN_UNSUPPORTED, text);
}

static dtrun_status enqueue(dtrun_backend_comm* comm, const dtrun_op* caller_op, const dtrun_stream* stream,
                            dtrun_request** out, dtrun_error* err) {
  const dtrun_instance* self = comm->self;
  dtrun_request* request;
  dtrun_op op;
  (void)stream;
  GOLDEN_READ(op, caller_op);
#ifdef DTRUN_APPENDIX
  if ((op.flags & DTRUN_FLAGS_MUST_UNDERSTAND & ~(uint32_t)DTRUN_OP_CALLBACK) != 0) return refuse(err);
  if (op.dtype == DTRUN_FLOAT8_E4M3 && op.count > FLOAT8_MOST) return refuse(err);
#else
  if ((op.flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
#endif
  if (op.kind != DTRUN_BARRIER && op.kind != DTRUN_BROADCAST && op.kind != DTRUN_ALLREDUCE)
    return refuse(err);
  if (op.kind != DTRUN_BARRIER && element_bytes(op.dtype) == 0) return refuse(err);
  if (op.kind == DTRUN_ALLREDUCE && op.reduce != DTRUN_SUM) return refuse(err);
  request = malloc(sizeof *request);
  if (request == NULL) return golden_fail(err, DTRUN_OUT_OF_MEMORY, "out of memory");
  request->comm = comm;
  request->op = op;
  request->status = DTRUN_PENDING;
  if (op.kind != DTRUN_BROADCAST || op.root == comm->params.rank) {
    const void* mine = op.kind == DTRUN_BARRIER ? "" : op.kind == DTRUN_BROADCAST ? op.recv : op.send;
    const uint64_t bytes = op.kind == DTRUN_BARRIER ? 0 : op.count * element_bytes(op.dtype);
    char text[KEY_BYTES];
#ifdef DTRUN_APPENDIX
    float values[FLOAT8_MOST];
    if (op.dtype == DTRUN_FLOAT8_E4M3) mine = float8_decode(values, mine, op.count, op.send_scale);
#endif
    const dtrun_status status =
        self->kv->set(self->host, comm->params.kv, key_of(text, &op, comm->params.rank), mine, bytes, err);
    if (status != DTRUN_OK) {
      free(request);
      return status;
    }
    comm->bytes += bytes;
  }
  *out = request;
  return DTRUN_PENDING;
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) { return finish(request, 0, err); }

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  return finish(request, timeout_ns, err);
}

static void req_release(dtrun_request* request) { free(request); }

#ifdef DTRUN_APPENDIX
static dtrun_status counters(dtrun_backend_comm* comm, dtrun_counters* out, dtrun_error* err) {
  (void)err;
  out->operations = comm->operations;
  out->bytes = comm->bytes;
  return DTRUN_OK;
}
#endif

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_backend backend;
  static dtrun_plugin table;
  (void)host;
  (void)err;
  DTRUN_INIT(backend);
  backend.query_caps = query_caps;
  backend.comm_create = comm_create;
  backend.comm_destroy = comm_destroy;
  backend.enqueue = enqueue;
  backend.req_test = req_test;
  backend.req_wait_host = req_wait_host;
  backend.req_release = req_release;
#ifdef DTRUN_APPENDIX
  backend.counters = counters;
#endif
  golden_identify(&table, DTRUN_KIND_BACKEND);
  table.init = init;
  table.shutdown = end;
  table.backend = &backend;
  *out = &table;
  return DTRUN_OK;
}
