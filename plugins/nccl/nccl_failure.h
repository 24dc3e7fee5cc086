// What NCCL said went wrong, as one sentence that ends with the next step. What NCCL's texts mean is known to
// dtrun, whose verdict and `dtrun explain` tell it.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "dtrun/plugin.hpp"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {

// `doing` is a phrase such as "make communicator 'world'".
sdk::Failure NcclFailure(const std::string& doing, nccl::Result result, std::string_view error_string,
                         std::string_view last_error);
// As above, with the texts of `api`.
sdk::Failure NcclFailure(const NcclApi& api, const std::string& doing, nccl::Result result);

}  // namespace dtrun::nccl_plugin
