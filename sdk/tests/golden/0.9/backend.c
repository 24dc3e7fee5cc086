/* backend.c - a golden backend: barriers, broadcasts and sums through the key-value space.
 *
 * `enqueue` stores what this rank gives; the result is put together when the request is asked for it, from
 * what all ranks have stored. One thread at a time per communicator.
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
};

struct dtrun_request {
  dtrun_backend_comm* comm;
  dtrun_op op;
  dtrun_status status; /* DTRUN_PENDING until it has ended */
};

enum { KEY_BYTES = 48 };

static dtrun_string key_of(char* text, const dtrun_op* op, int32_t rank) {
  dtrun_string key;
  key.size = (uint64_t)snprintf(text, KEY_BYTES, "%llu/%d", (unsigned long long)op->sequence, (int)rank);
  key.data = text;
  return key;
}

static size_t element_bytes(int32_t dtype) {
  if (dtype == DTRUN_FLOAT32 || dtype == DTRUN_INT32) return 4;
  return dtype == DTRUN_FLOAT64 || dtype == DTRUN_INT64 ? 8 : 0;
}

/* Adds the elements of `part` to those of `sum`. */
static void add(const dtrun_op* op, void* sum, const void* part) {
  uint64_t i;
  for (i = 0; i < op->count; ++i) {
    switch (op->dtype) {
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
static dtrun_status finish(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  const dtrun_instance* self = request->comm->self;
  const dtrun_op* op = &request->op;
  const int32_t from = op->kind == DTRUN_BROADCAST ? op->root : 0;
  const int32_t to = op->kind == DTRUN_BROADCAST ? op->root + 1 : request->comm->params.size;
  int32_t rank;
  if (request->status != DTRUN_PENDING) return request->status;
  for (rank = from; rank < to; ++rank) {
    char text[KEY_BYTES];
    const dtrun_string key = key_of(text, op, rank);
    const dtrun_status status =
        self->kv->wait_many(self->host, request->comm->params.kv, &key, 1, timeout_ns, err);
    if (status == DTRUN_TIMEOUT) return DTRUN_PENDING;
    if (status != DTRUN_OK) return request->status = status;
  }
  for (rank = from; rank < to; ++rank) {
    const dtrun_status status = take(request, rank, rank == from, err);
    if (status != DTRUN_OK) return request->status = status;
  }
  return request->status = DTRUN_OK;
}

static dtrun_status init(const dtrun_host* host, const dtrun_options* options, dtrun_instance** out,
                         dtrun_error* err) {
  dtrun_instance* self = malloc(sizeof *self);
  (void)options;
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
  const uint64_t types = 1u << DTRUN_FLOAT32 | 1u << DTRUN_FLOAT64 | 1u << DTRUN_INT32 | 1u << DTRUN_INT64;
  (void)self;
  (void)err;
  GOLDEN_FILL(dtrun_backend_caps, out, ops,
              1u << DTRUN_ALLREDUCE | 1u << DTRUN_BROADCAST | 1u << DTRUN_BARRIER);
  GOLDEN_FILL(dtrun_backend_caps, out, dtypes, types);
  GOLDEN_FILL(dtrun_backend_caps, out, reduces, 1u << DTRUN_SUM);
  GOLDEN_FILL(dtrun_backend_caps, out, reduce_dtypes, types);
  GOLDEN_FILL(dtrun_backend_caps, out, device_kinds, 1u << DTRUN_DEVICE_HOST);
  return DTRUN_OK;
}

static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* params,
                                dtrun_backend_comm** out, dtrun_error* err) {
  dtrun_backend_comm* comm = malloc(sizeof *comm);
  if (comm == NULL) return golden_fail(err, DTRUN_OUT_OF_MEMORY, "out of memory");
  comm->self = self;
  GOLDEN_READ(dtrun_comm_params, comm->params, params);
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
  GOLDEN_READ(dtrun_op, op, caller_op);
  if ((op.flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
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
    const dtrun_status status =
        self->kv->set(self->host, comm->params.kv, key_of(text, &op, comm->params.rank), mine, bytes, err);
    if (status != DTRUN_OK) {
      free(request);
      return status;
    }
  }
  *out = request;
  return DTRUN_PENDING;
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) { return finish(request, 0, err); }

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  return finish(request, timeout_ns, err);
}

static void req_release(dtrun_request* request) { free(request); }

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_backend backend;
  static dtrun_plugin table;
  const dtrun_status status = golden_enter(host, err);
  if (status != DTRUN_OK) return status;
  DTRUN_INIT(backend);
  backend.query_caps = query_caps;
  backend.comm_create = comm_create;
  backend.comm_destroy = comm_destroy;
  backend.enqueue = enqueue;
  backend.req_test = req_test;
  backend.req_wait_host = req_wait_host;
  backend.req_release = req_release;
  golden_identify(&table, DTRUN_KIND_BACKEND);
  table.init = init;
  table.shutdown = end;
  table.backend = &backend;
  *out = &table;
  return DTRUN_OK;
}
