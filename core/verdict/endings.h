// How ranks ended, in words: one of them, and those around the one that failed first.
//
// Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// "exited with code 3", "was killed by signal 9 (SIGKILL)"
std::string EndingText(const process::Ending& ending);

// The ranks that live in the process, which come after what is there.
void AddRanks(const RankFacts& process, std::vector<int>* to);

bool OnLostHost(const Facts& facts, const RankFacts& rank);

// Around the failure at `at`, clause by clause; empty when there are none. Ranks that had ended well by then:
std::string Before(const Facts& facts, std::chrono::nanoseconds at);
// Those that ended well later, with a signal of dtrun's on its way, be it that they heard it or not:
std::string Meanwhile(const Facts& facts, std::chrono::nanoseconds at);
// Those that ended well later, whatever became of the others. But for those that were `told` of before:
std::string Beside(const Facts& facts, std::chrono::nanoseconds at, const std::vector<int>& told);
// Those that failed later by themselves, and blamed nobody: nothing shows why. But for `cause`, null when it
// is no rank, and those that were `told` of before: "rank 0 exited with code 1 0.01 s later".
std::string AlsoFailed(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                       const std::vector<int>& told = {});
// All others that had not ended well, with the same exceptions: "ranks 2-5 were stopped by dtrun".
std::string Consequences(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                         const std::vector<int>& told = {});

// How the ranks ended in a run that was ended from outside.
std::string Endings(const Facts& facts);

}  // namespace dtrun::verdict
