// The known identity of a plugin file, and the standard error that rejects it.
//
// A value; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/plugin/plugin.h"

namespace dtrun::plugin {

struct Identity {
  File file;
  std::string build_id;  // hex; empty if the file has none
  std::string version;   // empty until the plugin reports it
  std::string abi;       // "0.1"; empty until the plugin reports it
  std::string id = {};   // file_id.h; empty until read

  // "backend plugin '/x/libdtrun_backend_a.so' (name 'a', version 1.2, build-id 0f…, ABI 0.2; this dtrun has
  // ABI 0.1): <why>; <action>". `action` is a single next step.
  Error Refuse(dtrun_status code, std::string_view why, std::string_view action) const;
};

// "0.1"
std::string AbiText(std::uint32_t major, std::uint32_t minor);

}  // namespace dtrun::plugin
