/* bf16.c - a backend on another one, in C11: sums of float32 cross the wire as bfloat16, in half the bytes.
 *
 *   [backend]
 *   name = "bf16"
 *   [backend.options]
 *   over = "gloo"
 *   [backend.gloo]
 *   interface = "eth1"
 *
 * Everything but an allreduce of float32 with sum or avg is passed on as it comes. The sum is less accurate
 * than a backend's usually is, which the capability DTRUN_CAP_LOSSY says. */
#include <pthread.h>
#include <stdlib.h>

#include "dtrun/abi.h"
#include "dtrun/abi/structs.h"

struct dtrun_instance {
  const dtrun_host* host;
  const dtrun_plugins_service* plugins;
  const dtrun_wrapped* below;
};

struct dtrun_backend_comm {
  dtrun_instance* instance;
  const dtrun_backend* table; /* of the backend below */
  dtrun_backend_comm* below;
};

struct dtrun_request {
  const dtrun_backend* table;
  dtrun_request* below;
  uint16_t* wire; /* NULL: passed on as it came */
  float* recv;
  uint64_t count;
  pthread_mutex_t mutex;
  int ready; /* the result is in `recv` */
};

/* Where it passes nothing on, it refuses itself what must be understood. */
static dtrun_status unknown_flags(uint32_t flags, dtrun_error* err) {
  if ((flags & DTRUN_FLAGS_MUST_UNDERSTAND) == 0) return DTRUN_OK;
  return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "the call has a flag that this plugin does not know");
}

/* ---- bfloat16 ------------------------------------------------------------------------ */

/* To the nearest, ties to even; a NaN stays one. */
static uint16_t shorten(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)((bits >> 16) | 0x40);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static void lengthen(const uint16_t* from, float* to, uint64_t count) {
  uint64_t i;
  for (i = 0; i < count; ++i) {
    const uint32_t bits = (uint32_t)from[i] << 16;
    memcpy(&to[i], &bits, sizeof bits);
  }
}

static int is_shortened(int32_t kind, int32_t dtype, int32_t reduce) {
  return kind == DTRUN_ALLREDUCE && dtype == DTRUN_FLOAT32 && (reduce == DTRUN_SUM || reduce == DTRUN_AVG);
}

/* ---- operations ---------------------------------------------------------------------- */

static void free_request(dtrun_request* request) {
  pthread_mutex_destroy(&request->mutex);
  free(request->wire);
  free(request);
}

static dtrun_status enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                            dtrun_request** out, dtrun_error* err) {
  dtrun_op given;
  dtrun_status status;
  dtrun_request* const request = calloc(1, sizeof *request);
  if (request == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a request");
  pthread_mutex_init(&request->mutex, NULL);
  request->table = comm->table;
  dtrun_struct_read(&given, sizeof given, op);
  if (is_shortened(given.kind, given.dtype, given.reduce) && given.count > 0) {
    const float* const values = given.send;
    uint64_t i;
    request->wire = malloc(given.count * sizeof *request->wire);
    if (request->wire == NULL) {
      free_request(request);
      return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for the values in bfloat16");
    }
    for (i = 0; i < given.count; ++i) request->wire[i] = shorten(values[i]);
    request->recv = given.recv;
    request->count = given.count;
    given.dtype = DTRUN_BFLOAT16;
    given.send = given.recv = request->wire;
    op = &given;
  }
  status = comm->table->enqueue(comm->below, op, stream, &request->below, err);
  if (status == DTRUN_PENDING) {
    *out = request;
    return status;
  }
  if (status == DTRUN_OK && request->wire != NULL) lengthen(request->wire, request->recv, request->count);
  free_request(request);
  return status;
}

/* The first call that sees the end puts the result in its place, so no thread is needed for that. */
static dtrun_status finish(dtrun_request* request, dtrun_status status) {
  if (status != DTRUN_OK || request->wire == NULL) return status;
  pthread_mutex_lock(&request->mutex);
  if (!request->ready) lengthen(request->wire, request->recv, request->count);
  request->ready = 1;
  pthread_mutex_unlock(&request->mutex);
  return status;
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) {
  return finish(request, request->table->req_test(request->below, err));
}

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  return finish(request, request->table->req_wait_host(request->below, timeout_ns, err));
}

static void req_release(dtrun_request* request) {
  if (request->wire != NULL) {
    while (req_wait_host(request, -1, NULL) == DTRUN_PENDING) {
    }
  }
  request->table->req_release(request->below);
  free_request(request);
}

/* ---- communicators ------------------------------------------------------------------- */

static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* params,
                                dtrun_backend_comm** out, dtrun_error* err) {
  dtrun_comm_params given;
  dtrun_status status;
  dtrun_backend_comm* const comm = calloc(1, sizeof *comm);
  if (comm == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a communicator");
  dtrun_struct_read(&given, sizeof given, params);
  if (given.parent != NULL) given.parent = given.parent->below;
  comm->instance = self;
  comm->table = self->below->plugin->backend;
  status = comm->table->comm_create(self->below->instance, &given, &comm->below, err);
  if (status == DTRUN_OK) {
    *out = comm;
  } else {
    free(comm);
  }
  return status;
}

static void comm_destroy(dtrun_backend_comm* comm) {
  comm->table->comm_destroy(comm->below);
  free(comm);
}

static dtrun_status comm_abort(dtrun_backend_comm* comm, const dtrun_abort_params* params, dtrun_error* err) {
  return comm->table->comm_abort(comm->below, params, err);
}

static void snapshot(dtrun_backend_comm* comm, const dtrun_snapshot_sink* sink) {
  const char text[] = "bf16 passes everything on to a backend that says nothing";
  dtrun_snapshot_sink lines;
  if (comm->table->snapshot != NULL) {
    comm->table->snapshot(comm->below, sink);
    return;
  }
  dtrun_struct_read(&lines, sizeof lines, sink);
  if (lines.line != NULL) lines.line(lines.context, (dtrun_string){text, sizeof text - 1}, NULL);
}

static dtrun_status group_begin(dtrun_backend_comm* comm, const dtrun_group_params* params,
                                dtrun_error* err) {
  if (comm->table->group_begin == NULL) return unknown_flags(params->flags, err);
  return comm->table->group_begin(comm->below, params, err);
}

static dtrun_status group_end(dtrun_backend_comm* comm, const dtrun_group_params* params, dtrun_error* err) {
  if (comm->table->group_end == NULL) return unknown_flags(params->flags, err);
  return comm->table->group_end(comm->below, params, err);
}

/* ---- the plugin ---------------------------------------------------------------------- */

static dtrun_status query_caps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  dtrun_backend_caps caps;
  dtrun_status status;
  DTRUN_INIT(caps);
  status = self->below->plugin->backend->query_caps(self->below->instance, &caps, err);
  if (status != DTRUN_OK) return status;
  caps.features &= DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE | DTRUN_CAP_LAZY_CONNECT;
  caps.features |= DTRUN_CAP_LOSSY;
  caps.device_kinds = 1u << DTRUN_DEVICE_HOST;
  dtrun_struct_write(out, &caps, sizeof caps);
  return DTRUN_OK;
}

static dtrun_status query_support(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  const dtrun_backend* const table = self->below->plugin->backend;
  dtrun_support_query given;
  if (table->query_support == NULL) return unknown_flags(query->flags, err);
  dtrun_struct_read(&given, sizeof given, query);
  if (is_shortened(given.kind, given.dtype, given.reduce)) given.dtype = DTRUN_BFLOAT16;
  return table->query_support(self->below->instance, &given, err);
}

static dtrun_status launch_info(dtrun_instance* self, const dtrun_launch_query* query,
                                const dtrun_launch_sink* sink, dtrun_error* err) {
  const dtrun_backend* const table = self->below->plugin->backend;
  if (table->launch_info == NULL) return unknown_flags(query->flags | sink->flags, err);
  return table->launch_info(self->below->instance, query, sink, err);
}

static void shutdown_instance(dtrun_instance* self) {
  self->plugins->close(self->host, self->below);
  free(self);
}

/* Why the backend below cannot be used; NULL: it can. */
static const char* why_not(dtrun_instance* self) {
  const uint64_t sum = UINT64_C(1) << DTRUN_SUM, bfloat16 = UINT64_C(1) << DTRUN_BFLOAT16;
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  if (self->below->plugin->backend->query_caps(self->below->instance, &caps, NULL) != DTRUN_OK ||
      (caps.reduces & sum) == 0 || (caps.reduce_dtypes & bfloat16) == 0)
    return "the backend of `over` does not sum bfloat16; choose another one";
  if (self->below->plugin->backend->comm_abort == NULL)
    return "the backend of `over` cannot abort; choose another one";
  return NULL;
}

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  const dtrun_plugins_service* const plugins = host->get_service(host, DTRUN_PLUGINS_SERVICE);
  const char* problem;
  dtrun_instance* self;
  dtrun_status status = unknown_flags(params->flags, err);
  if (status != DTRUN_OK) return status;
  if (plugins == NULL)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1,
                           "this dtrun has no service dtrun.plugins/1; upgrade it");
  self = calloc(1, sizeof *self);
  if (self == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for an instance");
  self->host = host;
  self->plugins = plugins;
  status = plugins->open(host, params->options, "over", &self->below, err);
  if (status != DTRUN_OK) {
    free(self);
    return status;
  }
  problem = why_not(self);
  if (problem != NULL) {
    shutdown_instance(self);
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, problem);
  }
  *out = self;
  return DTRUN_OK;
}

/* The host asks the backend below for the extensions that this one lacks. */
static dtrun_backend_comm* below(dtrun_instance* self, dtrun_backend_comm* comm, const dtrun_wrapped** out_wrapped) {
  *out_wrapped = self->below;
  return comm == NULL ? NULL : comm->below;
}

static const void* get_extension(dtrun_instance* self, const char* id) {
  static const dtrun_wrapper_extension wrapper = {.struct_size = sizeof wrapper, .flags = 0, .below = below};
  (void)self;
  return strcmp(id, DTRUN_WRAPPER_EXTENSION) == 0 ? &wrapper : NULL;
}

static const dtrun_option options[] = {{.struct_size = sizeof(dtrun_option),
                                        .flags = DTRUN_OPTION_REQUIRED | DTRUN_OPTION_BACKEND,
                                        .key = "over",
                                        .type = DTRUN_TYPE_STRING,
                                        .scope = DTRUN_SCOPE_JOB,
                                        .doc = "the backend that moves the bytes, by its name or its file"}};

static const dtrun_backend backend = {.struct_size = sizeof(dtrun_backend),
                                      .launch_info = launch_info,
                                      .query_caps = query_caps,
                                      .comm_create = comm_create,
                                      .comm_destroy = comm_destroy,
                                      .comm_abort = comm_abort,
                                      .enqueue = enqueue,
                                      .req_test = req_test,
                                      .req_wait_host = req_wait_host,
                                      .req_release = req_release,
                                      .snapshot = snapshot,
                                      .group_begin = group_begin,
                                      .group_end = group_end,
                                      .query_support = query_support};

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static const dtrun_plugin plugin = {
      .struct_size = sizeof(dtrun_plugin),
      .magic = DTRUN_PLUGIN_MAGIC,
      .abi_major = DTRUN_ABI_MAJOR,
      .abi_minor_built = DTRUN_ABI_MINOR,
      .abi_minor_required = DTRUN_ABI_REQUIRED,
      .kind = DTRUN_KIND_BACKEND,
      .name = "bf16",
      .version = "1.0",
      .vendor = "dtrun examples",
      .license = "Apache-2.0",
      .summary = "another backend, with bfloat16 on the wire for float32 sums",
      .options = options,
      .option_count = 1,
      .init = init,
      .shutdown = shutdown_instance,
      .backend = &backend,
      .get_extension = get_extension};
  (void)host;
  (void)err;
  *out = &plugin;
  return DTRUN_OK;
}
