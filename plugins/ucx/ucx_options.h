// The options that the user may set for this backend: constant data. Any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::ucx_plugin {

inline constexpr const char* kTransportsOption = "transports";
inline constexpr const char* kDevicesOption = "devices";
inline constexpr const char* kRequiredOption = "required";
inline constexpr const char* kRailsOption = "rails";

// Indices of the choices of `required`.
inline constexpr int kRequiredAny = 0;
inline constexpr int kRequiredRdma = 1;

const dtrun_option* OptionTable();
std::uint64_t OptionCount();

}  // namespace dtrun::ucx_plugin
