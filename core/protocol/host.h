// One host of the running job, as seen by the root: commands go in, events come out.
//
// Both are plain structs. LocalHost executes commands in this process. A remote host gets the same structs as
// messages (core/membership/remote_host.h), and its agent passes them to a LocalHost there. Policy belongs to
// the controller: which failure ends the job, how long ranks may take, and what is reported. Loop thread.
#pragma once

#include <functional>
#include <utility>
#include <variant>

#include "core/protocol/network_messages.h"
#include "core/protocol/rank_messages.h"

namespace dtrun::protocol {

using Command = std::variant<Prepare, Start, Signal, Stop, Kill, Exchanged, Survey, CheckConnectivity,
                             Measure, Called, Differed, Inspect, ReadClock>;
using Event = std::variant<Prepared, Refused, Started, Output, Ended, Said, Gone, Asked, Offered, MpiStarted,
                           MpiFinished, MpiAborted, Lost, Surveyed, ConnectivityChecked, Measured, Called,
                           Differed, RendezvousSeen, RankEnded, Inspected, MpiServerLost, Traced, ClockRead>;

class Host {
 public:
  using Sink = std::function<void(const Event&)>;

  virtual ~Host() = default;
  // Never calls the sink before it returns.
  virtual void Do(const Command& command) = 0;
  // Events now go to `sink`, that of the host's next commander; empty: events are dropped. Not while a
  // command is in progress.
  void Attach(Sink sink) { sink_ = std::move(sink); }

 protected:
  void Emit(const Event& event) const {
    if (sink_) sink_(event);
  }

 private:
  Sink sink_;
};

}  // namespace dtrun::protocol
