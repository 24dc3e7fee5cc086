/* golden.h - what the golden plugins share: copies of sized structs, and their identity.
 *
 * The plugins are plain C11 on dtrun/abi.h alone, so that any compiler builds them. GOLDEN_TRUSTS_SIZES makes
 * a plugin that takes every struct for as long as its own, which golden_driver finds. Nothing here is shared
 * by threads.
 */
#ifndef DTRUN_GOLDEN_H
#define DTRUN_GOLDEN_H

#include "dtrun/abi.h"

#ifdef GOLDEN_TRUSTS_SIZES
#define GOLDEN_HAS(type, object, member) ((void)(object), 1)
#define GOLDEN_COMMON(type, object) sizeof(type)
#else
#define GOLDEN_HAS(type, object, member) \
  ((object)->struct_size >= offsetof(type, member) + sizeof((object)->member))
#define GOLDEN_COMMON(type, object) \
  ((object)->struct_size < sizeof(type) ? (size_t)(object)->struct_size : sizeof(type))
#endif

/* `to`, an lvalue, becomes what both sides know of a caller's struct; the rest of it is zero. */
#define GOLDEN_READ(type, to, object) \
  (memset(&(to), 0, sizeof(type)), memcpy(&(to), (object), GOLDEN_COMMON(type, object)))
/* Sets a member of a caller's struct where the struct has it. */
#define GOLDEN_FILL(type, object, member, value) \
  ((void)(GOLDEN_HAS(type, object, member) && ((object)->member = (value), 1)))

static dtrun_status golden_fail(dtrun_error* err, dtrun_status code, const char* message) {
#ifdef GOLDEN_TRUSTS_SIZES
  if (err != NULL) DTRUN_ERROR_INIT(*err);
#endif
  return dtrun_error_set(err, code, -1, message);
}

/* The host table reached ABI 0.9 with get_service; a shorter one is no host of this ABI. */
static dtrun_status golden_enter(const dtrun_host* host, dtrun_error* err) {
  if (host != NULL && host->struct_size >= offsetof(dtrun_host, get_service) + sizeof host->get_service)
    return DTRUN_OK;
  return golden_fail(err, DTRUN_FAILED_PRECONDITION,
                     "the host's table is shorter than that of ABI 0.9; upgrade dtrun");
}

static void golden_identify(dtrun_plugin* table, int32_t kind) {
  DTRUN_PLUGIN_INIT(*table);
  table->kind = kind;
  table->name = "golden";
  table->version = "0.9.0";
  table->vendor = "dtrun tests";
  table->license = "Apache-2.0";
  table->summary = "what an author once compiled";
}

#endif
