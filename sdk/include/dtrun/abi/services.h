/* services.h - what a host does for a backend beyond host.h, in any language: reductions, collectives over
 * send and receive, a queue of calls, who has joined, left or failed, and another backend to stand on.
 *
 * Each is found by its id with dtrun_host.get_service, in a rank and in a probe, and takes the host first. An
 * object that `open` makes is the plugin's until it closes it. No member is a slot: a backend uses what it
 * needs and leaves the rest. Each member says which threads may call it.
 */
#ifndef DTRUN_ABI_SERVICES_H
#define DTRUN_ABI_SERVICES_H

#include "dtrun/abi/plugin.h"

/* ---- "dtrun.kernels/1" --------------------------------------------------------- */

/* `count` elements of each source combined into `out`, which may be one of the sources and overlaps no other.
 * DTRUN_AVG divides by source_count; DTRUN_PREMUL_SUM adds: scale the sources first. */
typedef struct dtrun_reduction {
  uint32_t struct_size;
  uint32_t flags;
  int32_t dtype;
  int32_t reduce;
  void* out;
  const void* const* sources; /* combined in this order */
  uint64_t source_count;      /* at least 1 */
  uint64_t count;             /* elements; with 0, no buffer is looked at */
} dtrun_reduction;

/* Arithmetic of all types of types.h, with the processor's vector instructions. */
typedef struct dtrun_kernels_service {
  uint32_t struct_size;
  uint32_t flags;
  /* Bytes of one element; 0 for an unknown type. [any] */
  uint64_t (*element_bytes)(const dtrun_host* host, int32_t dtype);
  /* 1 when `reduce` has a meaning for `dtype`: the table of types.h. 0 also for unknown values. [any] */
  int32_t (*has_meaning)(const dtrun_host* host, int32_t dtype, int32_t reduce);
  /* DTRUN_UNSUPPORTED when the pair has no meaning. [any] */
  dtrun_status (*reduce)(const dtrun_host* host, const dtrun_reduction* reduction, dtrun_error* err);
  /* out[i] = in[i] * factor; in == out is allowed. DTRUN_UNSUPPORTED unless `dtype` is floating or complex.
   * [any] */
  dtrun_status (*scale)(const dtrun_host* host, void* out, const void* in, uint64_t count, int32_t dtype,
                        double factor, dtrun_error* err);
} dtrun_kernels_service;

#define DTRUN_KERNELS_SERVICE "dtrun.kernels/1"

/* ---- "dtrun.collectives/1" ----------------------------------------------------- */

typedef struct dtrun_message dtrun_message;         /* opaque, the plugin's */
typedef struct dtrun_collectives dtrun_collectives; /* opaque, the host's */

/* Messages between the ranks of one communicator, which the plugin implements. Those from one rank to another
 * match in the order in which both sides started them. A member fails when the communicator has failed or is
 * aborted, and when the time of the operation is over: the plugin keeps that deadline itself. Called by the
 * thread that calls `run` only. */
typedef struct dtrun_messenger {
  uint32_t struct_size;
  uint32_t flags;
  void* context; /* first argument of all members */
  int32_t rank;
  int32_t size;
  /* Start a message and return at once. *out is NULL at the call and stays so when the message has completed
   * already; else it is given to `wait`. The memory stays valid until then, or until `cancel`. `peer` is
   * never this rank; both sides give the same `bytes`. A message of 0 bytes is one, too: its receive
   * completes only after the peer has sent. */
  dtrun_status (*send)(void* context, int32_t peer, const void* data, uint64_t bytes, dtrun_message** out,
                       dtrun_error* err);
  dtrun_status (*recv)(void* context, int32_t peer, void* data, uint64_t bytes, dtrun_message** out,
                       dtrun_error* err);
  /* Blocks until the message is complete, and forgets it, also on failure. Once for each, in any order. */
  dtrun_status (*wait)(void* context, dtrun_message* message, dtrun_error* err);
  /* Ends and forgets all messages that were started and not waited for; their memory is not touched after
   * that. Comes when a collective fails in the middle; no message of it follows. */
  void (*cancel)(void* context);
} dtrun_messenger;

/* Every collective, for a transport that only sends and receives. Number of ranks, type and counts choose the
 * algorithm, so all ranks choose the same. Results are bitwise the same on all ranks. */
typedef struct dtrun_collectives_service {
  uint32_t struct_size;
  uint32_t flags;
  /* For one communicator; copies the table and keeps scratch memory from call to call. [any] */
  dtrun_status (*open)(const dtrun_host* host, const dtrun_messenger* messenger, dtrun_collectives** out,
                       dtrun_error* err);
  /* Carries out `op`, as core gave it to `enqueue`; blocks. The buffers are the caller's again when it
   * returns, also on failure, which is the messenger's own or says what is wrong with `op`. One thread at a
   * time for one object. */
  dtrun_status (*run)(const dtrun_host* host, dtrun_collectives* collectives, const dtrun_op* op,
                      dtrun_error* err);
  /* When no call runs. NULL is allowed. [any] */
  void (*close)(const dtrun_host* host, dtrun_collectives* collectives);
} dtrun_collectives_service;

#define DTRUN_COLLECTIVES_SERVICE "dtrun.collectives/1"

/* ---- "dtrun.calls/1" ----------------------------------------------------------- */

typedef struct dtrun_calls dtrun_calls; /* opaque, the host's: a queue */
typedef struct dtrun_call dtrun_call;   /* opaque, the host's: an operation in the queue */

/* What a queue runs its calls on, which the plugin implements. */
typedef struct dtrun_runner {
  uint32_t struct_size;
  uint32_t flags;
  void* context; /* first argument of all members */
  /* Carries out `op`, a copy; its timeout_ns is what is left of the operation's time; may block. One call at
   * a time, in the order of enqueue. After a failure the communicator has failed, so later calls fail too. */
  dtrun_status (*run)(void* context, const dtrun_op* op, dtrun_error* err);
  /* The time of `op` is over before its turn. Fails the communicator with DTRUN_TIMEOUT, so that the `run`
   * that is under way returns soon and later ones fail, that of `op` too; ends nothing itself. The queue
   * alone calls it, beside that `run`: on the thread that is in `test`, `wait` or `release` of the call of
   * `op`, or on one of its own, so whether or not the caller looks; perhaps again until the call has ended.
   * Must neither block nor call the queue. [any] */
  void (*abandon)(void* context, const dtrun_op* op);
} dtrun_runner;

/* Collectives, one after another, for a transport that blocks. An operation with DTRUN_OP_BLOCKING and
 * nothing ahead of it runs on the thread that waits for it; others on a thread of the queue. For collectives
 * only: a message must not wait for them. */
typedef struct dtrun_calls_service {
  uint32_t struct_size;
  uint32_t flags;
  /* For a communicator of `size` ranks; copies the table. `thread`: name of the queue's thread, at most 15
   * bytes. [any] */
  dtrun_status (*open)(const dtrun_host* host, const dtrun_runner* runner, int32_t size, const char* thread,
                       dtrun_calls** out, dtrun_error* err);
  /* DTRUN_PENDING: *out is the call. Copies `op` and its arrays; never waits. DTRUN_SYSTEM: no thread can be
   * started, and nothing was. One thread at a time for one queue. */
  dtrun_status (*enqueue)(const dtrun_host* host, dtrun_calls* calls, const dtrun_op* op, dtrun_call** out,
                          dtrun_error* err);
  /* DTRUN_OK: it has completed. DTRUN_PENDING: it still runs, or waits for its turn. Else what `run` said,
   * every time. [any] */
  dtrun_status (*test)(const dtrun_host* host, dtrun_call* call, dtrun_error* err);
  /* The same after at most timeout_ns (0: at once, -1: no limit). May run the call on this thread, and then
   * takes as long as that. [any] */
  dtrun_status (*wait)(const dtrun_host* host, dtrun_call* call, int64_t timeout_ns, dtrun_error* err);
  /* Drops the call; waits for it when it has not ended, for which the plugin has to fail the communicator
   * where its `run` hangs. NULL is allowed. [any] */
  void (*release)(const dtrun_host* host, dtrun_call* call);
  /* When every call was released, so that `run` is not under way. NULL is allowed. [any] */
  void (*close)(const dtrun_host* host, dtrun_calls* calls);
} dtrun_calls_service;

#define DTRUN_CALLS_SERVICE "dtrun.calls/1"

/* ---- "dtrun.membership/1" ------------------------------------------------------ */

typedef struct dtrun_membership dtrun_membership; /* opaque, the host's */

/* The ranks of a communicator, as its key-value space knows them: what each said when it joined, which have
 * left, and the first failure of all. Every member asks the store, one round trip or more: not for the data
 * path. A topic is a short text that all ranks use alike. Values are bytes; one that a member hands out is
 * the caller's: memory->release it. All [any]. */
typedef struct dtrun_membership_service {
  uint32_t struct_size;
  uint32_t flags;
  /* Of the communicator that comm_create is making; its `kv` outlives the object. Asks nothing yet. */
  dtrun_status (*open)(const dtrun_host* host, const dtrun_comm_params* params, dtrun_membership** out,
                       dtrun_error* err);
  /* Publishes `value`, what the others need to know of this rank, and waits until every rank has joined: once
   * for each topic. DTRUN_TIMEOUT names the missing ranks; another rank's failure comes instead when that is
   * the reason. */
  dtrun_status (*join)(const dtrun_host* host, dtrun_membership* membership, dtrun_string topic,
                       const void* value, uint64_t bytes, int64_t timeout_ns, dtrun_error* err);
  /* What `peer` gave to `join`. After this rank's own join with the topic. */
  dtrun_status (*said)(const dtrun_host* host, dtrun_membership* membership, dtrun_string topic, int32_t peer,
                       void** out_value, uint64_t* out_bytes, dtrun_error* err);
  /* Announces that this rank makes no more calls. `value`: what the others should know of it from then on. */
  dtrun_status (*leave)(const dtrun_host* host, dtrun_membership* membership, const void* value,
                        uint64_t bytes, dtrun_error* err);
  /* What `peer` gave to `leave`; DTRUN_NOT_FOUND while it has not left. */
  dtrun_status (*left)(const dtrun_host* host, dtrun_membership* membership, int32_t peer, void** out_value,
                       uint64_t* out_bytes, dtrun_error* err);
  /* Tells the other ranks why this one fails, with code, peer and message. The first one of a communicator is
   * kept. Not for a `join` that ended with DTRUN_TIMEOUT: each rank finds by itself who did not come (F2). */
  dtrun_status (*publish_failure)(const dtrun_host* host, dtrun_membership* membership,
                                  const dtrun_error* failure, dtrun_error* err);
  /* Fills *out_failure, which the caller has sized, with the failure that was published first, and *out_rank
   * with who published it. Another rank's reads as this one should report it: DTRUN_REMOTE_FAILURE of the
   * rank to blame, or DTRUN_ABORTED. DTRUN_NOT_FOUND while there is none. */
  dtrun_status (*first_failure)(const dtrun_host* host, dtrun_membership* membership, int32_t* out_rank,
                                dtrun_error* out_failure, dtrun_error* err);
  /* Tells no rank. NULL is allowed. */
  void (*close)(const dtrun_host* host, dtrun_membership* membership);
} dtrun_membership_service;

#define DTRUN_MEMBERSHIP_SERVICE "dtrun.membership/1"

/* ---- "dtrun.plugins/1" --------------------------------------------------------- */

/* A backend that another one, the wrapper, stands on. The host's; constant until `close`. */
typedef struct dtrun_wrapped {
  uint32_t struct_size;
  uint32_t flags;
  /* Its table, checked by the host: it has every member of the host's headers, NULL or zero where the plugin
   * has none, and no text is NULL. `init` and `shutdown` are NULL: `open` and `close` call them. */
  const dtrun_plugin* plugin;
  dtrun_instance* instance; /* first argument of the members of plugin->backend */
} dtrun_wrapped;

/* Loads the backend that the user named in an option of the wrapper with DTRUN_OPTION_BACKEND. It is found,
 * checked and pinned like one of backend.name, in a probe and in a rank, and gets its own options: those of
 * [backend.NAME] in the config. To its members the wrapper is the host: it keeps the rules that bind the
 * host (B, D, F and T), makes communicators on its own `kv` or a part of it (dtrun_kv_service.open_part), and
 * never passes on an object of its own, such as `parent`. */
typedef struct dtrun_plugins_service {
  uint32_t struct_size;
  uint32_t flags;
  /* `options`: dtrun_init_params.options of the wrapper's init; during that call only. Fails as the wrapped plugin's
   * load or init does, with its name. [control] */
  dtrun_status (*open)(const dtrun_host* host, const dtrun_options* options, const char* key,
                       const dtrun_wrapped** out, dtrun_error* err);
  /* Shuts it down, after its communicators were destroyed. NULL is allowed. [control] */
  void (*close)(const dtrun_host* host, const dtrun_wrapped* wrapped);
} dtrun_plugins_service;

#define DTRUN_PLUGINS_SERVICE "dtrun.plugins/1"

/* An extension of a wrapper (dtrun_plugin.get_extension), by which the host finds extensions of the plugin
 * below: one that the wrapper lacks is asked of the wrapped plugin, and used with its communicator. */
typedef struct dtrun_wrapper_extension {
  uint32_t struct_size;
  uint32_t flags;
  /* The communicator that carries `comm`, of the instance `self`, and the plugin below. `comm` may be NULL, where
   * this rank has none, and so may the result. [any] */
  dtrun_backend_comm* (*below)(dtrun_instance* self, dtrun_backend_comm* comm, const dtrun_wrapped** out_wrapped);
} dtrun_wrapper_extension;

#define DTRUN_WRAPPER_EXTENSION "dtrun.wrapper/1"

#endif
