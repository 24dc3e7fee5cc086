// What sets here what a variable of NCCL, Gloo, UCX, an MPI, torch or OpenMP sets there: for `dtrun config
// explain NCCL_SOCKET_IFNAME`. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/dtrun/options_page.h"

namespace dtrun::cli {

// Whether `word` is named as variables are and as no option is: NCCL_DEBUG, OMPI_MCA_btl_tcp_if_include.
bool NamesVariable(std::string_view word);

// The option of core that does the same; empty: none does.
std::string OptionInPlaceOf(std::string_view variable);

// A paragraph on it. `plugins`: options of plugins, each of which may be like a variable.
std::string VariableText(const std::string& variable, const std::vector<OptionTable>& plugins);

}  // namespace dtrun::cli
