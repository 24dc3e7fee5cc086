// Locates dtrun-pmix, the program that serves PMIx for the agent, and defines its interface.
//
// SetPmixProgram: once, before other threads exist. Otherwise any thread.
#pragma once

#include <filesystem>

namespace dtrun::pmi {

// Its only argument, and its descriptor of the socket to the agent.
inline constexpr char kPmixServe[] = "serve";
inline constexpr char kPmixCheck[] = "check";  // prints the error
inline constexpr int kPmixDescriptor = 3;

// "lib/dtrun/dtrun-pmix" beside the running program's "bin", unless set.
std::filesystem::path PmixProgram();
void SetPmixProgram(std::filesystem::path program);

}  // namespace dtrun::pmi
