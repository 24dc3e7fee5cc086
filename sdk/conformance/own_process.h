// Tells the process of a case from copies of it: a plugin that forks and returns in both processes (T8) would
// have each run the rest of the case, and one that ends its copies itself leaves no other trace.
//
// Any thread.
#pragma once

#include <functional>
#include <string>

namespace dtrun::conformance {

// This process runs cases from now on. Processes that the suite itself forks claim themselves again.
void ClaimProcess();
// Ends this process, without a word, when it is a copy of the one that was claimed. Nothing when none was.
void EndIfCopied();

// Call it before `_exit(code)`: counts it when it is a copy. 126 and 127 say
// that it has tried to exec.
void CountIfCopied(int code);
// How many copies have ended by exit or a counted `_exit`.
int CopiesThatEnded();

// What `say` returns in a process of its own, of another user's environment.
std::string InAnotherProcess(const std::function<std::string()>& say);

}  // namespace dtrun::conformance
