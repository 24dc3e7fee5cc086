/* demo.c - a backend in plain C11 that works and does nothing, or has one fault.
 *
 * Built once for each fault; DTRUN_TEST_FAULT is a value of demo_faults.h, and
 * DTRUN_TEST_NAME the plugin's name.
 */
#define _DEFAULT_SOURCE /* usleep */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo_faults.h"
#include "dtrun/abi.h"

struct dtrun_instance {
  const dtrun_host* host;
  const dtrun_options* options;
};

__attribute__((constructor)) static void construct(void) {
  if (DTRUN_TEST_FAULT == FAULT_CRASHES_WHEN_LOADED && getenv("DTRUN_RANK") != NULL) raise(SIGSEGV);
  if (DTRUN_TEST_FAULT == FAULT_LOADING_ENDS_THREAD && getenv("DTRUN_RANK") != NULL) pthread_exit(NULL);
  const char* const path = FAULT_CONSTRUCTS == DTRUN_TEST_FAULT ? getenv("DEMO_CONSTRUCTED") : NULL;
  FILE* const file = path == NULL ? NULL : fopen(path, "w");
  if (file != NULL) fclose(file);
}

/* Clears a terminal, names its window, and begins a line. */
#define ESCAPES "\x1b[2J\x1b]0;window\a\n"

static void fail(dtrun_error* err, dtrun_status code, const char* text) {
  dtrun_error_set(err, code, -1, text);
}

static dtrun_string text(const char* words) { return (dtrun_string){words, strlen(words)}; }

/* Dies of the signal itself, even if a sanitizer handles it. */
static void crash(const char* last_words) {
  const ssize_t written = write(STDERR_FILENO, last_words, strlen(last_words));
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
  _exit(written < 0 ? 97 : 98);
}

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  const dtrun_options* const options = params->options;
  if (DTRUN_TEST_FAULT == FAULT_INIT_HANGS && host->in_probe == 0) {
    for (;;) pause();
  }
  if (DTRUN_TEST_FAULT == FAULT_INIT_EXITS && host->in_probe == 0) exit(0);
  if (DTRUN_TEST_FAULT == FAULT_INIT_REFUSES && host->in_probe == 0 && strcmp(getenv("RANK"), "1") == 0) {
    fail(err, DTRUN_UNSUPPORTED, "there is no licence for rank 1");
    return DTRUN_UNSUPPORTED;
  }
  if (DTRUN_TEST_FAULT == FAULT_INIT_IS_SILENT && host->in_probe == 0) return DTRUN_VENDOR;
  if (DTRUN_TEST_FAULT == FAULT_INIT_GIVES_NOTHING && host->in_probe == 0) return DTRUN_OK;
  while (DTRUN_TEST_FAULT == FAULT_INIT_HANGS_ON_ONE && host->in_probe == 0 &&
         strcmp(getenv("RANK"), "1") == 0)
    pause();
  dtrun_instance* self = malloc(sizeof *self);
  if (self == NULL) {
    fail(err, DTRUN_OUT_OF_MEMORY, "out of memory");
    return DTRUN_OUT_OF_MEMORY;
  }
  self->host = host;
  self->options = options;
  *out = self;
  return DTRUN_OK;
}

/* Whether it has communicators; their operations complete at once. */
__attribute__((weak)) void demo_throw(void);

static int works(void) {
  return DTRUN_TEST_FAULT == FAULT_OPERATION_EXITS || DTRUN_TEST_FAULT == FAULT_SHUTDOWN_EXITS ||
         DTRUN_TEST_FAULT == FAULT_DESTROY_HANGS || DTRUN_TEST_FAULT == FAULT_OPERATION_LEAVES ||
         DTRUN_TEST_FAULT == FAULT_THREAD_EXITS || DTRUN_TEST_FAULT == FAULT_REFUSES ||
         (DTRUN_TEST_FAULT >= FAULT_OPERATION_CRASHES && DTRUN_TEST_FAULT <= FAULT_OPERATION_HANGS) ||
         (DTRUN_TEST_FAULT >= FAULT_OPERATION_HANGS_ON_ONE && DTRUN_TEST_FAULT <= FAULT_DESTROY_THROWS) ||
         DTRUN_TEST_FAULT == FAULT_SUPPORT_HANGS || DTRUN_TEST_FAULT == FAULT_ENDS_THREAD ||
         DTRUN_TEST_FAULT == FAULT_SHUTDOWN_ENDS_THREAD || DTRUN_TEST_FAULT == FAULT_LEAKS_THREAD ||
         DTRUN_TEST_FAULT == FAULT_LIBRARY_CRASHES || DTRUN_TEST_FAULT == FAULT_OPERATION_IS_SILENT ||
         DTRUN_TEST_FAULT == FAULT_SUPPORT_FAILS || DTRUN_TEST_FAULT == FAULT_OPERATION_GIVES_NOTHING;
}

static void shutdown_instance(dtrun_instance* self) {
  if (DTRUN_TEST_FAULT == FAULT_SHUTDOWN_EXITS && self->host->in_probe == 0) exit(0);
  if (DTRUN_TEST_FAULT == FAULT_SHUTDOWN_ENDS_THREAD && self->host->in_probe == 0) pthread_exit(NULL);
  free(self);
}

/* Writes its pid to the file DEMO_DAEMON. */
static void leave_daemon(void) {
  const pid_t child = fork();
  if (child != 0) return;
  setsid();
  FILE* const file = fopen(getenv("DEMO_DAEMON"), "w");
  if (file != NULL) {
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
  }
  for (;;) pause();
}

static void wait_for_daemon(void) {
  struct stat info = {0};
  while (stat(getenv("DEMO_DAEMON"), &info) != 0 || info.st_size == 0) usleep(1000);
}

static char* volatile nowhere = (char*)8;

void crash_on_a_thread(void);

static sem_t stays;

static void say_start(const dtrun_host* host) {
  const dtrun_threads_service* threads = host->get_service(host, DTRUN_THREADS_SERVICE);
  threads->on_start(host, "demo");
}

static void* stay(void* host_of_it) {
  const dtrun_host* const host = host_of_it;
  say_start(host);
  sem_post(&stays);
  while (host != NULL) pause();
  return NULL;
}

/* Each call needs a page of the stack. */
static int overflow(int depth) {
  volatile char page[4096];
  page[depth % 4096] = (char)depth;
  return depth < 0 ? 0 : overflow(depth + 1) + page[depth % 4096];
}

static void* leave(void* host_of_it) {
  if (DTRUN_TEST_FAULT == FAULT_THREAD_ABORTS) abort();
  if (DTRUN_TEST_FAULT == FAULT_THREAD_JUMPS) {
    void (*volatile wild)(void) = (void (*)(void))(uintptr_t)nowhere;
    wild();
  }
  if (DTRUN_TEST_FAULT == FAULT_THREAD_OVERFLOWS) {
    say_start(host_of_it);
    overflow(0);
  }
  exit(0);
}

static dtrun_status launch_info(dtrun_instance* self, const dtrun_launch_query* query,
                                const dtrun_launch_sink* sink, dtrun_error* err) {
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_DAEMON || DTRUN_TEST_FAULT == FAULT_CRASH_DAEMON) {
    leave_daemon();
    wait_for_daemon();
  }
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_CRASHES || DTRUN_TEST_FAULT == FAULT_CRASH_DAEMON)
    crash("no device\n");
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_FAILS) {
    fail(err, DTRUN_VENDOR, "vendor library refused");
    return DTRUN_VENDOR;
  }
  const dtrun_options_service* options = self->host->get_service(self->host, DTRUN_OPTIONS_SERVICE);
  dtrun_string interface;
  const dtrun_status status = options->get_string(self->host, self->options, "interface", &interface, err);
  if (status != DTRUN_OK) return status;
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_TALKS) {
    dtrun_status told = DTRUN_OK;
    while (told == DTRUN_OK) told = sink->fact(sink->context, "once more", text("x"), err);
    return told;
  }
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_HUGE) {
    char* huge = malloc(100000001);
    if (huge == NULL) abort();
    memset(huge, 'x', 100000000);
    huge[100000000] = '\0';
    sink->fact(sink->context, "huge", text(huge), err);
    free(huge);
  }
  if (DTRUN_TEST_FAULT == FAULT_ESCAPES) {
    const dtrun_log_service* log = self->host->get_service(self->host, DTRUN_LOG_SERVICE);
    log->write(self->host, DTRUN_LOG_ERROR, ESCAPES "topic", text(ESCAPES "log"));
    sink->fact(sink->context, ESCAPES "key", text(ESCAPES "fact"), err);
  }
  sink->fact(sink->context, "library", text("demo 1.2"), err);
  sink->fact(sink->context, "hosts", text(query->host_count == 3 ? "three" : "some"), err);
  sink->fact(sink->context, "in_probe", text(self->host->in_probe == 1 ? "yes" : "no"), err);
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_NULL) sink->env(sink->context, "DEMO_RANK", NULL, NULL);
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_LONG) {
    static char value[200001];
    memset(value, 'x', sizeof value - 1);
    sink->env(sink->context, "DEMO_LONG", value, NULL);
  }
  if (DTRUN_TEST_FAULT == FAULT_LAUNCH_TWICE) sink->env(sink->context, "DEMO_INTERFACE", "again", NULL);
  return sink->env(sink->context, "DEMO_INTERFACE", interface.data, err);
}

static dtrun_status query_caps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  (void)self;
  (void)err;
  out->ops = 1u << DTRUN_BARRIER;
  out->device_kinds = 1u << DTRUN_DEVICE_HOST;
  if (works()) out->ops = out->dtypes = out->reduces = out->reduce_dtypes = ~UINT64_C(0);
  return DTRUN_OK;
}

/* Waits only for a key that is never set. */
static dtrun_status wait_in_vain(const dtrun_host* host, const dtrun_comm_params* params, dtrun_error* err) {
  const dtrun_kv_service* kv = host->get_service(host, DTRUN_KV_SERVICE);
  void* value = NULL;
  uint64_t bytes = 0;
  return kv->get(host, params->kv, text("rank 1"), params->timeout_ns, &value, &bytes, err);
}

static dtrun_status comm_create(dtrun_instance* self, const dtrun_comm_params* params,
                                dtrun_backend_comm** out, dtrun_error* err) {
  if (DTRUN_TEST_FAULT == FAULT_REFUSES && params->rank == 1) {
    fail(err, DTRUN_UNSUPPORTED, "there is no room for rank 1");
    return DTRUN_UNSUPPORTED;
  }
  while (DTRUN_TEST_FAULT == FAULT_CREATE_HANGS_ON_ONE && params->rank == 1) pause();
  if (DTRUN_TEST_FAULT == FAULT_CREATE_THROWS) demo_throw();
  if (DTRUN_TEST_FAULT == FAULT_INIT_HANGS_ON_ONE || DTRUN_TEST_FAULT == FAULT_CREATE_HANGS_ON_ONE) {
    (void)wait_in_vain(self->host, params, err);
    dtrun_error_set(err, DTRUN_TIMEOUT, 1, "rank 1 did not come");
    return DTRUN_TIMEOUT;
  }
  if (DTRUN_TEST_FAULT == FAULT_INIT_REFUSES || (DTRUN_TEST_FAULT == FAULT_REFUSES && params->rank == 0))
    return wait_in_vain(self->host, params, err);
  while (DTRUN_TEST_FAULT == FAULT_REFUSES && params->rank == 3) pause();
  if (works()) {
    *out = (dtrun_backend_comm*)self;
    return DTRUN_OK;
  }
  fail(err, DTRUN_UNSUPPORTED,
       DTRUN_TEST_FAULT == FAULT_ESCAPES ? ESCAPES "error" : "the demo makes no communicators");
  return DTRUN_UNSUPPORTED;
}

static void comm_destroy(dtrun_backend_comm* comm) {
  (void)comm;
  while (DTRUN_TEST_FAULT == FAULT_DESTROY_HANGS) pause();
  if (DTRUN_TEST_FAULT == FAULT_DESTROY_THROWS) demo_throw();
}

static dtrun_status enqueue(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                            dtrun_request** out, dtrun_error* err) {
  (void)stream;
  (void)out;
  if (DTRUN_TEST_FAULT == FAULT_LEAKS_THREAD) {
    pthread_t thread;
    sem_init(&stays, 0, 0);
    if (pthread_create(&thread, NULL, stay, (void*)((dtrun_instance*)comm)->host) != 0) abort();
    sem_wait(&stays);
  }
  if (DTRUN_TEST_FAULT == FAULT_OPERATION_EXITS) exit(0);
  if (DTRUN_TEST_FAULT == FAULT_ENDS_THREAD) pthread_exit(NULL);
  if (DTRUN_TEST_FAULT == FAULT_OPERATION_LEAVES) _exit(0);
#if DTRUN_TEST_FAULT == 39
  crash_on_a_thread();
#endif
  if (DTRUN_TEST_FAULT == FAULT_OPERATION_CRASHES) *nowhere = 1;
  while (DTRUN_TEST_FAULT == FAULT_OPERATION_HANGS) pause();
  if (DTRUN_TEST_FAULT == FAULT_OPERATION_IS_SILENT) return DTRUN_INTERNAL;
  if (DTRUN_TEST_FAULT == FAULT_OPERATION_GIVES_NOTHING) return DTRUN_PENDING;
  if (DTRUN_TEST_FAULT == FAULT_OPERATION_THROWS) demo_throw();
  if (DTRUN_TEST_FAULT == FAULT_OPERATION_HANGS_ON_ONE) {
    while (strcmp(getenv("RANK"), "1") == 0) pause();
    usleep((useconds_t)(op->timeout_ns / 1000));
    dtrun_error_set(err, DTRUN_TIMEOUT, 1, "rank 1 did not come");
    return DTRUN_TIMEOUT;
  }
  if (DTRUN_TEST_FAULT == FAULT_OVERFLOWS) overflow(0);
  if (DTRUN_TEST_FAULT == FAULT_THREAD_EXITS || DTRUN_TEST_FAULT == FAULT_THREAD_ABORTS ||
      DTRUN_TEST_FAULT == FAULT_THREAD_JUMPS || DTRUN_TEST_FAULT == FAULT_THREAD_OVERFLOWS) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave, (void*)((dtrun_instance*)comm)->host) != 0) abort();
    for (;;) pause();
  }
  if (works()) return DTRUN_OK;
  fail(err, DTRUN_UNSUPPORTED, "the demo starts no operations");
  return DTRUN_UNSUPPORTED;
}

static dtrun_status query_support(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  (void)self;
  (void)query;
  while (DTRUN_TEST_FAULT == FAULT_SUPPORT_HANGS) pause();
  if (DTRUN_TEST_FAULT == FAULT_SUPPORT_FAILS)
    return dtrun_error_set(err, DTRUN_INTERNAL, -1, "the table of operations is lost");
  return DTRUN_OK;
}

static dtrun_status req_test(dtrun_request* request, dtrun_error* err) {
  (void)request;
  (void)err;
  return DTRUN_OK;
}

static dtrun_status req_wait_host(dtrun_request* request, int64_t timeout_ns, dtrun_error* err) {
  (void)request;
  (void)timeout_ns;
  (void)err;
  return DTRUN_OK;
}

static void req_release(dtrun_request* request) { (void)request; }

static dtrun_option options[2];
static dtrun_backend backend;

/* A table as a plugin of a later ABI might return it. */
static struct {
  dtrun_plugin plugin;
  unsigned char later_members[64];
} table;

static void fill(void) {
  DTRUN_INIT(options[0]);
  options[0].key = "interface";
  options[0].type = DTRUN_TYPE_STRING;
  options[0].scope = DTRUN_SCOPE_HOST;
  options[0].default_text = "auto";
  options[0].doc = "network interface";
  options[0].since = "0.1.0";
  DTRUN_INIT(options[1]);
  options[1].key = "retries";
  options[1].type = DTRUN_TYPE_UINT;
  options[1].scope = DTRUN_SCOPE_JOB;
  options[1].default_text = DTRUN_TEST_FAULT == FAULT_BAD_DEFAULT ? "three" : "3";
  options[1].max_text = "9";
  options[1].doc = "attempts to connect";
  options[1].since = "0.1.0";

  DTRUN_INIT(backend);
  backend.launch_info = launch_info;
  backend.query_caps = query_caps;
  backend.comm_create = comm_create;
  backend.comm_destroy = comm_destroy;
  backend.enqueue = enqueue;
  backend.req_test = req_test;
  backend.req_wait_host = req_wait_host;
  backend.req_release = req_release;
  if (DTRUN_TEST_FAULT == FAULT_SUPPORT_HANGS || DTRUN_TEST_FAULT == FAULT_SUPPORT_FAILS)
    backend.query_support = query_support;
  if (DTRUN_TEST_FAULT == FAULT_MISSING_MEMBER) backend.enqueue = NULL;

  DTRUN_PLUGIN_INIT(table.plugin);
  table.plugin.kind = DTRUN_TEST_FAULT == FAULT_OTHER_KIND ? DTRUN_KIND_LAUNCHER : DTRUN_KIND_BACKEND;
  table.plugin.name = DTRUN_TEST_FAULT == FAULT_OTHER_NAME ? "somebody_else" : DTRUN_TEST_NAME;
  table.plugin.version = "1.2.3";
  table.plugin.vendor = "dtrun tests";
  table.plugin.license = "MIT";
  table.plugin.summary = "a backend that moves nothing";
  table.plugin.options = options;
  table.plugin.option_count = 2;
  table.plugin.init = init;
  table.plugin.shutdown = shutdown_instance;
  table.plugin.backend = &backend;
  if (DTRUN_TEST_FAULT == FAULT_ESCAPES) {
    table.plugin.version = ESCAPES "1.2.3";
    table.plugin.vendor = table.plugin.license = table.plugin.summary = ESCAPES "text";
  }
  if (DTRUN_TEST_FAULT == FAULT_OTHER_MINOR)
    table.plugin.abi_minor_built = table.plugin.abi_minor_required = DTRUN_ABI_MINOR + 1;
  if (DTRUN_TEST_FAULT == FAULT_ZERO_STAMPS) {
    table.plugin.abi_major = 0;
    table.plugin.abi_minor_built = 0;
    table.plugin.abi_minor_required = 0;
  }
  if (DTRUN_TEST_FAULT == FAULT_NEWER_STRUCT) {
    table.plugin.struct_size = sizeof table;
    memset(table.later_members, 0xa5, sizeof table.later_members);
  }
}

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  if (DTRUN_TEST_FAULT == FAULT_EXITS_WHEN_LOADED && host->in_probe == 0) exit(0);
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_FAILS) {
    fail(err, DTRUN_FAILED_PRECONDITION, "this plugin wants a full moon");
    return DTRUN_FAILED_PRECONDITION;
  }
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_CRASHES) crash("one line\n\nabout to crash\n");
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_CLOSES) {
    for (int fd = 3; fd < 256; ++fd) close(fd);
    for (;;) pause();
  }
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_FORKS && fork() < 0) abort();
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_HANGS) {
    for (;;) pause();
  }
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_STOPS) raise(SIGSTOP);
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_KILLED) raise(SIGKILL);
  if (DTRUN_TEST_FAULT == FAULT_ENTRY_EXITS) _exit(7);
  fill();
  *out = DTRUN_TEST_FAULT == FAULT_NULL_TABLE ? NULL : &table.plugin;
  return DTRUN_OK;
}
