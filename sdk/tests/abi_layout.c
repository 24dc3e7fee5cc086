/* The committed layout, types and values against the headers, as C sees them. Compiling it is the test. */
#include <assert.h>

#include "dtrun/abi.h"
#include "dtrun/abi/device.h"
#include "dtrun/abi/structs.h"

#define DTRUN_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), "size of " #type);
#define DTRUN_MEMBER(type, member, offset, bytes)                                    \
  static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member); \
  static_assert(sizeof(((type*)0)->member) == (bytes), "size of " #type "." #member);
#define DTRUN_TYPE(type, member, ...) \
  static_assert(_Generic(((type*)0)->member, __VA_ARGS__ : 1, default : 0), "type of " #type "." #member);
#define DTRUN_VALUE(name, value) static_assert((name) == (value), "value of " #name);
#define DTRUN_TEXT(name, text) static_assert(sizeof(name) == sizeof(text), "text of " #name);

#include "abi_layout.inc"
#include "abi_types.inc"
#include "device_layout.inc"
#include "device_types.inc"

#define FLOOR(type, bytes) \
  static_assert(DTRUN_ABI_MINOR == 0 ? sizeof(type) == (bytes) : sizeof(type) >= (bytes), "floor of " #type);
DTRUN_FLOORS(FLOOR)
