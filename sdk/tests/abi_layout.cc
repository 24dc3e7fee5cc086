// The committed layout, types and values against the headers, as C++ sees them. Compiling it is the test.
#include <string_view>
#include <type_traits>

#include "dtrun/abi.h"
#include "dtrun/abi/device.h"
#include "dtrun/abi/structs.h"

#define DTRUN_SIZE(type, bytes)                                                        \
  static_assert(sizeof(type) == (bytes), "size of " #type);                            \
  static_assert(std::is_standard_layout_v<type> && std::is_trivially_copyable_v<type>, \
                #type " is plain data");
#define DTRUN_MEMBER(type, member, offset, bytes)                                    \
  static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member); \
  static_assert(sizeof(type::member) == (bytes), "size of " #type "." #member);
#define DTRUN_TYPE(type, member, ...) \
  static_assert(std::is_same_v<decltype(type::member), __VA_ARGS__>, "type of " #type "." #member);
#define DTRUN_VALUE(name, value) static_assert((name) == (value), "value of " #name);
#define DTRUN_TEXT(name, text) static_assert(std::string_view(name) == (text), "text of " #name);

#include "abi_layout.inc"
#include "abi_types.inc"
#include "device_layout.inc"
#include "device_types.inc"

#define FLOOR(type, bytes) \
  static_assert(DTRUN_ABI_MINOR == 0 ? sizeof(type) == (bytes) : sizeof(type) >= (bytes), "floor of " #type);
DTRUN_FLOORS(FLOOR)
