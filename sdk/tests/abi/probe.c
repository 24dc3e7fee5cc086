/* probe.c - an object with debug information of every type of the ABI and of dtrun.h, for abidiff.
 *
 * The structs are those that abi_layout.inc lists, which layout_is_complete.py keeps complete;
 * abi_diff_test.py makes probe_functions.inc of the functions that dtrun.h declares. Nothing runs it.
 */
#include "dtrun/abi.h"
#include "dtrun/dtrun.h"

#define DTRUN_SIZE(type, bytes) type* pointer_to_##type;
#define DTRUN_MEMBER(type, member, offset, bytes)
#define PROBE_FUNCTION(name) __typeof__(name)* name;

struct probe {
#include "abi_layout.inc"
  dtrun_plugin_entry entry;
#include "probe_functions.inc"
};

/* What abidiff starts from. */
void probe(struct probe* all);
void probe(struct probe* all) { (void)all; }
