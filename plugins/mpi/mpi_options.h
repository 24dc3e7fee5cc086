// The options that the user may set for this backend: constant data. Any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {

inline constexpr const char* kLibraryOption = "library";
inline constexpr const char* kCollSmOption = "coll_sm";
inline constexpr const char* kBlockingOption = "blocking";
inline constexpr const char* kChunkOption = "chunk";

// In the order of the choices.
enum class CollSm { kAuto, kOn, kOff };
enum class Blocking { kCaller, kThread };

const dtrun_option* OptionTable();
std::uint64_t OptionCount();

}  // namespace dtrun::mpi_plugin
