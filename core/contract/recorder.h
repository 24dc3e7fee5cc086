// A rank's side of the flight recorder: its rings, and the thread that waits for the alarm.
//
// Owned by the runtime; outlives the communicators. Claim, Release and Watch from any thread; a ring is
// written under its communicator's own lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/contract/mapping.h"
#include "core/contract/ring.h"

namespace dtrun::contract {

class Recorder {
 public:
  // `rank` of the world. `turn`: which of the job's worlds this is, after each finalize another one. Frees
  // the rings of the one before, so open it before the ranks make communicators.
  static Result<std::unique_ptr<Recorder>> Open(const std::string& path, int rank, std::uint64_t turn = 0);
  static Result<std::unique_ptr<Recorder>> Open(int fd, const std::string& name, int rank,
                                                std::uint64_t turn = 0);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Null if all rings are in use: the communicator is not recorded then.
  Ring* Claim(const std::string& name, int rank, int size);
  void Release(Ring* ring);

  // Called on the recorder's thread when calls on the communicator `name` differ; `peer` is the other world
  // rank in the finding. Not called any more once Unwatch has returned.
  struct Alarm {
    std::function<void(const Error&)> heard;  // to remember it; called at once
    // To end it: called once all hosts know, so that no rank takes another's end for the cause.
    std::function<void(const Error&)> end;
  };
  void Watch(const void* owner, const std::string& name, Alarm alarm);
  // `knows`: its calls differed, which it has found itself. An alarm that comes later is about them, and not
  // for another communicator of the name, such as the next world.
  void Unwatch(const void* owner, bool knows = false);

  // Where the ranks of `ring`'s communicator are: "rank 2 is in broadcast #16 (…); rank 3 called no
  // collective after #15". Only those behind `number`, or all if none is.
  struct Places {
    std::string text;
    std::vector<int> behind;  // ranks of the communicator that have not made call `number`
  };
  Places Whereabouts(const Ring& ring, std::uint64_t number) const;
  // How call `number` of `ring`'s communicator `name` differs on another rank of this host, in the words of
  // the checker, which runs later and does not see ranks that have left; empty if no difference is known.
  std::optional<Error> Difference(const Ring& ring, const std::string& name, std::uint64_t number) const;
  // The same of the first call or message that is remembered and differs.
  std::optional<Error> AnyDifference(const Ring& ring, const std::string& name) const;
  // UnreceivedText (messages.h) of the rank `peer` of its communicator.
  std::string Unreceived(const Ring& ring, int peer) const;
  // Like Difference, for the messages between any two of its ranks.
  std::optional<Error> MessageDifference(const Ring& ring, const std::string& name) const;

 private:
  struct Watched {
    std::uint64_t communicator;
    Alarm alarm;
  };

  Recorder(RecorderMapping mapping, int rank, std::uint64_t turn);
  // Of the other ranks of its communicator, without those that are out of date. `left`: also of ranks that
  // have ended it, as long as their rings are free.
  std::vector<const Ring*> OthersOf(const Ring& ring, bool left = false) const;
  // The rings of its communicator, by rank, without invalid ones; those of ranks that have left it, too.
  std::map<int, const Ring*> RingsOf(const Ring& ring) const;
  void Listen();
  void Tell(std::function<void(const Error&)> Alarm::*what, const Error& error);

  RecorderMapping mapping_;
  const int rank_;
  const std::uint64_t turn_;
  std::mutex mutex_;  // guards watched_, known_, claims, claimed_, and is held during callbacks
  std::map<const void*, Watched> watched_;
  std::set<std::uint64_t> known_;                   // communicators that no alarm is for any more
  std::map<std::uint64_t, std::uint64_t> claimed_;  // how many communicators of a name there were
  std::atomic<bool> stop_{false};
  std::thread listener_;
};

}  // namespace dtrun::contract
