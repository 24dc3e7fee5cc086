/* table.h - the table and the entry that all plugins of this folder have, and the faults that are in them. */
#ifndef DTRUN_BROKEN_TABLE_H
#define DTRUN_BROKEN_TABLE_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dtrun/abi.h"
#include "faults.h"

struct dtrun_instance {
  const dtrun_host* host;
};

/* As if a struct had a member more. */
static inline void read_behind(const void* given, size_t bytes) {
  const volatile char* const last = (const volatile char*)given + bytes;
  (void)*last;
}

/* Defined by the kind of plugin. */
static void fill_kind(dtrun_plugin* plugin);

static void handle(int number) { (void)number; }

/* Changes what is the program's, the first time only. */
static inline void touch_once(void) {
  static int touched;
  if (touched++ == 0) signal(SIGUSR2, handle);
}

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  if (!FAULT(IGNORES_INIT_FLAGS) && (params->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "a flag of dtrun_init_params is not known here");
  dtrun_instance* const self = malloc(sizeof *self);
  if (FAULT(NEEDS_LIBRARY)) {
    free(self);
    return dtrun_error_set(err, DTRUN_NOT_FOUND, -1, "cannot load libvendor.so");
  }
  if (self == NULL) return dtrun_error_set(err, DTRUN_OUT_OF_MEMORY, -1, "out of memory");
  self->host = host;
  if (FAULT(SIGNAL_HANDLER)) signal(SIGUSR2, handle);
  if (FAULT(CHANGES_ENVIRONMENT)) setenv("BROKEN_WAS_HERE", "1", 1);
  if (FAULT(CHANGES_FOLDER) && chdir("/") != 0) abort();
  *out = self;
  return DTRUN_OK;
}

static int has_ended;

static int has_made; /* a communicator */

static inline void open_one(void) {
  if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) abort();
}

static void* end_late(void* context) {
  const dtrun_host* const host = context;
  const dtrun_threads_service* const threads = host->get_service(host, DTRUN_THREADS_SERVICE);
  threads->on_start(host, "late");
  usleep(1000000);
  threads->on_stop(host);
  return NULL;
}

static void shutdown_instance(dtrun_instance* self) {
  pthread_t thread;
  if (FAULT(THREAD_ENDS_LATE) && pthread_create(&thread, NULL, end_late, (void*)self->host) == 0)
    pthread_detach(thread);
  if (FAULT(LEAKS_OF_INSTANCE) && has_made) open_one();
  has_ended = FAULT(ENDS_OTHERS);
  free(self);
}

static const void* get_extension(dtrun_instance* self, const char* id) {
  (void)self;
  return FAULT(ANY_EXTENSION) ? id : NULL;
}

static void* linger(void* argument) {
  pause();
  return argument;
}

static void start_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, linger, NULL) == 0) pthread_detach(thread);
}

static void fill_option(dtrun_option* option, const char* key, const char* default_text) {
  DTRUN_INIT(*option);
  option->key = key;
  option->type = DTRUN_TYPE_UINT;
  option->scope = DTRUN_SCOPE_JOB;
  option->default_text = default_text;
  option->max_text = "9";
  option->doc = "attempts to connect";
  option->since = "1.0";
}

/* Exported by the plugin that is linked without the version script. */
__attribute__((visibility("default"))) int broken_helper(void);
int broken_helper(void) { return 1; }

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_option options[2];
  static char long_key[3000001];
  static dtrun_plugin plugin;
  (void)err;
  find_fault();
  if (FAULT(THREAD_IN_ENTRY)) start_thread();
  if (FAULT(ENTRY_READS_BEHIND)) read_behind(host, sizeof *host);
  fill_option(&options[0], "retries", FAULT(BAD_DEFAULT) ? "many" : "3");
  if (FAULT(LONG_KEY)) memset(long_key, 'k', sizeof long_key - 1);
  fill_option(&options[1], FAULT(KEY_TWICE) ? "retries" : FAULT(LONG_KEY) ? long_key : "attempts", "3");
  if (FAULT(REPLACED_IN_CIRCLE)) {
    options[0].replaced_by = "attempts";
    options[1].replaced_by = "retries";
  }
  if (FAULT(STRANGE_TYPE)) options[1].type = 99;
  DTRUN_PLUGIN_INIT(plugin);
  if (FAULT(REQUIRES_MORE)) plugin.abi_minor_required = DTRUN_ABI_MINOR + 1;
  if (FAULT(LONG_TABLE)) plugin.struct_size += 64;
  plugin.name = FAULT(OTHER_NAME) ? "somebody_else" : this_plugin.name;
  plugin.version = "1.0";
  plugin.vendor = FAULT(NO_VENDOR) ? "" : "dtrun tests";
  plugin.license = "Apache-2.0";
  plugin.summary = "a plugin with one fault";
  plugin.options = options;
  plugin.option_count = 2;
  plugin.init = init;
  plugin.shutdown = shutdown_instance;
  plugin.get_extension = get_extension;
  fill_kind(&plugin);
  *out = &plugin;
  return DTRUN_OK;
}

#endif
