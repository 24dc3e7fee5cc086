// The options that the user may set for this backend: constant data. Any thread.
#pragma once

#include "dtrun/plugin.hpp"

namespace dtrun::ucx_plugin {

inline constexpr const char* kTransportsOption = "transports";
inline constexpr const char* kDevicesOption = "devices";
inline constexpr const char* kRequiredOption = "required";
inline constexpr const char* kRailsOption = "rails";
inline constexpr const char* kP2pOption = "p2p";

// Indices of the choices of `required`.
inline constexpr int kRequiredAny = 0;
inline constexpr int kRequiredRdma = 1;

// Indices of the choices of `p2p`.
inline constexpr int kP2pAuto = 0;
inline constexpr int kP2pOn = 1;
inline constexpr int kP2pOff = 2;

const dtrun_option* OptionTable();
std::uint64_t OptionCount();

}  // namespace dtrun::ucx_plugin
