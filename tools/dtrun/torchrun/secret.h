// What keeps strangers out of a job on several nodes when its user shares no key.
//
// Whoever has the key can be the root, whose command runs on every node. torchrun scripts have a run id such
// as "none", a number or a plain word, which anybody guesses. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/cluster.h"

namespace dtrun::torchrun {

struct Secret {
  enum class From {
    kNothing,   // the job is refused, for the reason `refusal`
    kRunId,     // it is hard to guess, or the user has asked for it
    kThisHost,  // the nodes meet at a loopback address: only this user's processes may
  };
  From from = From::kNothing;
  std::string refusal;
  std::string note;  // for the user of every node; empty: nothing to say
};

Secret SecretOf(const Arguments& arguments, const Rendezvous& rendezvous);

// Whether nobody guesses it: of 16 characters or more, digits among them, as `uuidgen` and
// `openssl rand -hex 16` print it.
bool IsHardToGuess(std::string_view run_id);

}  // namespace dtrun::torchrun
