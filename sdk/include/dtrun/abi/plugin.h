/* plugin.h - the one symbol a plugin exports, and the table it returns.
 *
 * A plugin is one shared object of one kind, named libdtrun_<kind>_<name>.so. It exports
 * exactly one function for each ABI major that it serves: here dtrun_plugin_entry_v1.
 * Core calls it with the host table and gets the plugin's table back. The call is cheap
 * and has no side effects: no thread, no vendor library, no device, under 50 ms, so that
 * `dtrun plugins list` works on a login node. `init` opens vendor libraries.
 */
#ifndef DTRUN_ABI_PLUGIN_H
#define DTRUN_ABI_PLUGIN_H

#include "dtrun/abi/backend.h"
#include "dtrun/abi/launcher.h"

#define DTRUN_PLUGIN_MAGIC UINT64_C(0x31306e7572746400) /* "\0dtrun01" read as little endian */
#define DTRUN_PLUGIN_ENTRY_SYMBOL "dtrun_plugin_entry_v1"

typedef struct dtrun_device dtrun_device; /* of the device draft: device.h */

/* What an instance is made with. */
typedef struct dtrun_init_params {
  uint32_t struct_size;
  uint32_t flags;
  const dtrun_host* host;       /* valid for the process */
  const dtrun_options* options; /* valid as long as the instance */
} dtrun_init_params;

typedef struct dtrun_plugin {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t magic;
  uint32_t abi_major;
  uint32_t abi_minor_built;    /* headers it was compiled with; set by DTRUN_PLUGIN_INIT */
  uint32_t abi_minor_required; /* oldest host it can work with: DTRUN_ABI_REQUIRED */
  int32_t kind;
  const char* name; /* the <name> of its file */
  const char* version;
  const char* vendor;
  const char* license; /* SPDX expression */
  const char* summary; /* one line, no full stop */
  const dtrun_option* options;
  uint64_t option_count;

  /* Opens the vendor library and makes an instance with these options. May be called
   * again, also for a second instance; where the library allows one only, it fails with
   * DTRUN_FAILED_PRECONDITION. [control] */
  dtrun_status (*init)(const dtrun_init_params* params, dtrun_instance** out, dtrun_error* err);
  /* Ends an instance; its communicators were destroyed before. [control] */
  void (*shutdown)(dtrun_instance* self);

  const dtrun_backend* backend;   /* DTRUN_KIND_BACKEND */
  const dtrun_launcher* launcher; /* DTRUN_KIND_LAUNCHER */

  /* Optional. Table for "<vendor>.<name>/<revision>", or NULL. `self` is the instance that will be used with
   * it, NULL before `init`. [any] */
  const void* (*get_extension)(dtrun_instance* self, const char* id);

  const dtrun_device* device; /* DTRUN_KIND_DEVICE */
  uint32_t device_draft;      /* DTRUN_DEVICE_DRAFT of what it does with devices; 0: nothing */
  uint32_t reserved;
} dtrun_plugin;

/* The device_draft of DTRUN_PLUGIN_INIT; device.h replaces it. */
#define DTRUN_PLUGIN_DRAFT 0u

/* Stamps size, magic, both ABI numbers and the draft of devices into a zeroed or fresh table. */
#define DTRUN_PLUGIN_INIT(table)                                                                   \
  (DTRUN_INIT(table), (void)((table).magic = DTRUN_PLUGIN_MAGIC),                                  \
   (void)((table).abi_major = DTRUN_ABI_MAJOR), (void)((table).abi_minor_built = DTRUN_ABI_MINOR), \
   (void)((table).abi_minor_required = DTRUN_ABI_REQUIRED), (void)((table).device_draft = DTRUN_PLUGIN_DRAFT))

#ifdef __cplusplus
#define DTRUN_EXTERN_C extern "C"
#else
#define DTRUN_EXTERN_C extern
#endif

/* Fills *out with a table that lives as long as the process. `host` is borrowed for the
 * process. Idempotent. [control] */
typedef dtrun_status (*dtrun_plugin_entry)(const dtrun_host* host, const dtrun_plugin** out,
                                           dtrun_error* err);

DTRUN_EXTERN_C __attribute__((visibility("default"))) dtrun_status dtrun_plugin_entry_v1(
    const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err);

#endif
