// dtrun-pmix, the program that serves PMIx beside the agent: where it is, and what it is told.
//
// The place is set once, before there are threads; else any thread.
#pragma once

#include <filesystem>

#include "core/base/result.h"

namespace dtrun::pmi {

// Its only argument, and where it finds the socket that goes to the agent.
inline constexpr char kPmixServe[] = "serve";
inline constexpr char kPmixCheck[] = "check";  // prints what is wrong
inline constexpr int kPmixDescriptor = 3;

// "lib/dtrun/dtrun-pmix" beside the "bin" that holds the running program, unless it was set.
std::filesystem::path PmixProgram();
void SetPmixProgram(std::filesystem::path program);

// An error when this dtrun was built without PMIx.
Status PmixBuilt();
// An error when this host cannot serve it: dtrun-pmix or libpmix is missing, or does not fit.
Status PmixOpens();

}  // namespace dtrun::pmi
