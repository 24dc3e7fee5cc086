/* host.h - what core offers a plugin: one table, and services by name.
 *
 * The host table is the first thing a plugin sees, so it knows its host before it does
 * anything. Services are found by id, "dtrun.<name>/<revision>"; an unknown id gives
 * NULL. A service grows by appended members; another signature or meaning makes a new
 * revision beside the old one. Tables are core's and live as long as the process. Each
 * member says which threads may call it.
 */
#ifndef DTRUN_ABI_HOST_H
#define DTRUN_ABI_HOST_H

#include "dtrun/abi/options.h"

/* What a plugin is. */
enum { DTRUN_KIND_BACKEND = 1, DTRUN_KIND_LAUNCHER = 2, DTRUN_KIND_DEVICE = 3 };

typedef struct dtrun_host {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  int32_t kind;         /* the kind core expects of the plugin being loaded */
  int32_t in_probe;     /* 1 in the short-lived process that lists, describes, chooses and plans */
  dtrun_string product; /* "dtrun MAJOR.MINOR.PATCH" */
  /* The service table for `id`, or NULL. [any] */
  const void* (*get_service)(const dtrun_host* host, const char* id);
} dtrun_host;

/* ---- "dtrun.log/1" ------------------------------------------------------------- */

enum { DTRUN_LOG_DEBUG = 1, DTRUN_LOG_INFO = 2, DTRUN_LOG_WARN = 3, DTRUN_LOG_ERROR = 4 };

typedef struct dtrun_log_service {
  uint32_t struct_size;
  uint32_t flags;
  /* 1 when a message of this level would be kept. [any] [abort-safe] */
  int32_t (*enabled)(const dtrun_host* host, int32_t level);
  /* One line of preformatted text; core adds time and rank. Never blocks on a slow
   * terminal. `topic` is the plugin's name or a part of it. [any] [abort-safe] */
  void (*write)(const dtrun_host* host, int32_t level, const char* topic, dtrun_string text);
} dtrun_log_service;

#define DTRUN_LOG_SERVICE "dtrun.log/1"

/* ---- "dtrun.memory/1" ---------------------------------------------------------- */

/* For buffers that pass from core to a plugin, or back. */
typedef struct dtrun_memory_service {
  uint32_t struct_size;
  uint32_t flags;
  /* `alignment` is a power of two, at least 8; NULL when out of memory. 0 bytes give a pointer that can be
   * released. [any] */
  void* (*allocate)(const dtrun_host* host, uint64_t bytes, uint64_t alignment);
  void (*release)(const dtrun_host* host, void* memory); /* NULL is allowed. [any] */
} dtrun_memory_service;

#define DTRUN_MEMORY_SERVICE "dtrun.memory/1"

/* ---- "dtrun.kv/1" -------------------------------------------------------------- */

/* A key-value space shared by the ranks of one communicator; opaque. Core prefixes the
 * keys with job, generation and communicator, so plugins cannot collide. */
typedef struct dtrun_kv dtrun_kv;

enum { DTRUN_KV_MAX_KEY_BYTES = 1024, DTRUN_KV_MAX_VALUE_BYTES = 16 << 20 };

/* Values are bytes. Blocking members end with DTRUN_TIMEOUT after timeout_ns (0: at once, -1: no
 * limit) and with DTRUN_ABORTED when the communicator is aborted. All [any]. */
typedef struct dtrun_kv_service {
  uint32_t struct_size;
  uint32_t flags;
  dtrun_status (*set)(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, const void* value,
                      uint64_t bytes, dtrun_error* err);
  /* Waits for `key`. *out_value is owned by the caller: memory->release it. */
  dtrun_status (*get)(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, int64_t timeout_ns,
                      void** out_value, uint64_t* out_bytes, dtrun_error* err);
  /* As get, but DTRUN_NOT_FOUND at once when the key is absent. */
  dtrun_status (*try_get)(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, void** out_value,
                          uint64_t* out_bytes, dtrun_error* err);
  /* Adds to a decimal counter that starts at 0; *out_sum is the new value. */
  dtrun_status (*add)(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, int64_t amount,
                      int64_t* out_sum, dtrun_error* err);
  /* Stores `desired` iff the value equals `expected` (NULL: iff the key is absent). *out_swapped
   * is 1 when it was stored, else 0. */
  dtrun_status (*compare_set)(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, const void* expected,
                              uint64_t expected_bytes, const void* desired, uint64_t desired_bytes,
                              int32_t* out_swapped, dtrun_error* err);
  /* *out_existed is 1 when there was such a key, else 0. */
  dtrun_status (*erase)(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, int32_t* out_existed,
                        dtrun_error* err);
  /* Waits until every key exists. */
  dtrun_status (*wait_many)(const dtrun_host* host, dtrun_kv* kv, const dtrun_string* keys,
                            uint64_t key_count, int64_t timeout_ns, dtrun_error* err);
  /* A part of `kv`, for a plugin that makes communicators of another plugin: the keys that begin with
   * `prefix`, and rank_count of its ranks, of which ranks[i] is rank i there. ranks NULL: what is reported
   * of its peers goes nowhere, because the caller reports them. close_part comes after the last use. */
  dtrun_status (*open_part)(const dtrun_host* host, dtrun_kv* kv, dtrun_string prefix, const int32_t* ranks,
                            uint64_t rank_count, dtrun_kv** out, dtrun_error* err);
  void (*close_part)(const dtrun_host* host, dtrun_kv* part);
} dtrun_kv_service;

#define DTRUN_KV_SERVICE "dtrun.kv/1"

/* ---- "dtrun.clock/1" ----------------------------------------------------------- */

typedef struct dtrun_clock_service {
  uint32_t struct_size;
  uint32_t flags;
  int64_t (*monotonic_ns)(const dtrun_host* host); /* for timeouts and traces. [any] [abort-safe] */
  int64_t (*wall_ns)(const dtrun_host* host);      /* since 1970, UTC. [any] [abort-safe] */
} dtrun_clock_service;

#define DTRUN_CLOCK_SERVICE "dtrun.clock/1"

/* ---- "dtrun.threads/1" --------------------------------------------------------- */

/* Plugins declare their threads: core names them and blocks signals in them. */
typedef struct dtrun_threads_service {
  uint32_t struct_size;
  uint32_t flags;
  /* First call on a new thread. `name` has at most 15 bytes. [any] */
  void (*on_start)(const dtrun_host* host, const char* name);
  /* Last call on that thread. [any] */
  void (*on_stop)(const dtrun_host* host);
} dtrun_threads_service;

#define DTRUN_THREADS_SERVICE "dtrun.threads/1"

/* ---- "dtrun.health/1" ---------------------------------------------------------- */

typedef struct dtrun_health_service {
  uint32_t struct_size;
  uint32_t flags;
  /* 1 once the job is ending; long loops should return. [any] [abort-safe] */
  int32_t (*should_stop)(const dtrun_host* host);
  /* Tells core that `peer` (-1: unknown) has failed; `what` is one line. `peer` is a rank of the communicator
   * with the key-value space `kv`, or of the world where that is NULL. Required of a backend that finds a
   * rank dead. Core keeps the first report for the verdict. [any] [abort-safe] */
  void (*report_peer)(const dtrun_host* host, dtrun_kv* kv, int32_t peer, dtrun_string what);
} dtrun_health_service;

#define DTRUN_HEALTH_SERVICE "dtrun.health/1"

#endif
