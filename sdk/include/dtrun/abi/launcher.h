/* launcher.h - where a job runs, how dtrun gets there, and which processes it starts.
 *
 * A launcher has at least one of three members: `find_hosts`, the hosts that a platform
 * gave to the job; `connect`, the commands that start dtrun on them; `plan`, a pure
 * function from a job to its processes. It starts nothing: `dtrun plan` prints what it
 * answers and core executes it, and core owns spawning, logs, signals, kill and verdict
 * for every launcher. Each call is made in a child process of dtrun, between `init` and
 * `shutdown`, and has 10 seconds.
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
  const char* bind;    /* job.bind, for launchers with a program of their own that binds ranks */
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

/* ---- find_hosts: which hosts a platform gave to the job ---- */

typedef struct dtrun_hosts_query {
  uint32_t struct_size;
  uint32_t flags;
  /* The variable's value in the environment of the dtrun that asks, or NULL. [control] */
  const char* (*variable)(const struct dtrun_hosts_query* query, const char* name);
} dtrun_hosts_query;

typedef struct dtrun_allocated_host {
  uint32_t struct_size;
  uint32_t flags;
  const char* name; /* name or address, IPv6 without brackets */
  int32_t slots;    /* ranks that it has room for; 0: not said */
  int32_t reserved;
} dtrun_allocated_host;

/* Bits of dtrun_allocation.flags. */
enum {
  DTRUN_ALLOCATION_EVERYWHERE = 1 << 16, /* the platform starts dtrun on every host; else once for all */
  DTRUN_ALLOCATION_OWN_INDEX = 1 << 17,  /* own_index is set */
  DTRUN_ALLOCATION_PORT_TAKEN = 1 << 18  /* the platform itself listens at rank_port */
};

typedef struct dtrun_allocation {
  uint32_t struct_size;
  uint32_t flags;
  const dtrun_allocated_host* hosts; /* in rank order, none twice; stride: hosts[0].struct_size */
  uint64_t host_count;               /* 0: their names are not known */
  int32_t min_hosts;                 /* fewest that will do; 0: all */
  int32_t max_hosts;                 /* without names, how many there are; 0: the user has to say it */
  int32_t own_index;                 /* which host this is */
  int32_t rank_port;                 /* where rank 0 listens by the platform's contract, so dtrun never
                                        does; 0: not said */
  const char* root_address;          /* of host 0; NULL: not said */
  const char* processes_per_host;    /* as job.processes_per_host takes it; NULL: not said */
  const char* evidence;              /* the variable or file by which the platform is known; NULL: its name */
  /* Other platforms that this one sets the variables of as well, by what cluster.from calls them. */
  const char* const* implies;
  uint64_t implies_count;
  const char* sharing; /* how the user brings a variable to dtrun on every host, "export it before ..." */
} dtrun_allocation;

typedef struct dtrun_hosts_sink {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /* Once. The sink copies all of it. A failure is final: `find_hosts` returns it. */
  dtrun_status (*allocation)(void* context, const dtrun_allocation* allocation, dtrun_error* err);
} dtrun_hosts_sink;

/* ---- connect: the commands that start dtrun on hosts ---- */

typedef struct dtrun_connect_query {
  uint32_t struct_size;
  uint32_t flags;
  const char* const* hosts; /* names, in rank order; those already reached are left out */
  uint64_t host_count;
  const char* const* argv; /* what is to run once on each of them: the path of dtrun there, and arguments */
  uint64_t argc;
  /* The variable's value in the environment of the dtrun that asks, or NULL. [control] */
  const char* (*variable)(const struct dtrun_connect_query* query, const char* name);
} dtrun_connect_query;

/* A command that runs as long as what it has started on its hosts. It hands its standard
 * input to each of them, byte for byte and without waiting for its end, hands back what they
 * write, line by line, and ends them when it ends. */
typedef struct dtrun_connect_command {
  uint32_t struct_size;
  uint32_t flags;
  const char* const* argv;
  uint64_t argc;
  const uint64_t* hosts; /* indexes into dtrun_connect_query.hosts */
  uint64_t host_count;
  /* The variable by which each of several hosts knows its name in dtrun_connect_query.hosts;
   * NULL: by its host name and addresses. */
  const char* host_variable;
  const char* trial; /* a command that a user can try by hand; NULL: none */
  /* A line of its own (that begins with its name and a colon) with this text says only that what it
   * started has ended; NULL: there are no such lines. */
  const char* ending;
} dtrun_connect_command;

typedef struct dtrun_connect_sink {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /* The sink copies all of it. A failure is final: `connect` returns it. */
  dtrun_status (*command)(void* context, const dtrun_connect_command* command, dtrun_error* err);
} dtrun_connect_sink;

typedef struct dtrun_launcher {
  uint32_t struct_size;
  uint32_t flags;
  /* Optional. Pure and deterministic: the same job gives the same plan. [control] */
  dtrun_status (*plan)(dtrun_instance* self, const dtrun_job* job, const dtrun_plan_sink* sink,
                       dtrun_error* err);
  /* Optional. May read files and ask the platform's own commands. DTRUN_NOT_FOUND: its platform
   * is not there, and the message names the variable or file that is missing. Any other failure:
   * it is there and contradicts itself, and the message names the variable and its value. [control] */
  dtrun_status (*find_hosts)(dtrun_instance* self, const dtrun_hosts_query* query,
                             const dtrun_hosts_sink* sink, dtrun_error* err);
  /* Optional. One or more commands; each host is started by one of them. A failure names what has
   * to be there, such as an allocation. [control] */
  dtrun_status (*connect)(dtrun_instance* self, const dtrun_connect_query* query,
                          const dtrun_connect_sink* sink, dtrun_error* err);
} dtrun_launcher;

#endif
