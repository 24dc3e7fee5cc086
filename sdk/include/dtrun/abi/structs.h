/* structs.h - reading and filling structs of which the other side chose the size, in C.
 *
 * A struct of a caller may be longer than the one that these headers know, and, once these are of a later minor
 * than 1.0, shorter: rules S2 and S3 of docs/abi.md. A plugin that uses nothing later than 1.0 needs none of this.
 * Pure; any thread.
 */
#ifndef DTRUN_ABI_STRUCTS_H
#define DTRUN_ABI_STRUCTS_H

#include "dtrun/abi/base.h"

/* Every struct of ABI 1.0 with its size in bytes there, which is the least that a struct_size may be. */
#define DTRUN_FLOORS(SIZE)            \
  SIZE(dtrun_error, 552)              \
  SIZE(dtrun_op, 120)                 \
  SIZE(dtrun_option, 112)             \
  SIZE(dtrun_options_service, 48)     \
  SIZE(dtrun_host, 48)                \
  SIZE(dtrun_log_service, 24)         \
  SIZE(dtrun_memory_service, 24)      \
  SIZE(dtrun_kv_service, 80)          \
  SIZE(dtrun_clock_service, 24)       \
  SIZE(dtrun_threads_service, 24)     \
  SIZE(dtrun_health_service, 24)      \
  SIZE(dtrun_launch_query, 16)        \
  SIZE(dtrun_launch_sink, 32)         \
  SIZE(dtrun_backend_caps, 64)        \
  SIZE(dtrun_support_query, 28)       \
  SIZE(dtrun_comm_params, 136)        \
  SIZE(dtrun_abort_params, 24)        \
  SIZE(dtrun_group_params, 8)         \
  SIZE(dtrun_mem_params, 32)          \
  SIZE(dtrun_snapshot_sink, 24)       \
  SIZE(dtrun_backend, 152)            \
  SIZE(dtrun_env_entry, 24)           \
  SIZE(dtrun_job_host, 32)            \
  SIZE(dtrun_job, 120)                \
  SIZE(dtrun_process, 64)             \
  SIZE(dtrun_plan_sink, 32)           \
  SIZE(dtrun_hosts_query, 16)         \
  SIZE(dtrun_allocated_host, 24)      \
  SIZE(dtrun_allocation, 88)          \
  SIZE(dtrun_hosts_sink, 24)          \
  SIZE(dtrun_connect_query, 48)       \
  SIZE(dtrun_connect_command, 64)     \
  SIZE(dtrun_connect_sink, 24)        \
  SIZE(dtrun_launcher, 32)            \
  SIZE(dtrun_init_params, 24)         \
  SIZE(dtrun_plugin, 144)             \
  SIZE(dtrun_reduction, 48)           \
  SIZE(dtrun_kernels_service, 40)     \
  SIZE(dtrun_messenger, 56)           \
  SIZE(dtrun_collectives_service, 32) \
  SIZE(dtrun_runner, 32)              \
  SIZE(dtrun_calls_service, 56)       \
  SIZE(dtrun_membership_service, 72)  \
  SIZE(dtrun_wrapped, 24)             \
  SIZE(dtrun_plugins_service, 24)     \
  SIZE(dtrun_wrapper_extension, 16)

/* Makes `full`, of `bytes` bytes, a copy of `given`; what `given` lacks is zero. */
static inline void dtrun_struct_read(void* full, size_t bytes, const void* given) {
  uint32_t size;
  uint32_t mine = (uint32_t)bytes;
  memcpy(&size, given, sizeof size);
  memset(full, 0, bytes);
  memcpy(full, given, size < bytes ? size : bytes);
  memcpy(full, &mine, sizeof mine);
}

/* Fills a caller's struct from `full`, of `bytes` bytes, as far as the caller's goes; struct_size stays. */
static inline void dtrun_struct_write(void* given, const void* full, size_t bytes) {
  uint32_t size;
  memcpy(&size, given, sizeof size);
  if (size < bytes) bytes = size;
  if (bytes > sizeof size)
    memcpy((char*)given + sizeof size, (const char*)full + sizeof size, bytes - sizeof size);
}

#endif
