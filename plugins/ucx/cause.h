// Why a communicator failed. A value; any thread.
#pragma once

#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::ucx_plugin {

struct Cause {
  dtrun_status code = DTRUN_INTERNAL;
  std::string text;
  int peer = -1;        // the rank that is to blame, or -1
  bool theirs = false;  // another rank told us: it need not be told again
  [[noreturn]] void Throw() const { throw sdk::Failure(code, text, peer); }
};

}  // namespace dtrun::ucx_plugin
