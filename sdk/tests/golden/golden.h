/* golden.h - what the golden plugins share: copies of sized structs, and their identity.
 *
 * The plugins are plain C11 on the frozen headers alone, so that any compiler builds them. Nothing here is shared
 * by threads.
 */
#ifndef DTRUN_GOLDEN_H
#define DTRUN_GOLDEN_H

#include "dtrun/abi.h"
#include "dtrun/abi/structs.h"

/* `to`, an lvalue, becomes the part of a caller's struct that this plugin knows. */
#define GOLDEN_READ(to, object) dtrun_struct_read(&(to), sizeof(to), (object))

static void golden_identify(dtrun_plugin* table, int32_t kind) {
  DTRUN_PLUGIN_INIT(*table);
  table->kind = kind;
  table->name = "golden";
  table->version = "1.0.0";
  table->vendor = "dtrun tests";
  table->license = "Apache-2.0";
  table->summary = "what an author once compiled";
}

#endif
