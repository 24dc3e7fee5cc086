// Finds dtrun's equivalents for variables of NCCL, Gloo, UCX, MPI, torch or OpenMP, for `dtrun config explain
// NCCL_SOCKET_IFNAME`. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/dtrun/options_page.h"

namespace dtrun::cli {

// Whether `word` looks like a variable and not like an option: NCCL_DEBUG, OMPI_MCA_btl_tcp_if_include.
bool NamesVariable(std::string_view word);

// The equivalent core option; empty: none.
std::string OptionInPlaceOf(std::string_view variable);

// A paragraph about it. `plugins`: plugin options, which may be equivalent to a variable.
std::string VariableText(const std::string& variable, const std::vector<OptionTable>& plugins);

}  // namespace dtrun::cli
