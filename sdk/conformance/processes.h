// Ranks as processes, for what threads cannot show: a rank that dies or stops.
//
// Used by the thread of a case, before it has made an instance of the plugin (T10).
#pragma once

#include <chrono>
#include <functional>

#include "subject.h"

namespace dtrun::conformance {

// The rank that something happens to.
struct Victim {
  int rank = -1;       // -1: none
  bool killed = true;  // its body ends by SIGKILL; else it stops itself by SIGSTOP
  // After which it goes on; less than 0: when all others have ended.
  std::chrono::milliseconds pause{-1};
};

// Plays `size` ranks of a fresh world, each in a process with an instance of its own. What a body expects
// fails the case; so does a rank that does not end as it should.
using ProcessBody = std::function<void(const Subject& subject, dtrun_kv* kv, int rank)>;
void PlayInProcesses(const BackendUnderTest& backend, int size, const Victim& victim,
                     const ProcessBody& body);

// Why this backend's ranks cannot be `size` processes; "" when they can.
std::string ReasonAgainstProcesses(const BackendUnderTest& backend, int size);

}  // namespace dtrun::conformance
