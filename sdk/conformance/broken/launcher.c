/* launcher.c - a launcher with one fault: a process per rank, with its number; the hosts of BROKEN_NODES,
 * words such as node1:2, and a command for each. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "dtrun/abi/structs.h"
#include "table.h"

static int plans;

/* Returns in both processes. At most 3 times in all processes that come of one: they share the count. */
static void fork_and_return(void) {
  static atomic_int* forks;
  if (forks == NULL) {
    void* const memory = mmap(NULL, sizeof *forks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    forks = memory;
  }
  if (atomic_fetch_add(forks, 1) < 3) fork();
}

static dtrun_status give(const dtrun_plan_sink* sink, int32_t host, int32_t rank, int32_t local,
                         dtrun_error* err) {
  char number[32];
  const char* words[] = {"./train", NULL};
  dtrun_env_entry entry = {sizeof entry, 0, "RANK", number};
  dtrun_process process;
  const char* const home = getenv("HOME");
  const int by_home = FAULT(PLANS_BY_HOME) && home != NULL && strcmp(home, "/nonexistent") == 0;
  snprintf(number, sizeof number, "%d", FAULT(OTHER_PLAN) ? rank + 100 * plans : rank + 100 * by_home);
  if (FAULT(NULL_VALUE)) entry.value = NULL;
  if (FAULT(EQUALS_IN_NAME)) entry.name = "RANK=OF";
  DTRUN_INIT(process);
  process.host_index = host;
  process.rank = rank;
  process.local_rank = local;
  process.rank_count = 1;
  process.argv = words;
  process.argc = FAULT(NULL_ARGUMENT) ? 2 : FAULT(NO_ARGUMENTS) ? 0 : 1;
  if (FAULT(LONG_PROCESS)) process.struct_size += 64;
  process.env = &entry;
  process.env_count = 1;
  return sink->process(sink->context, &process, err);
}

/* In the working folder, and in a hidden place. */
static void write_file(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, "was here", 8) != 8) unlink(path);
  close(file);
}

static const dtrun_job_host* host_at(const dtrun_job* job, uint64_t index) {
  const size_t stride = FAULT(WRONG_STRIDE) ? sizeof(dtrun_job_host) : job->hosts->struct_size;
  return (const dtrun_job_host*)((const char*)job->hosts + index * stride);
}

static dtrun_status plan(dtrun_instance* self, const dtrun_job* job, const dtrun_plan_sink* sink,
                         dtrun_error* err) {
  (void)self;
  ++plans;
  if (FAULT(FORKS)) fork_and_return();
  if (FAULT(PLAN_TOUCHES)) touch_once();
  if (FAULT(WRITES_FILE)) write_file("/dev/null");
  if (FAULT(UNKNOWN_STATUS)) return 99;
  if (FAULT(FAILS_SILENTLY)) return DTRUN_VENDOR;
  if (!FAULT(IGNORES_FLAGS) && (job->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1,
                           "a flag of dtrun_job is not known here; use a newer launcher");
  if (!FAULT(IGNORES_PLAN_SINK_FLAGS) && (sink->flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "a flag of dtrun_plan_sink is not known here");
  for (uint64_t i = 0; i < job->host_count && !FAULT(IGNORES_HOST_FLAGS); ++i) {
    if ((host_at(job, i)->flags & DTRUN_FLAGS_MUST_UNDERSTAND) == 0) continue;
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "a flag of dtrun_job_host is not known here");
  }
  for (uint64_t i = 0; i < job->host_count; ++i) {
    const dtrun_job_host* const host = host_at(job, i);
    for (int32_t local = 0; local < host->local_size; ++local) {
      const int32_t rank = host->first_rank + local;
      const int times = FAULT(RANK_TWICE) && rank == 0 ? 2 : FAULT(RANK_MISSING) && rank == 1 ? 0 : 1;
      for (int time = 0; time < times; ++time) {
        dtrun_status status;
        if (FAULT(INIT_ON_ERROR) && err != NULL) DTRUN_ERROR_INIT(*err);
        status = give(sink, (int32_t)i, rank, local, err);
        if (FAULT(PLAN_OTHER_CODE) && status != DTRUN_OK)
          dtrun_error_set(err, DTRUN_INTERNAL, -1, "no room for a process");
        if (status != DTRUN_OK && !FAULT(DEAF_TO_REFUSAL)) return status;
      }
    }
  }
  return DTRUN_OK;
}

/* What both queries and both sinks are read with: their first `bytes` bytes, as these headers know them. */
static dtrun_status read_both(void* query, size_t query_bytes, const void* given_query, void* sink,
                              size_t sink_bytes, const void* given_sink, dtrun_error* err) {
  uint32_t flags;
  dtrun_struct_read(query, query_bytes, given_query);
  dtrun_struct_read(sink, sink_bytes, given_sink);
  if (FAULT(QUERY_READS_BEHIND)) read_behind(given_query, query_bytes);
  memcpy(&flags, (const char*)query + sizeof flags, sizeof flags);
  if (!FAULT(QUERY_IGNORES_FLAGS) && (flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "the query has a flag that is not known here");
  memcpy(&flags, (const char*)sink + sizeof flags, sizeof flags);
  if (!FAULT(IGNORES_HOSTS_SINK_FLAGS) && (flags & DTRUN_FLAGS_MUST_UNDERSTAND) != 0)
    return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "the sink has a flag that is not known here");
  return DTRUN_OK;
}

static dtrun_status lacking(dtrun_error* err) {
  return dtrun_error_set(err, DTRUN_UNSUPPORTED, -1, "this dtrun is too old; upgrade it");
}

/* Fills `hosts` with the names in `text`; returns their number. */
static uint64_t split(char* text, dtrun_allocated_host hosts[4]) {
  uint64_t count = 0;
  char* rest = NULL;
  for (char* word = strtok_r(text, " ", &rest); word != NULL && count < 4;
       word = strtok_r(NULL, " ", &rest)) {
    char* const colon = strchr(word, ':');
    DTRUN_INIT(hosts[count]);
    hosts[count].name = word;
    hosts[count].slots = FAULT(NEGATIVE_SLOTS) ? -1 : colon == NULL ? 0 : atoi(colon + 1);
    if (colon != NULL) *colon = '\0';
    if (FAULT(HOST_TWICE)) hosts[count].name = hosts[0].name;
    ++count;
  }
  return count;
}

static dtrun_status find_hosts(dtrun_instance* self, const dtrun_hosts_query* given,
                               const dtrun_hosts_sink* given_sink, dtrun_error* err) {
  static int answers;
  dtrun_hosts_query query;
  dtrun_hosts_sink sink;
  dtrun_allocated_host hosts[4];
  dtrun_allocation allocation;
  char text[256] = "here:1";
  const char* nodes;
  dtrun_status status = read_both(&query, sizeof query, given, &sink, sizeof sink, given_sink, err);
  (void)self;
  if (status != DTRUN_OK) return status;
  if (query.variable == NULL || sink.allocation == NULL) return lacking(err);
  if (FAULT(FIND_TOUCHES)) touch_once();
  if (FAULT(FIND_WRITES_FILE)) write_file("hosts.cache");
  nodes = query.variable(given, "BROKEN_NODES");
  if (nodes == NULL && FAULT(READS_ENVIRONMENT)) nodes = getenv("BROKEN_NODES");
  if (nodes == NULL && !FAULT(FINDS_ALWAYS)) {
    return dtrun_error_set(err, FAULT(NO_PLATFORM_IS_A_FAILURE) ? DTRUN_FAILED_PRECONDITION : DTRUN_NOT_FOUND,
                           -1, "BROKEN_NODES is unset");
  }
  if (nodes != NULL) snprintf(text, sizeof text, "%s", nodes);
  DTRUN_INIT(allocation);
  allocation.host_count = split(text, hosts);
  allocation.hosts = hosts;
  allocation.evidence = FAULT(BAD_EVIDENCE) ? "the variable\nBROKEN_NODES" : "BROKEN_NODES";
  if (FAULT(LONG_ALLOCATION)) allocation.struct_size += 64;
  if (FAULT(LONG_HOST)) allocation.host_count = 1, hosts[0].struct_size += 64;
  if (FAULT(HOSTS_BY_PROCESS)) hosts[0].slots = (int32_t)(getpid() % 4096);
  if (FAULT(OTHER_HOSTS)) hosts[0].slots += answers++;
  if (FAULT(NO_ALLOCATION)) return DTRUN_OK;
  status = sink.allocation(sink.context, &allocation, err);
  if (FAULT(TWO_ALLOCATIONS) && status == DTRUN_OK) sink.allocation(sink.context, &allocation, err);
  return FAULT(HOSTS_DEAF_TO_REFUSAL) ? DTRUN_OK : status;
}

static dtrun_status connect_hosts(dtrun_instance* self, const dtrun_connect_query* given,
                                  const dtrun_connect_sink* given_sink, dtrun_error* err) {
  dtrun_connect_query query;
  dtrun_connect_sink sink;
  dtrun_status status = read_both(&query, sizeof query, given, &sink, sizeof sink, given_sink, err);
  (void)self;
  if (status != DTRUN_OK) return status;
  if (query.variable == NULL || sink.command == NULL) return lacking(err);
  if (FAULT(CONNECT_TOUCHES)) touch_once();
  if (FAULT(CONNECT_WRITES_FILE)) write_file("connect.cache");
  if (query.variable(given, "BROKEN_NODES") == NULL)
    return dtrun_error_set(err, DTRUN_FAILED_PRECONDITION, -1,
                           FAULT(CONNECT_WITHOUT_TEXT) ? "" : "BROKEN_NODES is unset");
  for (uint64_t i = 0; i < query.host_count; ++i) {
    const uint64_t number = FAULT(UNKNOWN_HOST) && i == 1 ? query.host_count : i;
    const char* words[] = {"reach", query.hosts[i], query.argv[0], NULL};
    dtrun_connect_command command;
    if (FAULT(HOST_NOT_STARTED) && i == 1) continue;
    DTRUN_INIT(command);
    command.argv = words;
    command.argc = FAULT(NO_PROGRAM) ? 0 : 3;
    command.hosts = &number;
    command.host_count = 1;
    command.trial = FAULT(BAD_TRIAL) ? "reach stra\xdf"
                                       "e"
                                     : "reach";
    for (int time = 0; time < (FAULT(HOST_STARTED_TWICE) && i == 1 ? 2 : 1); ++time) {
      status = sink.command(sink.context, &command, err);
      if (status != DTRUN_OK && !FAULT(CONNECT_DEAF_TO_REFUSAL)) return status;
    }
  }
  return DTRUN_OK;
}

static void fill_kind(dtrun_plugin* plugin) {
  static dtrun_launcher launcher;
  DTRUN_INIT(launcher);
  if (!FAULT(NO_MEMBER)) {
    launcher.plan = plan;
    launcher.find_hosts = find_hosts;
    launcher.connect = connect_hosts;
  }
  plugin->kind = DTRUN_KIND_LAUNCHER;
  plugin->launcher = &launcher;
}
