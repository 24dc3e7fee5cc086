/* launcher.h - a way of starting ranks: a pure function from a job to its processes.
 *
 * A launcher decides which processes to start and which environment contract each one
 * sees. It starts nothing: `dtrun plan` prints the plan and core executes it, and core
 * owns spawning, logs, signals, kill and verdict for every launcher.
 */
#ifndef DTRUN_ABI_LAUNCHER_H
#define DTRUN_ABI_LAUNCHER_H

#include "dtrun/abi/host.h"

typedef struct dtrun_instance dtrun_instance;

/* Bits of dtrun_env_entry.flags. */
enum { DTRUN_ENV_UNSET = 1 << 16 }; /* the process does not have the variable; value is NULL */

typedef struct dtrun_env_entry {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  const char* value;
} dtrun_env_entry;

/* One host of the job, in rank order. */
typedef struct dtrun_job_host {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  int32_t first_rank;
  int32_t local_size; /* ranks on this host */
  int32_t cores;      /* whole cores that its ranks have; cores / local_size is the least share of one */
  int32_t reserved;
} dtrun_job_host;

typedef struct dtrun_job {
  uint32_t struct_size;
  uint32_t flags;
  const char* name;
  const char* const* argv; /* the user's command, placeholders not yet expanded */
  uint64_t argc;
  const char* cwd;
  const dtrun_job_host* hosts; /* stride: hosts[0].struct_size */
  uint64_t host_count;
  int32_t world_size;
  int32_t reserved;
  const char* master_addr; /* address of rank 0's host that every rank can reach */
  /* Placeholder: when the job starts, core replaces it by the port it holds for rank 0. */
  const char* master_port;
  /* The variable's value in the environment that the ranks inherit, or NULL. [control] */
  const char* (*inherited)(const struct dtrun_job* job, const char* name);
  /* Placeholders that core replaces when the job starts: the run directory, absolute, and
   * how many times the world was started before, from 0. */
  const char* run_dir;
  const char* generation;
  const char* program; /* path of dtrun, on all hosts */
  const char* bind;    /* job.bind, for launchers whose own program binds ranks */
} dtrun_job;

/* One process of the plan. The sink copies all of it. */
typedef struct dtrun_process {
  uint32_t struct_size;
  uint32_t flags;
  int32_t host_index;
  int32_t rank; /* first rank in this process */
  int32_t local_rank;
  int32_t rank_count;      /* ranks in this process; 1 for a process per rank */
  const char* const* argv; /* NULL: the job's */
  uint64_t argc;
  const dtrun_env_entry* env; /* contract variables, on top of the inherited environment; stride:
                                 env[0].struct_size */
  uint64_t env_count;
  const char* cwd; /* NULL: the job's */
} dtrun_process;

typedef struct dtrun_plan_sink {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /* A failure is final: `plan` returns it. */
  dtrun_status (*process)(void* context, const dtrun_process* process, dtrun_error* err);
  /* A line for the run header: a choice that the user may want to know about. */
  dtrun_status (*note)(void* context, dtrun_string text, dtrun_error* err);
} dtrun_plan_sink;

typedef struct dtrun_launcher {
  uint32_t struct_size;
  uint32_t flags;
  /* Pure and deterministic: the same job gives the same plan. [control] */
  dtrun_status (*plan)(dtrun_instance* self, const dtrun_job* job, const dtrun_plan_sink* sink,
                       dtrun_error* err);
} dtrun_launcher;

#endif
