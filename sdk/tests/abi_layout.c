/* The committed layout against the headers, as C sees them. Compiling it is the test. */
#include <assert.h>

#include "dtrun/abi.h"

#define DTRUN_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), "size of " #type);
#define DTRUN_MEMBER(type, member, offset, bytes)                                    \
  static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member); \
  static_assert(sizeof(((type*)0)->member) == (bytes), "size of " #type "." #member);

#include "abi_layout.inc"
