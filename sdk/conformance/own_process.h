// Tells the process of a case from copies of it: a plugin that forks and returns in both processes (T8) would
// have each run the rest of the case.
//
// Any thread.
#pragma once

namespace dtrun::conformance {

// This process runs cases from now on. Processes that the suite itself forks claim themselves again.
void ClaimProcess();
// Ends this process, without a word, when it is a copy of the one that was claimed. Nothing when none was.
void EndIfCopied();

}  // namespace dtrun::conformance
