/* golden_driver.c - a host whose structs are longer or shorter than those the plugin was compiled with.
 *
 *   golden_driver libdtrun_backend_x.so DELTA     DELTA: bytes, such as -8 or 64
 *
 * Loads a backend or a launcher and calls all that a host calls, once, as a world of one rank. Exit code 0:
 * the plugin read and wrote nothing behind struct_size, kept what it does not know, and did its work. One
 * thread.
 */
#include <dlfcn.h>

#include "services.h"

static int delta;

static dtrun_error* new_error(void) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  return SIZED(error, delta);
}

/* What a refusal leaves in the caller's error. */
static void require_told(const dtrun_error* err, dtrun_status code) {
  const size_t room = sizeof err->message < err->struct_size - offsetof(dtrun_error, message)
                          ? sizeof err->message
                          : err->struct_size - offsetof(dtrun_error, message);
  REQUIRE(is_kept(err, sizeof *err, delta));
  REQUIRE(err->code == code && err->peer == -1);
  REQUIRE(err->message[0] != '\0' && memchr(err->message, '\0', room) != NULL);
}

static const dtrun_host* new_host(int32_t kind, int by) {
  dtrun_host host;
  DTRUN_INIT(host);
  host.abi_major = DTRUN_ABI_MAJOR;
  host.abi_minor = DTRUN_ABI_MINOR;
  host.kind = kind;
  host.product.data = "golden 0";
  host.product.size = 8;
  host.get_service = get_service;
  return SIZED(host, by);
}

static dtrun_op sum_of(const double* send, double* recv, uint64_t sequence) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = DTRUN_ALLREDUCE;
  op.dtype = DTRUN_FLOAT64;
  op.reduce = DTRUN_SUM;
  op.root = op.peer = -1;
  op.sequence = sequence;
  op.count = 3;
  op.send = send;
  op.recv = recv;
  op.timeout_ns = INT64_C(10000000000);
  return op;
}

static void drive_operations(const dtrun_backend* backend, dtrun_backend_comm* comm) {
  const double send[3] = {1, 2, 3};
  double recv[3] = {0, 0, 0};
  dtrun_op op = sum_of(send, recv, 1);
  dtrun_request* request = NULL;
  dtrun_error* err = new_error();
  const dtrun_op* caller_op = SIZED(op, delta);
  const dtrun_status started = backend->enqueue(comm, caller_op, NULL, &request, err);
  REQUIRE(started == DTRUN_OK || started == DTRUN_PENDING);
  if (started == DTRUN_PENDING) {
    REQUIRE(request != NULL);
    REQUIRE(backend->req_wait_host(request, -1, err) == DTRUN_OK);
    REQUIRE(backend->req_test(request, err) == DTRUN_OK);
    backend->req_release(request);
  }
  REQUIRE(memcmp(send, recv, sizeof recv) == 0);
  REQUIRE(is_kept(err, sizeof *err, delta) && is_kept(caller_op, sizeof op, delta));

  op = sum_of(send, recv, 2);
  op.kind = DTRUN_VENDOR_FIRST;
  REQUIRE(backend->enqueue(comm, SIZED(op, delta), NULL, &request, err) == DTRUN_UNSUPPORTED);
  require_told(err, DTRUN_UNSUPPORTED);
}

static void drive_backend(const dtrun_backend* table, dtrun_instance* self) {
  dtrun_backend backend;
  dtrun_backend_caps caps, *told;
  dtrun_comm_params params;
  const dtrun_comm_params* caller_params;
  dtrun_backend_comm* comm = NULL;
  dtrun_error* err = new_error();
  memset(&backend, 0, sizeof backend);
  memcpy(&backend, table, table->struct_size < sizeof backend ? table->struct_size : sizeof backend);
  DTRUN_INIT(caps);
  told = SIZED(caps, delta);
  REQUIRE(backend.query_caps(self, told, err) == DTRUN_OK);
  REQUIRE(is_kept(told, sizeof caps, delta) && is_kept(err, sizeof *err, delta));
  REQUIRE((told->ops & 1u << DTRUN_ALLREDUCE) != 0);
  DTRUN_INIT(params);
  params.size = params.host_count = 1;
  params.name.data = "world";
  params.name.size = 5;
  params.timeout_ns = INT64_C(10000000000);
  params.device_index = -1;
  caller_params = SIZED(params, delta);
  REQUIRE(backend.comm_create(self, caller_params, &comm, err) == DTRUN_OK);
  REQUIRE(is_kept(caller_params, sizeof params, delta) && is_kept(err, sizeof *err, delta));
  drive_operations(&backend, comm);
  backend.comm_destroy(comm);
}

static const char* inherited(const dtrun_job* job, const char* name) {
  (void)job;
  (void)name;
  return NULL;
}

/* Ranks that the launcher has planned. */
static dtrun_status count_process(void* context, const dtrun_process* process, dtrun_error* err) {
  (void)err;
  REQUIRE(process->host_index >= 0 && process->host_index < 2 && process->rank_count > 0);
  *(int*)context += process->rank_count;
  return DTRUN_OK;
}

static dtrun_status ignore_note(void* context, dtrun_string text, dtrun_error* err) {
  (void)context;
  (void)text;
  (void)err;
  return DTRUN_OK;
}

static void drive_launcher(const dtrun_launcher* table, dtrun_instance* self) {
  static const char* const argv[] = {"./train"};
  dtrun_job_host hosts[2];
  dtrun_job job;
  dtrun_plan_sink sink;
  const dtrun_job* caller_job;
  dtrun_error* err = new_error();
  int i, planned = 0;
  for (i = 0; i < 2; ++i) {
    DTRUN_INIT(hosts[i]);
    hosts[i].name = i == 0 ? "a" : "b";
    hosts[i].first_rank = 2 * i;
    hosts[i].local_size = 2;
    hosts[i].cores = 4;
  }
  DTRUN_INIT(job);
  job.name = "golden";
  job.argv = argv;
  job.argc = 1;
  job.cwd = "/";
  job.hosts = sized_array(hosts, 2, sizeof hosts[0], delta);
  job.host_count = 2;
  job.world_size = 4;
  job.master_addr = "127.0.0.1";
  job.master_port = "1";
  job.inherited = inherited;
  job.run_dir = job.generation = job.program = job.bind = "";
  caller_job = SIZED(job, delta);
  DTRUN_INIT(sink);
  sink.context = &planned;
  sink.process = count_process;
  sink.note = ignore_note;
  REQUIRE(table->plan(self, caller_job, SIZED(sink, delta > 0 ? delta : 0), err) == DTRUN_OK);
  REQUIRE(planned == 4);
  REQUIRE(is_kept(caller_job, sizeof job, delta) && is_kept(err, sizeof *err, delta));
}

int main(int argc, char** argv) {
  const dtrun_plugin* table = NULL;
  dtrun_instance* self = NULL;
  dtrun_plugin_entry entry;
  dtrun_error* err;
  void *library, *symbol;
  int32_t kind;
  REQUIRE(argc == 3);
  table_delta = delta = atoi(argv[2]);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  REQUIRE(library != NULL);
  symbol = dlsym(library, DTRUN_PLUGIN_ENTRY_SYMBOL);
  REQUIRE(symbol != NULL);
  memcpy(&entry, &symbol, sizeof entry);
  kind = strstr(argv[1], "libdtrun_launcher_") != NULL ? DTRUN_KIND_LAUNCHER : DTRUN_KIND_BACKEND;

  err = new_error();
  if (delta < 0) { /* a table that ends before get_service has none: to take it is as good as to refuse it */
    const int without = (int)offsetof(dtrun_host, get_service) - (int)sizeof(dtrun_host);
    const dtrun_status status = entry(new_host(kind, without), &table, err);
    REQUIRE(status == DTRUN_OK || status == DTRUN_FAILED_PRECONDITION);
    REQUIRE((status == DTRUN_OK) == (table != NULL));
    if (status != DTRUN_OK) require_told(err, status);
    err = new_error();
    table = NULL;
  }
  REQUIRE(entry(new_host(kind, delta > 0 ? delta : 0), &table, err) == DTRUN_OK);
  REQUIRE(table->magic == DTRUN_PLUGIN_MAGIC && table->abi_major == DTRUN_ABI_MAJOR && table->kind == kind);
  REQUIRE(table->init(new_host(kind, delta > 0 ? delta : 0), NULL, &self, err) == DTRUN_OK);
  if (kind == DTRUN_KIND_BACKEND) {
    drive_backend(table->backend, self);
  } else {
    drive_launcher(table->launcher, self);
  }
  table->shutdown(self);
  REQUIRE(is_kept(err, sizeof *err, delta));
  return 0;
}
