// The committed layout against the headers, as C++ sees them. Compiling it is the test.
#include <type_traits>

#include "dtrun/abi.h"

#define DTRUN_SIZE(type, bytes)                                                        \
  static_assert(sizeof(type) == (bytes), "size of " #type);                            \
  static_assert(std::is_standard_layout_v<type> && std::is_trivially_copyable_v<type>, \
                #type " is plain data");
#define DTRUN_MEMBER(type, member, offset, bytes)                                    \
  static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member); \
  static_assert(sizeof(type::member) == (bytes), "size of " #type "." #member);

#include "abi_layout.inc"
