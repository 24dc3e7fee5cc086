// Protects a multi-node job from outsiders if its user shares no key.
//
// Anyone with the key can act as the root, and the root's command runs on every node. torchrun scripts use
// run ids such as "none", a number or a plain word, which are easy to guess. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/cluster.h"

namespace dtrun::torchrun {

struct Secret {
  enum class From {
    kNothing,   // the job is rejected, for the reason `refusal`
    kRunId,     // the run id is hard to guess, or the user asked for it
    kThisHost,  // the nodes meet at a loopback address: only this user's processes may join
  };
  From from = From::kNothing;
  std::string refusal;
  std::string note;  // shown on every node; empty: nothing
};

Secret SecretOf(const Arguments& arguments, const Rendezvous& rendezvous);

// Whether it is hard to guess: 16 characters or more, including digits, as from `uuidgen` and `openssl rand
// -hex 16`.
bool IsHardToGuess(std::string_view run_id);

}  // namespace dtrun::torchrun
