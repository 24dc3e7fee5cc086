// dtrun/plugin/membership.hpp - the ranks of a communicator, as its key-value space knows them: which have
// joined and what each published, which have left, and the first failure of all.
//
// Not part of plugin.hpp. A vendor library seldom says which rank is missing or to blame; the store does.
// Owned by a communicator. Every call asks the store, one round trip or more: do not call it on the data
// path. A store that does not answer throws its Failure. Any thread.
#pragma once

#include <sstream>
#include <utility>

#include "dtrun/plugin/backend.hpp"
#include "dtrun/plugin/deadline.hpp"
#include "dtrun/plugin/names.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  class Membership {
   public:
    explicit Membership(const CommParams& params)
        : kv_(params.kv),
          rank_(params.rank),
          size_(params.size),
          name_(params.name),
          timeout_(params.timeout) {}

    int rank() const { return rank_; }
    int size() const { return size_; }
    const std::string& name() const { return name_; }
    const Kv& kv() const { return kv_; }

    // Publishes `own`, what the others need to know of this rank. Once for each `topic`. Returns true on the
    // last rank to do so, false on all others.
    bool Come(const std::string& topic, std::string_view own) const {
      kv_.Set(Key(topic, rank_), own);
      if (kv_.Add(topic + "/count", 1) < size_) return false;
      kv_.Set(topic + "/complete", "");
      return true;
    }
    // Calls Come, and waits until every rank has. Throws DTRUN_TIMEOUT that names the missing ranks, or
    // another rank's failure if that is the reason.
    void Join(const std::string& topic, std::string_view own, const Deadline& deadline) const {
      if (Come(topic, own)) return;
      try {
        kv_.Get(topic + "/complete", deadline.Left());
      } catch (const Failure& failure) {
        if (failure.code() != DTRUN_TIMEOUT) throw;
        if (const auto cause = FailureOfAnother()) throw *cause;
        ThrowMissing(topic, deadline);
      }
    }
    // What `peer` published. REQUIRES that Join has returned.
    std::string Said(const std::string& topic, int peer) const { return kv_.Get(Key(topic, peer), timeout_); }
    // Joins, and returns what each rank published, by rank.
    std::vector<std::string> Exchange(const std::string& topic, std::string_view own,
                                      const Deadline& deadline) const {
      Join(topic, own, deadline);
      std::vector<std::string> said;
      for (int peer = 0; peer < size_; ++peer) said.push_back(Said(topic, peer));
      return said;
    }

    // Announces that this rank makes no more calls. `last`: what the others should know of it from then on.
    void Leave(std::string_view last = {}) const {
      kv_.Set(Key("left", rank_), last);
      kv_.Add("left/count", 1);
    }
    // What `peer` gave to Leave; nullopt when it has not left.
    std::optional<std::string> Left(int peer) const { return kv_.TryGet(Key("left", peer)); }
    bool AnyLeft() const { return kv_.TryGet("left/count").has_value(); }
    Failure LeftFailure(int peer) const {
      return Failure(DTRUN_REMOTE_FAILURE,
                     RanksText({peer}) + " has left '" + name_ +
                         "' and does not answer any more; every rank must make the same calls",
                     peer);
    }

    // Tells the other ranks why this one fails. Only the first failure of a communicator is kept.
    void PublishFailure(const Failure& failure) const {
      std::ostringstream text;
      text << rank_ << ' ' << failure.code() << ' ' << failure.peer() << ' ' << failure.what();
      kv_.CompareSet("failure", std::nullopt, text.str());
    }
    // That first failure as `rank` has published it.
    struct Published {
      int rank;
      Failure failure;
    };
    std::optional<Published> FirstPublished() const {
      const std::optional<std::string> value = kv_.TryGet("failure");
      if (!value) return std::nullopt;
      std::istringstream text(*value);
      int rank = -1, peer = -1;
      dtrun_status code = DTRUN_INTERNAL;
      std::string what;
      text >> rank >> code >> peer;
      std::getline(text.ignore(), what, '\0');
      return Published{rank, Failure(code, what, peer)};
    }
    // The same; nullopt when it is this rank's own.
    std::optional<Failure> FailureOfAnother() const {
      const std::optional<Published> first = FirstPublished();
      if (!first || first->rank == rank_) return std::nullopt;
      return AsThisRankReports(*first);
    }
    // This rank's own is reported as it is, and another's abort as an abort; anything else becomes
    // DTRUN_REMOTE_FAILURE of the rank to blame, not of one that only noticed the failure. Asks nothing.
    Failure AsThisRankReports(const Published& first) const {
      const Failure& cause = first.failure;
      if (first.rank == rank_) return cause;
      const std::string who = RanksText({first.rank});
      if (cause.code() == DTRUN_ABORTED) return Failure(DTRUN_ABORTED, who + ": " + cause.what(), first.rank);
      const bool noticed = cause.code() == DTRUN_REMOTE_FAILURE && cause.peer() >= 0 && cause.peer() != rank_;
      return Failure(DTRUN_REMOTE_FAILURE, who + " gave up: " + cause.what(),
                     noticed ? cause.peer() : first.rank);
    }

   private:
    static std::string Key(const std::string& topic, int rank) { return topic + "/" + std::to_string(rank); }

    // Returns if the last rank has joined meanwhile.
    void ThrowMissing(const std::string& topic, const Deadline& deadline) const {
      std::vector<int> missing;
      for (int peer = 0; peer < size_; ++peer) {
        if (!kv_.TryGet(Key(topic, peer))) missing.push_back(peer);
      }
      if (missing.empty()) return;
      throw Failure(DTRUN_TIMEOUT,
                    RanksText(missing) + " of " + std::to_string(size_) + " did not join '" + name_ +
                        "' within " + DurationText(deadline.timeout()) + "; look at the output of " +
                        (missing.size() == 1 ? "that rank" : "those ranks") + ", or raise backend.timeout",
                    missing.front());
    }

    const Kv kv_;
    const int rank_;
    const int size_;
    const std::string name_;
    const Nanoseconds timeout_;
  };

}  // namespace v1
}  // namespace dtrun::sdk
