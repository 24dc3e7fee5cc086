// The options that the user may set for this backend: constant data. Any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::gloo_plugin {

inline constexpr const char* kInterfaceOption = "interface";

const dtrun_option* OptionTable();
std::uint64_t OptionCount();

}  // namespace dtrun::gloo_plugin
