/* A launcher with faults that core must survive. The last word of the job's command, or the variable FAULT,
 * selects one. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dtrun/abi.h"

/* Also where a sanitizer handles the signal. */
static void crash(void) {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
}

struct dtrun_instance {
  const dtrun_host* host;
  const dtrun_options* options;
};

static int is(const dtrun_job* job, const char* fault) {
  return strcmp(job->argv[job->argc - 1], fault) == 0;
}

static dtrun_status plan(dtrun_instance* self, const dtrun_job* job, const dtrun_plan_sink* sink,
                         dtrun_error* err) {
  const char* const words[] = {job->argv[0], NULL};
  dtrun_env_entry entry = {sizeof entry, 0, "GOOD", "1"};
  const dtrun_env_entry both[] = {entry, entry};
  dtrun_process process;
  (void)self;
  if (is(job, "silent")) return DTRUN_VENDOR;
  if (is(job, "unknown-status")) return 99;
  if (is(job, "escapes")) return dtrun_error_set(err, DTRUN_SYSTEM, -1, "\x1b[2Jcleared\nline");
  if (is(job, "crashes")) crash();
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
  if (is(job, "process-flags")) process.flags = 1u << 20;
  if (is(job, "local-rank")) process.local_rank = 99;
  if (is(job, "own-variable")) entry.name = "DTRUN_BACKEND_PATH";
  if (is(job, "cwd")) process.cwd = "/tmp\n\x1b[2J";
  if (is(job, "beyond")) process.rank = process.rank_count = 0x7fffffff;
  if (is(job, "no-program")) process.argc = 0;
  if (is(job, "twice")) {
    process.env = both;
    process.env_count = 2;
  }
  if (is(job, "unset")) {
    entry.flags = DTRUN_ENV_UNSET;
    entry.value = NULL;
  }
  sink->note(sink->context, (dtrun_string){NULL, 0}, err);
  if (is(job, "huge-note")) sink->note(sink->context, (dtrun_string){"a pretence", 100000000}, err);
  if (is(job, "raw-note")) sink->note(sink->context, (dtrun_string){"\x1b[2Jnote", 8}, err);
  return sink->process(sink->context, &process, err);
}

static int has(const char* value, const char* fault) { return value != NULL && strcmp(value, fault) == 0; }

static dtrun_status find_hosts(dtrun_instance* self, const dtrun_hosts_query* query,
                               const dtrun_hosts_sink* sink, dtrun_error* err) {
  const char* const fault = query->variable(query, "FAULT");
  const char* const implied[] = {"pmi"};
  dtrun_allocated_host hosts[2];
  dtrun_allocation allocation;
  dtrun_status status;
  const dtrun_options_service* const options = self->host->get_service(self->host, DTRUN_OPTIONS_SERVICE);
  dtrun_string first = {"node0", 5};
  if (fault == NULL) return dtrun_error_set(err, DTRUN_NOT_FOUND, -1, "FAULT is unset");
  if (has(fault, "contradicts")) return dtrun_error_set(err, DTRUN_INVALID_ARGUMENT, -1, "\x1b[2JA=1, B=2");
  if (has(fault, "silent")) return DTRUN_OK;
  if (has(fault, "crashes")) crash();
  while (has(fault, "hangs")) pause();
  DTRUN_INIT(hosts[0]);
  DTRUN_INIT(hosts[1]);
  options->get_string(self->host, self->options, "first_host", &first, NULL);
  hosts[0].name = first.data;
  hosts[0].slots = has(fault, "slots") ? -1 : 4;
  hosts[1].name = has(fault, "name") ? "-oProxyCommand=x" : has(fault, "twice") ? "NODE0" : "node1";
  if (has(fault, "null-name")) hosts[1].name = NULL;
  if (has(fault, "stride")) hosts[0].struct_size = 12;
  if (has(fault, "host-flags")) hosts[1].flags = 1u << 20;
  DTRUN_INIT(allocation);
  allocation.hosts = hosts;
  allocation.host_count = has(fault, "many") ? 100000 : 2;
  allocation.flags = DTRUN_ALLOCATION_EVERYWHERE | DTRUN_ALLOCATION_OWN_INDEX;
  if (has(fault, "must-understand")) allocation.flags |= 1u << 25;
  allocation.own_index = has(fault, "index") ? 2 : 1;
  allocation.rank_port = has(fault, "port") ? 70000 : 29500;
  allocation.min_hosts = has(fault, "count") ? 3 : 0;
  allocation.root_address = "node0";
  allocation.implies = implied;
  allocation.implies_count = 1;
  status = sink->allocation(sink->context, &allocation, err);
  if (has(fault, "answers-twice")) sink->allocation(sink->context, &allocation, NULL);
  return status;
}

/* A command for the first host, and one for the others. */
static dtrun_status connect_hosts(dtrun_instance* self, const dtrun_connect_query* query,
                                  const dtrun_connect_sink* sink, dtrun_error* err) {
  const char* const fault = query->variable(query, "FAULT");
  const char* const words[] = {"there", query->argv[0], has(fault, "null-argument") ? NULL : query->argv[1]};
  const uint64_t indexes[] = {0, has(fault, "index") ? 9u : 1u};
  dtrun_connect_command command;
  (void)self;
  if (has(fault, "refuses")) return dtrun_error_set(err, DTRUN_FAILED_PRECONDITION, -1, "JOB is unset");
  DTRUN_INIT(command);
  command.argv = words;
  command.argc = has(fault, "no-program") ? 0 : 3;
  command.hosts = indexes;
  command.host_count = has(fault, "forgets") ? 1 : 2;
  command.host_variable = "NODE";
  if (has(fault, "repeats")) sink->command(sink->context, &command, NULL);
  return sink->command(sink->context, &command, err);
}

static dtrun_status init(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err) {
  const dtrun_host* const host = params->host;
  const dtrun_options* const options = params->options;
  static dtrun_instance instance;
  (void)err;
  instance.host = host;
  instance.options = options;
  *out = &instance;
  return DTRUN_OK;
}

static void shutdown_instance(dtrun_instance* self) { (void)self; }

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_launcher launcher;
  static dtrun_option option;
  static dtrun_plugin table;
  (void)host, (void)err;
  DTRUN_INIT(option);
  option.key = "first_host";
  option.type = DTRUN_TYPE_STRING;
  option.scope = DTRUN_SCOPE_JOB;
  option.default_text = "node0";
  option.doc = "the host that it finds first";
  DTRUN_INIT(launcher);
  launcher.plan = DTRUN_TEST_PLANS ? &plan : NULL;
  launcher.find_hosts = &find_hosts;
  launcher.connect = &connect_hosts;
  DTRUN_PLUGIN_INIT(table);
  table.kind = DTRUN_KIND_LAUNCHER;
  table.name = DTRUN_TEST_PLANS ? "bad" : "finds";
  table.version = "1.0";
  table.options = &option;
  table.option_count = 1;
  table.init = &init;
  table.shutdown = &shutdown_instance;
  table.launcher = &launcher;
  *out = &table;
  return DTRUN_OK;
}
