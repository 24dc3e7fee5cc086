/* over.c - a backend on the one that its option `on` names. It passes everything on and says so at launch.
 * One instance in a process. */
#include <stdlib.h>

#include "dtrun/abi.h"

static const dtrun_backend* table_below;

struct dtrun_instance {
  const dtrun_host* host;
  const dtrun_plugins_service* plugins;
  const dtrun_wrapped* below;
};

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* host = params->host;
  const dtrun_plugins_service* plugins = host->get_service(host, DTRUN_PLUGINS_SERVICE);
  if (plugins == NULL) return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "this host loads no other plugin");
  dtrun_instance* self = malloc(sizeof *self);
  if (self == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "out of memory");
  *self = (dtrun_instance){host, plugins, NULL};
  const dtrun_status status = plugins->open(host, params->options, "on", &self->below, err);
  if (status == DTRUN_OK) {
    table_below = self->below->plugin->backend;
    *out = self;
  } else {
    free(self);
  }
  return status;
}

static void shutdown_instance(dtrun_instance* self) {
  self->plugins->close(self->host, self->below);
  free(self);
}

static dtrun_status launch_info(dtrun_instance* self, const dtrun_launch_query* query,
                                const dtrun_launch_sink* sink, dtrun_error* err) {
  const char words[] = "passes everything on";
  const dtrun_status said = sink->fact(sink->context, "over", (dtrun_string){words, sizeof words - 1}, err);
  if (said != DTRUN_OK) return said;
  return self->below->plugin->backend->launch_info(self->below->instance, query, sink, err);
}

static dtrun_status query_caps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  return self->below->plugin->backend->query_caps(self->below->instance, out, err);
}

/* Its communicators and requests are those of the backend below. */
static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* params,
                                dtrun_backend_comm** out, dtrun_error* err) {
  return self->below->plugin->backend->comm_create(self->below->instance, params, out, err);
}

static void comm_destroy(dtrun_backend_comm* comm) { table_below->comm_destroy(comm); }

static dtrun_status enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                            dtrun_request** out, dtrun_error* err) {
  return table_below->enqueue(comm, op, stream, out, err);
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) {
  return table_below->req_test(request, err);
}

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  return table_below->req_wait_host(request, timeout_ns, err);
}

static void req_release(dtrun_request* request) { table_below->req_release(request); }

static dtrun_option option;
static dtrun_backend backend;
static dtrun_plugin table;

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  (void)host;
  (void)err;
  DTRUN_INIT(option);
  option.flags = DTRUN_OPTION_REQUIRED | DTRUN_OPTION_BACKEND;
  option.key = "on";
  option.type = DTRUN_TYPE_STRING;
  option.scope = DTRUN_SCOPE_JOB;
  option.doc = "the backend below";
  DTRUN_INIT(backend);
  backend.launch_info = launch_info;
  backend.query_caps = query_caps;
  backend.comm_create = comm_create;
  backend.comm_destroy = comm_destroy;
  backend.enqueue = enqueue;
  backend.req_test = req_test;
  backend.req_wait_host = req_wait_host;
  backend.req_release = req_release;
  DTRUN_PLUGIN_INIT(table);
  table.kind = DTRUN_KIND_BACKEND;
  table.name = "over";
  table.version = "1";
  table.vendor = "dtrun tests";
  table.license = "MIT";
  table.summary = "a backend on another one";
  table.options = &option;
  table.option_count = 1;
  table.init = init;
  table.shutdown = shutdown_instance;
  table.backend = &backend;
  *out = &table;
  return DTRUN_OK;
}
