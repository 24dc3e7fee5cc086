/* processes.c - a backend with one fault, or none, its ranks processes: the example tcp_c, and what is done
 * to its calls. Copied once for each fault (faults.h); without one it passes the suite.
 */
#include "dtrun/abi.h"
#include "faults.h"

/* Its entry is called by the one below. */
#define dtrun_plugin_entry_v1 tcp_c_entry
dtrun_status tcp_c_entry(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err);
#include "sdk/examples/tcp_c/tcp.c"
#undef dtrun_plugin_entry_v1

static const dtrun_host* real_host;

/* The communicator that was made last from another one, and the ranks of that one that its ranks are. */
static const dtrun_backend_comm* part;
static const dtrun_kv* kv_of_part;
static int32_t ranks_of_part[64];

static void blame(const dtrun_backend_comm* comm, dtrun_status status, dtrun_error* err) {
  const int32_t size = comm->links->size;
  const struct timespec notice = {FAULT(LATE_NOTICE) ? 9 : 0, 0};
  if (status != DTRUN_REMOTE_FAILURE) return;
  nanosleep(&notice, NULL);
  if (err == NULL) return;
  if (FAULT(BLAMES_NEIGHBOUR) && size > 3) err->peer = (err->peer + 1) % size;
  if (FAULT(BLAMES_RANK_ONE)) err->peer = 1;
  if (FAULT(BLAMES_IN_PARENT) && comm == part && err->peer >= 0) err->peer = ranks_of_part[err->peer];
}

static dtrun_status enqueue_with_fault(dtrun_backend_comm* comm, const dtrun_op* given,
                                       const dtrun_stream* stream, dtrun_request** out, dtrun_error* err) {
  dtrun_op op;
  dtrun_struct_read(&op, sizeof op, given);
  if (FAULT(IMPATIENT) && op.timeout_ns > 800000000) op.timeout_ns = 800000000;
  if (FAULT(LARGE_HAVE_NO_DEADLINE) && op.count > 1000000) op.timeout_ns = -1;
  const dtrun_status status = enqueue(comm, &op, stream, out, err);
  blame(comm, status, err);
  return status;
}

static dtrun_status wait_with_fault(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  const dtrun_status status = req_wait_host(request, timeout_ns, err);
  blame(request->comm, status, err);
  return status;
}

static dtrun_status test_with_fault(dtrun_request* request, dtrun_error* err) {
  return wait_with_fault(request, 0, err);
}

static void report_otherwise(const dtrun_host* host, dtrun_kv* kv, int32_t peer, dtrun_string what) {
  const dtrun_health_service* const health = real_host->get_service(real_host, DTRUN_HEALTH_SERVICE);
  (void)host;
  if (FAULT(REPORTS_NOBODY)) return;
  health->report_peer(real_host, kv, kv == kv_of_part && peer >= 0 ? ranks_of_part[peer] : peer, what);
}

static const void* get_service(const dtrun_host* host, const char* id) {
  static dtrun_health_service health;
  (void)host;
  if (strcmp(id, DTRUN_HEALTH_SERVICE) != 0) return real_host->get_service(real_host, id);
  health = *(const dtrun_health_service*)real_host->get_service(real_host, id);
  health.report_peer = report_otherwise;
  return &health;
}

static dtrun_status create_with_fault(dtrun_instance* self, const dtrun_comm_params* given,
                                      dtrun_backend_comm** out, dtrun_error* err) {
  static dtrun_host deaf;
  dtrun_comm_params params;
  dtrun_struct_read(&params, sizeof params, given);
  if (FAULT(LATE_CREATE) && params.timeout_ns >= 0) params.timeout_ns += 6000000000;
  const dtrun_backend_comm* const parent = params.parent;
  if (FAULT(NEEDS_A_LIVING_PARENT) && parent != NULL && parent->links->failure.code != DTRUN_OK)
    return dtrun_error_set(err, DTRUN_FAILED_PRECONDITION, -1,
                           "the communicator that it is made of has failed");
  if ((FAULT(REPORTS_NOBODY) || FAULT(REPORTS_IN_PARENT)) && self->host != &deaf) {
    real_host = self->host;
    deaf = *real_host;
    deaf.get_service = get_service;
    self->host = &deaf;
  }
  const dtrun_status status = comm_create(self, &params, out, err);
  if (status == DTRUN_OK && parent != NULL && params.size <= 64) {
    part = *out;
    kv_of_part = params.kv;
    memcpy(ranks_of_part, params.parent_ranks, (size_t)params.size * sizeof *ranks_of_part);
  }
  return status;
}

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_backend backend;
  static dtrun_plugin plugin;
  const dtrun_plugin* tcp_c = NULL;
  const dtrun_status status = tcp_c_entry(host, &tcp_c, err);
  if (status != DTRUN_OK) return status;
  find_fault();
  plugin = *tcp_c;
  backend = *tcp_c->backend;
  plugin.name = this_plugin.name;
  plugin.backend = &backend;
  backend.comm_create = create_with_fault;
  backend.enqueue = enqueue_with_fault;
  backend.req_test = test_with_fault;
  backend.req_wait_host = wait_with_fault;
  *out = &plugin;
  return DTRUN_OK;
}
