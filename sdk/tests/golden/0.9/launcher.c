/* launcher.c - a golden launcher: every rank is a process of its own, with the env:// variables. Pure. */
#include <stdio.h>
#include <stdlib.h>

#include "golden.h"

struct dtrun_instance {
  int unused;
};

static dtrun_status init(const dtrun_host* host, const dtrun_options* options, dtrun_instance** out,
                         dtrun_error* err) {
  static dtrun_instance only;
  (void)host;
  (void)options;
  (void)err;
  *out = &only;
  return DTRUN_OK;
}

static void end(dtrun_instance* self) { (void)self; }

static dtrun_status plan_rank(const dtrun_job* job, const dtrun_job_host* host, uint64_t host_index,
                              int32_t local, const dtrun_plan_sink* sink, dtrun_error* err) {
  enum { VARIABLES = 6 };
  static const char* const names[VARIABLES] = {"RANK",        "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                               "MASTER_ADDR", "MASTER_PORT"};
  char numbers[4][16];
  dtrun_env_entry env[VARIABLES];
  dtrun_process process;
  int i;
  snprintf(numbers[0], sizeof numbers[0], "%d", (int)(host->first_rank + local));
  snprintf(numbers[1], sizeof numbers[1], "%d", (int)local);
  snprintf(numbers[2], sizeof numbers[2], "%d", (int)job->world_size);
  snprintf(numbers[3], sizeof numbers[3], "%d", (int)host->local_size);
  for (i = 0; i < VARIABLES; ++i) {
    DTRUN_INIT(env[i]);
    env[i].name = names[i];
    env[i].value = i < 4 ? numbers[i] : i == 4 ? job->master_addr : job->master_port;
  }
  DTRUN_INIT(process);
  process.host_index = (int32_t)host_index;
  process.rank = host->first_rank + local;
  process.local_rank = local;
  process.rank_count = 1;
  process.env = env;
  process.env_count = VARIABLES;
  return sink->process(sink->context, &process, err);
}

static dtrun_status plan(dtrun_instance* self, const dtrun_job* caller_job, const dtrun_plan_sink* sink,
                         dtrun_error* err) {
  dtrun_job job;
  uint64_t i;
  (void)self;
  GOLDEN_READ(dtrun_job, job, caller_job);
  for (i = 0; i < job.host_count; ++i) {
    const char* place = (const char*)job.hosts + i * job.hosts->struct_size;
    dtrun_job_host host;
    int32_t local;
    GOLDEN_READ(dtrun_job_host, host, (const dtrun_job_host*)(const void*)place);
    for (local = 0; local < host.local_size; ++local) {
      const dtrun_status status = plan_rank(&job, &host, i, local, sink, err);
      if (status != DTRUN_OK) return status;
    }
  }
  return DTRUN_OK;
}

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static dtrun_launcher launcher;
  static dtrun_plugin table;
  const dtrun_status status = golden_enter(host, err);
  if (status != DTRUN_OK) return status;
  DTRUN_INIT(launcher);
  launcher.plan = plan;
  golden_identify(&table, DTRUN_KIND_LAUNCHER);
  table.init = init;
  table.shutdown = end;
  table.launcher = &launcher;
  *out = &table;
  return DTRUN_OK;
}
