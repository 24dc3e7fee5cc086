// Encodes an error that one rank writes into a key-value space for the others.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::comm {

std::string EncodeError(const Error& error);
Error DecodeError(std::string_view told);

}  // namespace dtrun::comm
