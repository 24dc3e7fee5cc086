/* tcp.c - a backend over TCP in C11: connections by mesh.h, messages by links.h; order and collectives by the
 * host's services. */
#include "dtrun/abi/structs.h"
#include "mesh.h"

struct dtrun_instance {
  const dtrun_host* host;
};

/* Of the user's receive, or of a collective. */
struct dtrun_request {
  struct dtrun_backend_comm* comm;
  dtrun_call* call; /* NULL: a receive */
  struct receive receive;
};

/* A receive of the collective that runs. */
struct dtrun_message {
  struct receive receive;
  struct dtrun_message* next;
};

struct dtrun_backend_comm {
  const dtrun_host* host;
  const dtrun_kernels_service* kernels;
  const dtrun_calls_service* calls;
  const dtrun_collectives_service* collectives;
  struct links* links;
  dtrun_calls* queue;
  dtrun_collectives* algorithms;
  /* of the collective that runs */
  uint64_t key;
  int64_t deadline;
  struct dtrun_message* messages;
};

/* ---- the messages of a collective ---------------------------------------------------- */

static dtrun_status messenger_send(void* context, int32_t peer, const void* data, uint64_t bytes,
                                   dtrun_message** out, dtrun_error* err) {
  dtrun_backend_comm* const comm = context;
  const struct header header = {comm->key, bytes};
  (void)out; /* complete */
  return send_message(comm->links, peer, header, data, err);
}

static dtrun_status messenger_recv(void* context, int32_t peer, void* data, uint64_t bytes,
                                   dtrun_message** out, dtrun_error* err) {
  dtrun_backend_comm* const comm = context;
  dtrun_message* const message = calloc(1, sizeof *message);
  if (message == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a message");
  message->receive.peer = peer;
  message->receive.header.key = comm->key;
  message->receive.header.bytes = bytes;
  message->receive.data = data;
  message->receive.deadline = comm->deadline;
  message->next = comm->messages;
  comm->messages = message;
  start_receive(comm->links, &message->receive);
  *out = message;
  return DTRUN_OK;
}

static dtrun_status messenger_wait(void* context, dtrun_message* message, dtrun_error* err) {
  dtrun_backend_comm* const comm = context;
  const dtrun_status status = wait_receive(comm->links, &message->receive, -1, err);
  dtrun_message** at = &comm->messages;
  while (*at != message) at = &(*at)->next;
  *at = message->next;
  free(message);
  return status;
}

static void messenger_cancel(void* context) {
  dtrun_backend_comm* const comm = context;
  fail(comm->links, DTRUN_INTERNAL, -1, "a collective has failed");
  while (comm->messages != NULL) messenger_wait(comm, comm->messages, NULL);
}

/* ---- one collective after another ---------------------------------------------------- */

static dtrun_status run_collective(void* context, const dtrun_op* op, dtrun_error* err) {
  dtrun_backend_comm* const comm = context;
  const dtrun_status status = failure_of(comm->links, err);
  if (status != DTRUN_OK) return status;
  comm->key = UINT64_C(1) << 32 | (op->sequence & 0xffffffff); /* no tag of a message */
  comm->deadline = deadline_after(op->timeout_ns);
  return comm->collectives->run(comm->host, comm->algorithms, op, err);
}

static void abandon_collective(void* context, const dtrun_op* op) {
  dtrun_backend_comm* const comm = context;
  (void)op;
  fail(comm->links, DTRUN_TIMEOUT, -1,
       "timed out behind another call; look at what the other ranks are doing");
}

/* ---- the slots ------------------------------------------------------------------------ */

static dtrun_status query_caps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  dtrun_backend_caps caps;
  (void)self;
  (void)err;
  DTRUN_INIT(caps);
  caps.features = DTRUN_CAP_ABORT;
  caps.ops = (UINT64_C(2) << DTRUN_SCATTERV) - 2;
  caps.dtypes = (UINT64_C(2) << DTRUN_COMPLEX128) - 2;
  caps.reduces = (UINT64_C(2) << DTRUN_LOR) - 2;
  caps.reduce_dtypes = caps.dtypes;
  caps.device_kinds = UINT64_C(1) << DTRUN_DEVICE_HOST;
  dtrun_struct_write(out, &caps, sizeof caps); /* the caller's may be shorter */
  return DTRUN_OK;
}

static dtrun_status understand(uint32_t flags, dtrun_error* err) {
  if ((flags & DTRUN_FLAGS_MUST_UNDERSTAND) == 0) return DTRUN_OK;
  return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "the call has a flag that tcp_c does not know");
}

static void comm_destroy(dtrun_backend_comm* comm) {
  comm->calls->close(comm->host, comm->queue);
  comm->collectives->close(comm->host, comm->algorithms);
  if (comm->links != NULL) close_links(comm->links);
  free(comm);
}

static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* params,
                                dtrun_backend_comm** out, dtrun_error* err) {
  const dtrun_host* const host = self->host;
  dtrun_messenger messenger;
  dtrun_runner runner;
  dtrun_backend_comm* comm;
  dtrun_status status = understand(params->flags, err);
  if (status != DTRUN_OK) return status;
  comm = calloc(1, sizeof *comm);
  if (comm == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a communicator");
  comm->host = host;
  comm->kernels = host->get_service(host, DTRUN_KERNELS_SERVICE);
  comm->calls = host->get_service(host, DTRUN_CALLS_SERVICE);
  comm->collectives = host->get_service(host, DTRUN_COLLECTIVES_SERVICE);

  DTRUN_INIT(messenger);
  messenger.context = comm;
  messenger.rank = params->rank;
  messenger.size = params->size;
  messenger.send = messenger_send;
  messenger.recv = messenger_recv;
  messenger.wait = messenger_wait;
  messenger.cancel = messenger_cancel;
  DTRUN_INIT(runner);
  runner.context = comm;
  runner.run = run_collective;
  runner.abandon = abandon_collective;
  status = comm->collectives->open(host, &messenger, &comm->algorithms, err);
  if (status == DTRUN_OK)
    status = comm->calls->open(host, &runner, params->size, "tcp-calls", &comm->queue, err);
  if (status == DTRUN_OK) status = open_links(host, params, &comm->links, err);
  if (status != DTRUN_OK) {
    comm_destroy(comm);
    return status;
  }
  *out = comm;
  return DTRUN_OK;
}

static dtrun_status comm_abort(dtrun_backend_comm* comm, const dtrun_abort_params* params, dtrun_error* err) {
  const dtrun_status status = understand(params->flags, err);
  dtrun_abort_params given;
  if (status != DTRUN_OK) return status;
  dtrun_struct_read(&given, sizeof given, params);
  fail(comm->links, DTRUN_ABORTED, -1, given.reason.size == 0 ? "aborted" : given.reason.data);
  return DTRUN_OK;
}

static dtrun_status enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                            dtrun_request** out, dtrun_error* err) {
  const struct header header = {op->tag, op->count * comm->kernels->element_bytes(comm->host, op->dtype)};
  dtrun_status status = failure_of(comm->links, err);
  dtrun_request* request;
  (void)stream;
  if (status == DTRUN_OK) status = understand(op->flags, err);
  if (status != DTRUN_OK) return status;
  if (op->kind == DTRUN_SEND) return send_message(comm->links, op->peer, header, op->send, err);
  request = calloc(1, sizeof *request);
  if (request == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for a request");
  request->comm = comm;
  if (op->kind == DTRUN_RECV) {
    request->receive.peer = op->peer;
    request->receive.header = header;
    request->receive.data = op->recv;
    request->receive.deadline = deadline_after(op->timeout_ns);
    start_receive(comm->links, &request->receive);
    status = DTRUN_PENDING;
  } else {
    status = comm->calls->enqueue(comm->host, comm->queue, op, &request->call, err);
  }
  if (status == DTRUN_PENDING) {
    *out = request;
  } else {
    free(request);
  }
  return status;
}

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  dtrun_backend_comm* const comm = request->comm;
  if (request->call == NULL) return wait_receive(comm->links, &request->receive, timeout_ns, err);
  return comm->calls->wait(comm->host, request->call, timeout_ns, err);
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) {
  return req_wait_host(request, 0, err);
}

static void req_release(dtrun_request* request) {
  if (request->call == NULL) wait_receive(request->comm->links, &request->receive, -1, NULL);
  request->comm->calls->release(request->comm->host, request->call);
  free(request);
}

/* ---- what programs may ask ------------------------------------------------------------- */

static dtrun_status read_counters(dtrun_backend_comm* comm, link_counts* out, dtrun_error* err) {
  link_counts counts;
  (void)err;
  pthread_mutex_lock(&comm->links->mutex);
  counts = comm->links->counts;
  pthread_mutex_unlock(&comm->links->mutex);
  dtrun_struct_write(out, &counts, sizeof counts);
  return DTRUN_OK;
}

static const void* get_extension(dtrun_instance* self, const char* id) {
  static const link_counters counters = {sizeof counters, 0, read_counters};
  (void)self;
  return strcmp(id, LINK_COUNTERS) == 0 ? &counters : NULL;
}

/* ---- the plugin ------------------------------------------------------------------------ */

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  const char* const needs[] = {DTRUN_MEMORY_SERVICE,    DTRUN_THREADS_SERVICE,     DTRUN_HEALTH_SERVICE,
                               DTRUN_KERNELS_SERVICE,   DTRUN_COLLECTIVES_SERVICE, DTRUN_CALLS_SERVICE,
                               DTRUN_MEMBERSHIP_SERVICE};
  dtrun_status status = understand(params->flags, err);
  dtrun_instance* self;
  size_t i;
  if (status != DTRUN_OK) return status;
  for (i = 0; i < sizeof needs / sizeof *needs; ++i) {
    if (host->get_service(host, needs[i]) != NULL) continue;
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1,
                           "this dtrun lacks a service that tcp_c needs; upgrade dtrun");
  }
  self = calloc(1, sizeof *self);
  if (self == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "no memory for the plugin");
  self->host = host;
  *out = self;
  return DTRUN_OK;
}

static void shutdown_instance(dtrun_instance* self) { free(self); }

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_backend backend;
  static dtrun_plugin plugin;
  (void)host;
  (void)err;
  DTRUN_INIT(backend);
  backend.query_caps = query_caps;
  backend.comm_create = comm_create;
  backend.comm_destroy = comm_destroy;
  backend.comm_abort = comm_abort;
  backend.enqueue = enqueue;
  backend.req_test = req_test;
  backend.req_wait_host = req_wait_host;
  backend.req_release = req_release;

  DTRUN_PLUGIN_INIT(plugin);
  plugin.kind = DTRUN_KIND_BACKEND;
  plugin.name = "tcp_c";
  plugin.version = "1.0";
  plugin.vendor = "dtrun examples";
  plugin.license = "Apache-2.0";
  plugin.summary = "messages and collectives over TCP, in C";
  plugin.init = init;
  plugin.shutdown = shutdown_instance;
  plugin.backend = &backend;
  plugin.get_extension = get_extension;
  *out = &plugin;
  return DTRUN_OK;
}
