/* A launcher that does what the last word of the job's command says: what core must survive. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dtrun/abi.h"

static int is(const dtrun_job* job, const char* fault) {
  return strcmp(job->argv[job->argc - 1], fault) == 0;
}

static dtrun_status plan(dtrun_instance* self, const dtrun_job* job, const dtrun_plan_sink* sink,
                         dtrun_error* err) {
  const char* const words[] = {job->argv[0], NULL};
  dtrun_env_entry entry = {sizeof entry, 0, "GOOD", "1"};
  dtrun_process process;
  (void)self;
  if (is(job, "silent")) return DTRUN_VENDOR;
  if (is(job, "unknown-status")) return 99;
  if (is(job, "escapes")) return dtrun_error_set(err, DTRUN_SYSTEM, -1, "\x1b[2Jcleared\nline");
  if (is(job, "crashes")) raise(SIGSEGV);
  if (is(job, "exits")) exit(0);
  if (is(job, "aborts")) abort();
  while (is(job, "hangs")) pause();
  DTRUN_INIT(process);
  process.rank_count = 1;
  process.argv = words;
  process.argc = is(job, "null-argument") ? 2 : 1;
  if (is(job, "null-name")) entry.name = NULL;
  if (is(job, "null-value")) entry.value = NULL;
  if (is(job, "equals")) entry.name = "A=B";
  process.env = &entry;
  process.env_count = 1;
  if (is(job, "must-understand")) entry.flags = 1u << 20;
  if (is(job, "beyond")) process.rank = process.rank_count = 0x7fffffff;
  if (is(job, "unset")) {
    entry.flags = DTRUN_ENV_UNSET;
    entry.value = NULL;
  }
  sink->note(sink->context, (dtrun_string){NULL, 0}, err);
  return sink->process(sink->context, &process, err);
}

static dtrun_status init(const dtrun_host* host, const dtrun_options* options, dtrun_instance** out,
                         dtrun_error* err) {
  static int instance;
  (void)host, (void)options, (void)err;
  *out = (dtrun_instance*)&instance;
  return DTRUN_OK;
}

static void shutdown_instance(dtrun_instance* self) { (void)self; }

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_launcher launcher;
  static dtrun_plugin table;
  (void)host, (void)err;
  DTRUN_INIT(launcher);
  launcher.plan = &plan;
  DTRUN_PLUGIN_INIT(table);
  table.kind = DTRUN_KIND_LAUNCHER;
  table.name = "bad";
  table.version = "1.0";
  table.init = &init;
  table.shutdown = &shutdown_instance;
  table.launcher = &launcher;
  *out = &table;
  return DTRUN_OK;
}
