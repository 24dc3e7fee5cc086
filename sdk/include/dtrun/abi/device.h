/* device.h - a draft: memory, streams and events of one kind of device, and what backends do with them.
 *
 * Nothing here is frozen by ABI 1.0, nor are rules D and G: DTRUN_DEVICE_DRAFT counts its changes, and host and plugin
 * use it together only where they have the same number. A backend of another draft moves host memory as ever, a
 * device plugin of another draft is not loaded. So is dtrun/device.h, its half for programs.
 *
 * A device plugin lets core move data between the host and a device, and order the two, without knowing the
 * kind of device: core stages operations of a backend that moves host memory only, checks which memory a
 * buffer is in, and makes streams. A backend that moves device memory itself needs none of this.
 *
 * Nothing but `copy` and what streams wait for runs on a device; every member returns without waiting for
 * one, where it does not say otherwise. The plugin owns its table, which lives as long as the process; what a
 * member makes belongs to the caller until it is destroyed. Each member says which threads call it. A member
 * leaves the thread's current device as it was.
 */
#ifndef DTRUN_ABI_DEVICE_H
#define DTRUN_ABI_DEVICE_H

#include "dtrun/abi/plugin.h"

/* dtrun_plugin.device_draft. */
#define DTRUN_DEVICE_DRAFT 1u
#undef DTRUN_PLUGIN_DRAFT
#define DTRUN_PLUGIN_DRAFT DTRUN_DEVICE_DRAFT

/* Bits of dtrun_backend_caps.features. */
#define DTRUN_CAP_DETACHED UINT64_C(0x1000000000000) /* takes operations with DTRUN_OP_DETACHED */
/* Takes operations on a stream that is being captured into a graph, as detached ones. */
#define DTRUN_CAP_CAPTURE UINT64_C(0x2000000000000)
#define DTRUN_CAP_STREAM_ORDER UINT64_C(0x4000000000000) /* messages wait for the operations before them: rule D6 */
/* Takes memory of devices without a stream, when nothing on the device uses it, and has moved it when the
 * request completes: rule D10. */
#define DTRUN_CAP_NO_STREAM UINT64_C(0x8000000000000)

/* A bit of dtrun_op.flags. On a stream: the caller wants no request. `enqueue` returns DTRUN_OK once the work is on
 * the stream, which alone tells of its end, as a captured graph needs it. Only with DTRUN_CAP_DETACHED. */
enum { DTRUN_OP_DETACHED = 1 << 24 };

/* A queue of a device, in which its work is ordered. */
typedef struct dtrun_stream {
  uint32_t struct_size;
  uint32_t flags;
  int32_t device_kind;
  int32_t device_index; /* from 0, as the device's own library counts in this process */
  void* native;         /* cudaStream_t, ...; NULL is that library's default stream */
} dtrun_stream;

typedef struct dtrun_event dtrun_event; /* opaque, the plugin's: a place in a stream */

/* The memory that a pointer is in. */
typedef struct dtrun_memory {
  uint32_t struct_size;
  uint32_t flags;
  int32_t device_kind; /* the plugin's, or DTRUN_DEVICE_HOST: also memory that the device's library does not
                          know */
  int32_t
      device_index; /* -1 with DTRUN_DEVICE_HOST, and where the device's library moves it between the two */
} dtrun_memory;

/* Which stream is wanted. */
typedef struct dtrun_stream_params {
  uint32_t struct_size;
  uint32_t flags;
  int32_t device_index;
  int32_t priority; /* 0: the library's default; 1: before others, where the device has priorities */
} dtrun_stream_params;

typedef struct dtrun_device {
  uint32_t struct_size;
  uint32_t flags;
  int32_t kind; /* DTRUN_DEVICE_CUDA ..., or from DTRUN_DEVICE_OTHER on */
  uint32_t reserved;

  /* How many devices this process may use. DTRUN_FAILED_PRECONDITION, with the reason, where none can be.
   * [any] */
  dtrun_status (*count)(dtrun_instance* self, int32_t* out, dtrun_error* err);
  /* The device that the calling thread uses, from 0. [any] */
  dtrun_status (*current)(dtrun_instance* self, int32_t* out, dtrun_error* err);
  /* One line for people, such as "NVIDIA H100, 0000:19:00.0, driver for CUDA 13.0", into `text`, cut to
   * `bytes`, with a NUL. [any] */
  dtrun_status (*describe)(dtrun_instance* self, int32_t device_index, char* text, uint64_t bytes,
                           dtrun_error* err);

  /* Fills *out. [any] */
  dtrun_status (*memory_of)(dtrun_instance* self, const void* pointer, dtrun_memory* out, dtrun_error* err);
  /* Memory of a device; or, with DTRUN_DEVICE_HOST, of the host, which all devices copy to and from without
   * blocking. Its contents are undefined. mem_free waits for the device's use of it where the library needs
   * that. [any] */
  dtrun_status (*mem_alloc)(dtrun_instance* self, const dtrun_mem_params* params, void** out,
                            dtrun_error* err);
  void (*mem_free)(dtrun_instance* self, const dtrun_mem_params* params, void* memory);

  /* A stream that does not wait for the default stream. It is destroyed when all its work has ended. [any] */
  dtrun_status (*stream_create)(dtrun_instance* self, const dtrun_stream_params* params, dtrun_stream* out,
                                dtrun_error* err);
  void (*stream_destroy)(dtrun_instance* self, const dtrun_stream* stream);
  /* *out: 1 while the stream is being captured into a graph, else 0. [any] */
  dtrun_status (*stream_capturing)(dtrun_instance* self, const dtrun_stream* stream, int32_t* out,
                                   dtrun_error* err);

  /* Copies when the stream's earlier work has ended. Each pointer is of the stream's device or of memory that
   * mem_alloc gave for the host; other host memory works, and may block. [any] */
  dtrun_status (*copy)(dtrun_instance* self, void* to, const void* from, uint64_t bytes,
                       const dtrun_stream* stream, dtrun_error* err);

  /* An event that is recorded again takes the new place; who waits for the old one goes on doing so. One that
   * was never recorded has been reached. [any] */
  dtrun_status (*event_create)(dtrun_instance* self, int32_t device_index, dtrun_event** out,
                               dtrun_error* err);
  void (*event_destroy)(dtrun_instance* self, dtrun_event* event);
  dtrun_status (*event_record)(dtrun_instance* self, dtrun_event* event, const dtrun_stream* stream,
                               dtrun_error* err);
  /* DTRUN_OK: the stream has reached it. DTRUN_PENDING: not yet. */
  dtrun_status (*event_test)(dtrun_instance* self, dtrun_event* event, dtrun_error* err);
  /* Later work on `stream` starts after it. */
  dtrun_status (*event_wait)(dtrun_instance* self, dtrun_event* event, const dtrun_stream* stream,
                             dtrun_error* err);

  /* Later work on `stream` starts when the host has written `value`, or a larger one, into *counter: aligned
   * memory that mem_alloc gave for the host, which outlives the wait. Values rise and do not wrap. [any] */
  dtrun_status (*counter_wait)(dtrun_instance* self, const uint32_t* counter, uint32_t value,
                               const dtrun_stream* stream, dtrun_error* err);
} dtrun_device;

#endif
