/* backend.h - a transport: communicators, and one call that starts any operation.
 *
 * A backend has two faces. At launch, in a probe process on every host, launch_info
 * says what would be used and which environment variables make the same choice hold
 * for programs that use the vendor library directly. In the ranks it makes
 * communicators. A backend only moves bytes: sequence numbers, argument checks,
 * timeouts of the caller and abort decisions are core's.
 *
 * Every operation is one dtrun_op (op.h) given to `enqueue`. New operations need no new slot.
 *
 * The plugin owns its tables, which live as long as the process, and what `comm_create` returns until
 * it is destroyed. Each slot says which threads call it.
 */
#ifndef DTRUN_ABI_BACKEND_H
#define DTRUN_ABI_BACKEND_H

#include "dtrun/abi/host.h"
#include "dtrun/abi/op.h"

typedef struct dtrun_instance dtrun_instance;         /* made by dtrun_plugin.init */
typedef struct dtrun_backend_comm dtrun_backend_comm; /* opaque, the plugin's */
typedef struct dtrun_request dtrun_request;           /* opaque, the plugin's */
typedef struct dtrun_stream dtrun_stream;             /* of the device draft: device.h */

/* ---- launch ---------------------------------------------------------------------- */

/* Where the job will run, as far as it matters to the choice of a transport. */
typedef struct dtrun_launch_query {
  uint32_t struct_size;
  uint32_t flags;
  int32_t host_count;  /* 1: all ranks share this host */
  int32_t local_ranks; /* ranks on this host */
} dtrun_launch_query;

/* Receives the answer. Both members copy their arguments; a failure is final, and launch_info
 * returns it. [control] */
typedef struct dtrun_launch_sink {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /* One fact, for the run header and `describe`. docs/plugins.md lists the
   * keys that core reads: "library", "library_path", "interface", "p2p", "rdma", "unusable" (why: a list of
   * backends skips it); not in the header: "algorithm", "wire", "memory" ("host" or "device"), "by TOPIC",
   * "peer 0>1", "agree NAME". */
  dtrun_status (*fact)(void* context, const char* key, dtrun_string text, dtrun_error* err);
  /* An environment variable for every rank of this host. */
  dtrun_status (*env)(void* context, const char* name, const char* value, dtrun_error* err);
} dtrun_launch_sink;

/* ---- capabilities ------------------------------------------------------------------ */

/* Bits of dtrun_backend_caps.features: promises of the backend. A host ignores those that it does not know.
 * Bits 48 to 62 belong to the device draft. */
enum {
  DTRUN_CAP_ABORT = 1,      /* comm_abort ends blocked calls in bounded time */
  DTRUN_CAP_ANY_SOURCE = 4, /* a receive may match a message of any rank; 2 and 8 are retired */
  /* comm_create connects to few other ranks or none, so any number may share a communicator: rule B28 */
  DTRUN_CAP_LAZY_CONNECT = 16,
  DTRUN_CAP_LOSSY = 32 /* results keep the bounds of rule C10 or the equal bits of C7 not always */
};

/* What the backend can do. Bit v of a mask is enum value v. */
typedef struct dtrun_backend_caps {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t features; /* DTRUN_CAP_* */
  uint64_t ops;
  uint64_t dtypes;        /* that it moves */
  uint64_t reduces;       /* how it combines elements; 0: it reduces nothing */
  uint64_t max_bytes;     /* largest buffer of one operation, at least 16 MiB; 0: no limit */
  uint64_t reduce_dtypes; /* that it combines; each is in dtypes */
  uint64_t device_kinds;  /* memory that it moves: bit DTRUN_DEVICE_HOST, bit DTRUN_DEVICE_CUDA, ... */
} dtrun_backend_caps;

/* Asks for one combination that the masks allow. Members that `kind` does not use are 0. */
typedef struct dtrun_support_query {
  uint32_t struct_size;
  uint32_t flags;
  int32_t kind; /* DTRUN_ALLREDUCE ... */
  int32_t dtype;
  int32_t reduce;
  int32_t device_kind;
  int32_t device_index; /* -1 with DTRUN_DEVICE_HOST */
} dtrun_support_query;

/* ---- communicators ----------------------------------------------------------------- */

typedef struct dtrun_comm_params {
  uint32_t struct_size;
  uint32_t flags;
  int32_t rank;
  int32_t size;
  int32_t host_count;  /* hosts that the ranks run on */
  int32_t host;        /* of this rank: a number that ranks of one host share */
  uint64_t generation; /* start of the world that this communicator belongs to */
  dtrun_string name;   /* "world"; for messages */
  dtrun_kv* kv;        /* valid until comm_destroy returns */
  int64_t timeout_ns;  /* for creation; operations bring their own; 0: at once, -1: no limit */
  /* The network interface of this host that was tested to reach the others, and its numeric address; empty
     where dtrun has chosen none. */
  dtrun_string interface_name;
  dtrun_string address;
  int32_t local_processors; /* that the job's ranks on this host may use together; 0: not known */
  int32_t local_rank;       /* among this communicator's ranks on this host, in their order */
  const int32_t* hosts;     /* of each rank, `size` numbers as `host` is one; NULL: not known. Valid during
                               the call */
  int32_t device_kind;      /* DTRUN_DEVICE_HOST: the ranks use no device */
  int32_t device_index;     /* of this rank's device; -1 with DTRUN_DEVICE_HOST */
  /* The communicator that this one is made from, of this backend and this rank; NULL: none, as for the
     world. Not every rank of it is a member, and it may have failed or been aborted: then it is good for
     nothing but its numbers. */
  dtrun_backend_comm* parent;
  const int32_t* parent_ranks; /* of each rank, its rank in `parent`; `size` numbers; NULL without a parent.
                                  Valid during the call */
} dtrun_comm_params;

/* How a communicator is aborted. */
typedef struct dtrun_abort_params {
  uint32_t struct_size;
  uint32_t flags;
  dtrun_string reason; /* one line; a failure of a call that it ends contains it */
} dtrun_abort_params;

/* How operations are grouped. Nothing but the size and flags yet. */
typedef struct dtrun_group_params {
  uint32_t struct_size;
  uint32_t flags;
} dtrun_group_params;

/* Which memory is wanted. */
typedef struct dtrun_mem_params {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t bytes;       /* more than 0 */
  uint64_t alignment;   /* a power of two, at least 64; mem_register: 0 */
  int32_t device_kind;  /* one of the caps' device_kinds */
  int32_t device_index; /* -1 with DTRUN_DEVICE_HOST */
} dtrun_mem_params;

/* Receives `snapshot` lines; copies them. */
typedef struct dtrun_snapshot_sink {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  dtrun_status (*line)(void* context, dtrun_string text, dtrun_error* err);
} dtrun_snapshot_sink;

typedef struct dtrun_backend {
  uint32_t struct_size;
  uint32_t flags;

  /* Optional. Chooses and reports; touches no peer, finishes within 2 s. [control] */
  dtrun_status (*launch_info)(dtrun_instance* self, const dtrun_launch_query* query,
                              const dtrun_launch_sink* sink, dtrun_error* err);
  /* Pure. [any] */
  dtrun_status (*query_caps)(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err);

  /* Collective over all ranks; ends within timeout_ns. [control] */
  dtrun_status (*comm_create)(dtrun_instance* self, const dtrun_comm_params* params, dtrun_backend_comm** out,
                              dtrun_error* err);
  /* Local; all requests were released before. Ends in bounded time even when peers
   * are gone. [control] */
  void (*comm_destroy)(dtrun_backend_comm* comm);
  /* Local: it ends this rank's calls. It need not tell other ranks (F8): core aborts there, too. Every
   * pending and later enqueue, req_test, req_wait_host, req_wait_stream, group_begin and mem_alloc returns
   * DTRUN_ABORTED in bounded time, or the first cause where the communicator had failed before; an outcome
   * that was reported stays. All calls remain legal. Idempotent: the first reason stays. NULL without
   * DTRUN_CAP_ABORT. [abort-safe] */
  dtrun_status (*comm_abort)(dtrun_backend_comm* comm, const dtrun_abort_params* params, dtrun_error* err);

  /* Starts `op`; never waits for a peer. DTRUN_OK: it has completed, and *out is untouched. DTRUN_PENDING:
   * *out is its request. `stream` is NULL for host memory. Collectives match and complete in the order of the
   * calls; a message waits only for those of its peer and tag. [comm-serial] */
  dtrun_status (*enqueue)(dtrun_backend_comm* comm, const dtrun_op* op, const dtrun_stream* stream,
                          dtrun_request** out, dtrun_error* err);

  /* A request has one outcome, which never changes once a call has reported it. Operations progress without
   * these calls. */
  /* DTRUN_OK: it has completed. DTRUN_PENDING: it still runs. Never blocks. [any] */
  dtrun_status (*req_test)(dtrun_request* request, dtrun_error* err);
  /* Sleeps until it has ended, at most timeout_ns (0: not at all, -1: no limit): DTRUN_PENDING when it still
   * runs then. The first one of an operation with DTRUN_OP_BLOCKING may take until the operation ends, unless
   * timeout_ns is 0. DTRUN_TIMEOUT: the operation's own time is over, and it has failed. [any] */
  dtrun_status (*req_wait_host)(dtrun_request* request, int64_t timeout_ns, dtrun_error* err);
  /* Of the device draft: orders later work on `stream` after the result. NULL without streams. [comm-serial]
   */
  dtrun_status (*req_wait_stream)(dtrun_request* request, const dtrun_stream* stream, dtrun_error* err);
  /* Drops the handle. Waits for the operation if it is still running. [any] */
  void (*req_release)(dtrun_request* request);

  /* Optional. What this rank last started and completed, and what it knows of its
   * peers. Shares no lock with the data path. [abort-safe] */
  void (*snapshot)(dtrun_backend_comm* comm, const dtrun_snapshot_sink* sink);

  /* Optional, both or none: operations enqueued between the two may be started as one. enqueue returns as
   * ever; core neither tests nor waits before group_end. [comm-serial] */
  dtrun_status (*group_begin)(dtrun_backend_comm* comm, const dtrun_group_params* params, dtrun_error* err);
  dtrun_status (*group_end)(dtrun_backend_comm* comm, const dtrun_group_params* params, dtrun_error* err);

  /* Optional, both or none: memory that this transport moves fastest, for any operation of
   * any communicator of this instance; zeroed. Local: no peer takes part.
   * mem_free comes before comm_destroy, when no operation uses the memory. [any] */
  dtrun_status (*mem_alloc)(dtrun_backend_comm* comm, const dtrun_mem_params* params, void** out,
                            dtrun_error* err);
  void (*mem_free)(dtrun_backend_comm* comm, void* memory);

  /* Optional, for combinations that the masks of the capabilities cannot exclude: DTRUN_OK or
   * DTRUN_UNSUPPORTED, the same at every call. Pure. [any] */
  dtrun_status (*query_support)(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err);

  /* Optional, both or none: memory of the program, params->bytes from `memory` on, is made ready for
   * operations of this communicator, so that they cost less; nothing else changes. params->alignment is 0,
   * and device_kind one of the caps'. Local: no peer takes part. No two registrations of a communicator
   * overlap. mem_deregister gets the same `memory`, before comm_destroy, when no operation uses it. [any] */
  dtrun_status (*mem_register)(dtrun_backend_comm* comm, const dtrun_mem_params* params, void* memory,
                               dtrun_error* err);
  void (*mem_deregister)(dtrun_backend_comm* comm, void* memory);
} dtrun_backend;

#endif
