/* backend.c - a backend with one fault, or none: its ranks are threads of one process. Copied once for each
 * fault (faults.h). Without a fault it is a backend of both profiles that passes the suite.
 */
#include "dtrun/abi/structs.h"
#include "exchange.h"
#include "joining.h"
#include "trace.h"

void throw_from_a_library(void);

static dtrun_status refuse(dtrun_error* err) {
  return report(err, DTRUN_UNSUPPORTED, -1,
                "a flag that must be understood is not known here; use a newer backend");
}

static dtrun_status query_caps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  const uint64_t types = 1u << DTRUN_FLOAT16 | 1u << DTRUN_BFLOAT16 | 1u << DTRUN_FLOAT32 |
                         1u << DTRUN_FLOAT64 | 1u << DTRUN_INT32 | 1u << DTRUN_INT64 | 1u << DTRUN_UINT8 |
                         (FAULT(CLAIMS_TYPE) ? 1u << DTRUN_INT16 : 0u);
  static int calls;
  (void)self;
  if (FAULT(ERROR_WITH_OK)) dtrun_error_set(err, DTRUN_INTERNAL, -1, "nothing has failed");
  out->features = DTRUN_CAP_ABORT | (FAULT(SOUND_LOSSY) ? DTRUN_CAP_LOSSY : 0u) |
                  (FAULT(CONNECTS_EARLY) ? DTRUN_CAP_LAZY_CONNECT : 0u) | (FAULT(CLAIMS_BIT) ? 1u << 12 : 0u);
  out->ops = 1u << DTRUN_ALLREDUCE | 1u << DTRUN_BROADCAST | 1u << DTRUN_ALLGATHER |
             1u << DTRUN_REDUCE_SCATTER | 1u << DTRUN_BARRIER | 1u << DTRUN_ALLGATHERV |
             (FAULT(NO_MESSAGES) ? 0u : 1u << DTRUN_SEND | 1u << DTRUN_RECV);
  out->dtypes = FAULT(CLAIMS_FUTURE) ? ~UINT64_C(1) : types;
  out->reduce_dtypes = FAULT(CLAIMS_FUTURE) ? ~UINT64_C(1) : types;
  out->reduces = 1u << DTRUN_SUM | 1u << DTRUN_PROD | 1u << DTRUN_MIN | 1u << DTRUN_MAX | 1u << DTRUN_AVG |
                 1u << DTRUN_PREMUL_SUM;
  out->max_bytes = FAULT(SMALL_LIMIT) ? 1u << 20 : FAULT(CAPS_CHANGE) && ++calls > 20 ? 1u << 29 : 1u << 30;
  out->device_kinds = 1u << DTRUN_DEVICE_HOST;
  if (FAULT(LONGER_CAPS)) memset(out + 1, 0, 8);
  return DTRUN_OK;
}

static dtrun_status query_support(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  static int calls;
  (void)self;
  if (!FAULT(IGNORES_SUPPORT_FLAGS) && (query->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  if (FAULT(SUPPORT_CHANGES) && ++calls > 60) return report(err, DTRUN_UNSUPPORTED, -1, "not any more");
  if (!FAULT(SUPPORT_FAILS)) return DTRUN_OK;
  return dtrun_error_set(err, DTRUN_FAILED_PRECONDITION, -1, "this has to be found out by trying");
}

static dtrun_status launch_info(dtrun_instance* self, const dtrun_launch_query* query,
                                const dtrun_launch_sink* given, dtrun_error* err) {
  const char* const text = FAULT(BAD_FACT) ? "stra\xdf"
                                             "e"
                                           : "threads of one process";
  dtrun_launch_sink sink;
  dtrun_status status;
  (void)self;
  if (!FAULT(IGNORES_LAUNCH_FLAGS) && (query->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  if (!FAULT(IGNORES_SINK_FLAGS) && (given->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  if (FAULT(LAUNCH_TOUCHES)) touch_once();
  dtrun_struct_read(&sink, sizeof sink, given);
  if (sink.fact == NULL || sink.env == NULL)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "this dtrun is too old; upgrade it");
  status = sink.fact(sink.context, FAULT(UNUSABLE_JOINS) ? "unusable" : "wire",
                     (dtrun_string){text, strlen(text)}, err);
  if (status != DTRUN_OK) return status;
  status = sink.env(sink.context, "BROKEN_WIRE", FAULT(NULL_VARIABLE) ? NULL : "threads", err);
  return FAULT(LAUNCH_IS_DEAF) ? DTRUN_OK : status;
}

static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* given,
                                dtrun_backend_comm** out, dtrun_error* err) {
  dtrun_comm_params params = {0};
  const int64_t deadline = deadline_of(given->timeout_ns);
  dtrun_status status;
  if (!FAULT(IGNORES_COMM_FLAGS) && (given->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  if (FAULT(EXITS) && given->rank == 0) exit(0);
  if (FAULT(EXITS)) pause_for(1000000000);  // two threads in exit crash
  if (has_ended) return report(err, DTRUN_FAILED_PRECONDITION, -1, "it has been shut down");
  if (FAULT(NEEDS_A_LIMIT) && given->timeout_ns < 0)
    return report(err, DTRUN_INVALID_ARGUMENT, -1, "it needs a time limit");
  if (FAULT(CREATE_TOUCHES)) touch_once();
  if (FAULT(READS_HOSTS) && given->hosts[0] < 0) return DTRUN_INTERNAL;
  if (FAULT(OUT_UNTOUCHED)) return DTRUN_OK;
  leak_of_create();
  memcpy(&params, given, given->struct_size < sizeof params ? given->struct_size : sizeof params);
  pthread_once(&once, make_changed);
  dtrun_backend_comm* const comm = calloc(1, sizeof *comm);
  if (comm == NULL) return report(err, DTRUN_OUT_OF_MEMORY, -1, "out of memory");
  comm->rank = params.rank;
  comm->host = self->host;
  status = find_world(self, &params, &comm->world, err);
  if (status == DTRUN_OK) status = join(comm, deadline, err);
  for (int32_t rank = 0; FAULT(CONNECTS_EARLY) && rank < 2 * params.size; ++rank) comm->files[rank] = dup(2);
  if (status == DTRUN_OK) start_idle(comm);
  if (status == DTRUN_OK || FAULT(WRITES_OUT)) *out = comm;
  has_made |= status == DTRUN_OK;
  if (status != DTRUN_OK && !FAULT(WRITES_OUT)) forget(self, &params, comm);
  return status;
}

static void comm_destroy(dtrun_backend_comm* comm) {
  struct world* const world = comm->world;
  const int64_t patience = now() + (FAULT(DROPS_SENT) ? 1000000000 : 60000000000);
  if (FAULT(FORKS_AND_WAITS)) fork_and_wait();
  if (FAULT(SLOW_DESTROY) && comm->failed != DTRUN_OK) pause_for(30000000000);
  stop_idle(comm);
  pthread_mutex_lock(&lock);
  while (hands_over(comm) && now() < patience) sleep_until(patience);
  world->blamed[comm->rank] = comm->failed == DTRUN_REMOTE_FAILURE ? comm->culprit : comm->rank;
  leak_descriptor(comm);
  fail(comm, DTRUN_REMOTE_FAILURE, comm->rank, "the rank has left");
  world->members[comm->rank] = NULL;
  for (int32_t rank = 0; FAULT(CONNECTS_EARLY) && rank < 2 * world->size; ++rank) close(comm->files[rank]);
  const int last = ++world->left == world->size;
  pthread_mutex_unlock(&lock);
  free(comm);
  if (last && !FAULT(LEAKS_OF_COMMUNICATORS)) free(world);
}

static dtrun_status comm_abort(dtrun_backend_comm* comm, const dtrun_abort_params* params, dtrun_error* err) {
  const int has_reason = params->struct_size >= sizeof *params && params->reason.size > 0;
  if (!FAULT(IGNORES_ABORT_FLAGS) && (params->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  if (FAULT(ABORT_IS_DEAF)) return DTRUN_OK;
  if (FAULT(ABORT_TOUCHES)) touch_once();
  if (FAULT(SLOW_ABORT)) pause_for(8000000000);
  pthread_mutex_lock(&lock);
  if (FAULT(LAST_ABORT_STAYS)) comm->failed = DTRUN_OK;
  fail(comm, DTRUN_ABORTED, -1, has_reason ? params->reason.data : "aborted");
  pthread_mutex_unlock(&lock);
  return DTRUN_OK;
}

static dtrun_status outcome(dtrun_request* request, dtrun_error* err) {
  if (FAULT(CHANGES_OUTCOME) && ++request->looks > 2)
    return report(err, DTRUN_INTERNAL, -1, "a change of mind");
  if (FAULT(UNKNOWN_STATUS)) return report(err, 99, -1, "a status of its own");
  if (FAULT(OUTCOME_FOLLOWS) && request->comm->failed != DTRUN_OK)
    return report(err, request->comm->failed, -1, request->comm->reason);
  if (request->status == DTRUN_OK) return DTRUN_OK;
  return report(err, request->status, request->peer, request->text);
}

static void release(dtrun_request* request) {
  static int number;
  write_after_failure(request);
  if (!FAULT(LEAKS_ARRAYS)) free(request->arrays);
  if (!FAULT(LEAKS_MEMORY)) free(request);
  if (FAULT(LEAKS_SOME) && ++number % 16 == 0) lost_memory = malloc(24); /* as if it were a small one */
}

static void match(dtrun_request* request) {
  if (is_message(&request->op))
    match_message(request);
  else
    match_collective(request);
}

static dtrun_status enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                            dtrun_request** out, dtrun_error* err) {
  (void)stream;
  if (FAULT(THROWS)) throw_from_a_library();
  if (FAULT(SENDS_AFTER_ABORT) && comm->failed == DTRUN_ABORTED && op->kind == DTRUN_SEND) return DTRUN_OK;
  print();
  const uint32_t refused = DTRUN_FLAGS_MUST_UNDERSTAND & ~(FAULT(FORGETS_A_BIT) ? 1u << 20 : 0u);
  if (!FAULT(IGNORES_FLAGS) && (op->flags & refused) != 0) return refuse_flags(comm, op, err);
  if (FAULT(REFUSES_EMPTY) && op->count == 0 && op->kind != DTRUN_BARRIER)
    return report(err, DTRUN_INVALID_ARGUMENT, -1, "nothing to move");
  if (FAULT(CLAIMS_BYTES) && op->count > 64u << 20)
    return report(err, DTRUN_UNSUPPORTED, -1, "more than 64 MiB in one message");
  if (FAULT(CLAIMS_TYPE) && op->dtype == DTRUN_INT16)
    return report(err, DTRUN_UNSUPPORTED, -1, "no int16 here");
  dtrun_request* const request = calloc(1, sizeof *request);
  if (request == NULL) return report(err, DTRUN_OUT_OF_MEMORY, -1, "out of memory");
  memcpy(&request->op, op, sizeof *op);
  if (FAULT(READS_BEHIND)) read_behind(op, sizeof *op);
  request->comm = comm;
  request->given = op;
  keep_arrays(request, op);
  request->deadline = deadline_of(request->op.timeout_ns);
  if (FAULT(BLOCKING_RECEIVES) && op->kind == DTRUN_RECV && op->flags != 0) request->deadline = INT64_MAX;
  if (FAULT(SENDS_HAVE_NO_DEADLINE) && op->kind == DTRUN_SEND) request->deadline = INT64_MAX;
  if (FAULT(LATE_DEADLINE) && request->deadline != INT64_MAX) request->deadline += 10000000000;
  pthread_mutex_lock(&lock);
  expire(comm->world);
  const int32_t gone = comm->failed == DTRUN_OK ? lost(request) : -1;
  if (gone >= 0) {
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "rank %d has failed or left", gone);
    fail(comm, DTRUN_REMOTE_FAILURE, gone, text);
  }
  if (comm->failed != DTRUN_OK || gone >= 0) {
    const dtrun_status status = report(err,
                                       gone >= 0                   ? DTRUN_REMOTE_FAILURE
                                       : FAULT(ABORT_IS_FORGOTTEN) ? DTRUN_INTERNAL
                                                                   : comm->failed,
                                       comm->culprit, comm->reason);
    pthread_mutex_unlock(&lock);
    free(request);
    return status;
  }
  dtrun_request** end = &comm->running;
  while (*end != NULL) end = &(*end)->next;
  *end = request;
  if (!FAULT(MOVES_WHEN_SEEN) || is_message(&request->op)) match(request);
  while (FAULT(SHORT_QUEUE) && request->op.kind == DTRUN_SEND && !request->done && sends(comm) > 8)
    sleep_until(INT64_MAX);
  while (blocks(request) && !request->done) sleep_until(INT64_MAX);
  const int done = request->done;
  pthread_mutex_unlock(&lock);
  if (done && request->status == DTRUN_OK) {
    if (FAULT(OUT_WITH_OK)) *out = request;
    release(request);
    return DTRUN_OK;
  }
  if (!FAULT(PENDING_ALONE)) *out = request;
  return DTRUN_PENDING;
}

/* Waits until it is done, at most until `deadline`. */
static dtrun_status wait_for(dtrun_request* request, int64_t deadline, dtrun_error* err) {
  dtrun_status status = DTRUN_PENDING;
  pthread_mutex_lock(&lock);
  if (FAULT(ONE_WAITER) && request->waited && !pthread_equal(request->waiter, pthread_self())) {
    pthread_mutex_unlock(&lock);
    return report(err, DTRUN_FAILED_PRECONDITION, -1, "another thread has waited for it already");
  }
  request->waited = 1;
  request->waiter = pthread_self();
  if (FAULT(MOVES_WHEN_SEEN) && !request->done && !is_message(&request->op)) match(request);
  if (FAULT(FIRST_IS_LATE) && request->op.sequence == 1 && request->looks++ == 0) deadline = 0;
  for (;;) {
    if (!request->done) expire(request->comm->world);
    if (request->done || now() >= deadline) break;
    const int64_t first = next_deadline(request->comm->world);
    sleep_until(first < deadline ? first : deadline);
  }
  if (FAULT(MESSAGES_EXPIRE) && request->status == DTRUN_OK && request->deadline <= now())
    status = report(err, DTRUN_TIMEOUT, -1, "not polled in time");
  else if (request->done && !(FAULT(FIRST_IS_LATE) && request->op.sequence == 1 && request->looks == 1))
    status = outcome(request, err);
  pthread_mutex_unlock(&lock);
  return status;
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) {
  if (FAULT(TEST_TOUCHES)) touch_once();
  if (FAULT(TEST_SLEEPS)) usleep(20000);
  if (FAULT(BLOCKING_IS_DEAF) && (request->op.flags & DTRUN_OP_BLOCKING) != 0) return DTRUN_PENDING;
  return wait_for(request, 0, err);
}

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  if (is_early_root(request)) return DTRUN_OK;
  if (FAULT(RETURNS_EARLY) && timeout_ns > 0) timeout_ns /= 10;
  if (FAULT(LATE_WAIT) && timeout_ns > 0) timeout_ns += 5000000000;
  if (FAULT(NO_LIMIT_IS_SHORT) && timeout_ns < 0) timeout_ns = 100000000;
  return wait_for(request, FAULT(WAITS_TOO_LONG) ? INT64_MAX : deadline_of(timeout_ns), err);
}

static void req_release(dtrun_request* request) {
  if (FAULT(RELEASES_EARLY) || (FAULT(RECEIVES_RELEASED_EARLY) && request->op.kind == DTRUN_RECV)) {
    pthread_mutex_lock(&lock);
    drop(request);
    pthread_mutex_unlock(&lock);
  } else {
    wait_for(request, INT64_MAX, NULL);
  }
  release(request);
}

static void snapshot(dtrun_backend_comm* comm, const dtrun_snapshot_sink* sink) {
  char text[TEXT_BYTES];
  int running = 0;
  if (!FAULT(IGNORES_SNAPSHOT_FLAGS) && (sink->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return;
  pthread_mutex_lock(&lock);
  for (const dtrun_request* one = comm->running; one != NULL; one = one->next) ++running;
  pthread_mutex_unlock(&lock);
  snprintf(text, sizeof text, "rank %d: %d operations run", comm->rank, running);
  if (!FAULT(SILENT_SNAPSHOT)) sink->line(sink->context, (dtrun_string){text, strlen(text)}, NULL);
}

/* Nothing here needs a group. */
static dtrun_status group_begin(dtrun_backend_comm* comm, const dtrun_group_params* params,
                                dtrun_error* err) {
  (void)comm;
  if (!FAULT(IGNORES_GROUP_FLAGS) && (params->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  return DTRUN_OK;
}

static dtrun_status group_end(dtrun_backend_comm* comm, const dtrun_group_params* params, dtrun_error* err) {
  (void)params;
  if (!FAULT(EMPTY_GROUP_FAILS) || comm->running != NULL) return DTRUN_OK;
  return report(err, DTRUN_INTERNAL, -1, "there is nothing in the group");
}

static dtrun_status mem_alloc(dtrun_backend_comm* comm, const dtrun_mem_params* given, void** out,
                              dtrun_error* err) {
  dtrun_mem_params params;
  void* memory = NULL;
  dtrun_struct_read(&params, sizeof params, given);
  if (!FAULT(IGNORES_MEMORY_FLAGS) && (params.flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  pthread_mutex_lock(&lock);
  const int aborted = comm->failed == DTRUN_ABORTED;
  pthread_mutex_unlock(&lock);
  if (aborted) return report(err, DTRUN_ABORTED, -1, comm->reason);
  const size_t alignment = params.alignment < sizeof(void*) ? sizeof(void*) : params.alignment;
  if (posix_memalign(&memory, alignment, params.bytes + 1) != 0)
    return report(err, DTRUN_OUT_OF_MEMORY, -1, "out of memory");
  memset(memory, FAULT(DIRTY_MEMORY) ? 7 : 0, params.bytes);
  *out = memory;
  return DTRUN_OK;
}

static void mem_free(dtrun_backend_comm* comm, void* memory) {
  (void)comm;
  free(memory);
}

static dtrun_status mem_register(dtrun_backend_comm* comm, const dtrun_mem_params* params, void* memory,
                                 dtrun_error* err) {
  (void)comm;
  if (!FAULT(IGNORES_MEMORY_FLAGS) && (params->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0) return refuse(err);
  if (FAULT(REGISTERING_CHANGES)) memset(memory, 7, 1);
  return DTRUN_OK;
}

static void mem_deregister(dtrun_backend_comm* comm, void* memory) { (void)comm, (void)memory; }

static void fill_kind(dtrun_plugin* plugin) {
  static dtrun_backend backend;
  DTRUN_INIT(backend);
  backend.launch_info = launch_info;
  backend.query_caps = query_caps;
  backend.comm_create = comm_create;
  backend.comm_destroy = comm_destroy;
  backend.comm_abort = comm_abort;
  backend.enqueue = enqueue;
  backend.req_test = req_test;
  backend.req_wait_host = req_wait_host;
  backend.req_release = req_release;
  backend.snapshot = snapshot;
  backend.query_support = query_support;
  backend.group_begin = group_begin;
  backend.group_end = group_end;
  backend.mem_alloc = mem_alloc;
  backend.mem_free = mem_free;
  backend.mem_register = mem_register;
  backend.mem_deregister = mem_deregister;
  plugin->kind = DTRUN_KIND_BACKEND;
  plugin->backend = &backend;
}
