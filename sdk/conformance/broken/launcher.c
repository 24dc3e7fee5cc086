/* launcher.c - a launcher with one fault: a process per rank, with its number. */
#include <stdio.h>

#include "table.h"

static int plans;

static dtrun_status give(const dtrun_plan_sink* sink, int32_t host, int32_t rank, int32_t local,
                         dtrun_error* err) {
  char number[32];
  const char* words[] = {"./train", NULL};
  dtrun_env_entry entry = {sizeof entry, 0, "RANK", number};
  dtrun_process process;
  snprintf(number, sizeof number, "%d", FAULT(OTHER_PLAN) ? rank + 100 * plans : rank);
  if (FAULT(NULL_VALUE)) entry.value = NULL;
  if (FAULT(EQUALS_IN_NAME)) entry.name = "RANK=OF";
  DTRUN_INIT(process);
  process.host_index = host;
  process.rank = rank;
  process.local_rank = local;
  process.rank_count = 1;
  process.argv = words;
  process.argc = FAULT(NULL_ARGUMENT) ? 2 : 1;
  process.env = &entry;
  process.env_count = 1;
  return sink->process(sink->context, &process, err);
}

static const dtrun_job_host* host_at(const dtrun_job* job, uint64_t index) {
  const size_t stride = FAULT(WRONG_STRIDE) ? sizeof(dtrun_job_host) : job->hosts->struct_size;
  return (const dtrun_job_host*)((const char*)job->hosts + index * stride);
}

static dtrun_status plan(dtrun_instance* self, const dtrun_job* job, const dtrun_plan_sink* sink,
                         dtrun_error* err) {
  (void)self;
  ++plans;
  if (FAULT(UNKNOWN_STATUS)) return 99;
  if (FAULT(FAILS_SILENTLY)) return DTRUN_VENDOR;
  if (!FAULT(IGNORES_FLAGS) && (job->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1,
                           "a flag of dtrun_job is not known here; use a newer launcher");
  for (uint64_t i = 0; i < job->host_count; ++i) {
    const dtrun_job_host* const host = host_at(job, i);
    for (int32_t local = 0; local < host->local_size; ++local) {
      const int32_t rank = host->first_rank + local;
      const int times = FAULT(RANK_TWICE) && rank == 0 ? 2 : FAULT(RANK_MISSING) && rank == 1 ? 0 : 1;
      for (int time = 0; time < times; ++time) {
        dtrun_status status;
        if (FAULT(INIT_ON_ERROR) && err != NULL) DTRUN_ERROR_INIT(*err);
        status = give(sink, (int32_t)i, rank, local, err);
        if (status != DTRUN_OK && !FAULT(DEAF_TO_REFUSAL)) return status;
      }
    }
  }
  return DTRUN_OK;
}

static void fill_kind(dtrun_plugin* plugin) {
  static dtrun_launcher launcher;
  DTRUN_INIT(launcher);
  if (!FAULT(NO_MEMBER)) launcher.plan = plan;
  plugin->kind = DTRUN_KIND_LAUNCHER;
  plugin->launcher = &launcher;
}
