// Which ranks wait for which, directly or through others that wait: a rank late for a collective of its
// tensor-parallel group holds up the data-parallel groups of those that wait for it there.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Replaces communicators by ranks of the world: those that have not called the collective yet, or the peers
// of a message. `ranks`: all of them, as their hosts have told.
void ResolveAwaited(std::vector<RankDoing>* ranks);

// A wait-for graph. Of a rank that waits and does not tell for whom, each other rank may be the one.
class Awaiting {
 public:
  // `ranks`: resolved.
  explicit Awaiting(const std::vector<RankDoing>& ranks);

  struct Found {
    std::set<int> late;    // elsewhere, and awaited
    std::set<int> passed;  // the ranks awaited on the way to them, themselves included
    bool locked = false;   // one of the awaited waits for a file lock
    bool unclear = false;  // one of them is at a place that says nothing
  };
  // Ranks that wait for the same others.
  struct Way {
    std::vector<int> from;
    Found found;
  };
  // By the first of `from`. None is late if a rank waits for one of several, and more than one is.
  const std::vector<Way>& Ways() const { return ways_; }

  // Ranks that wait in a circle, each for another one of them. Empty: none do. `counts`: whether its call is
  // a collective that cannot have been called by those that it awaits.
  std::vector<int> Circle(const std::function<bool(const RankDoing&)>& counts) const;

 private:
  using Key = std::optional<contract::Awaited>;
  struct Walk {
    Found found;
    std::set<Key> met;
    // Elsewhere, with a collective of its own under way in another thread: late only if no other rank is.
    std::set<int> entered;
    bool either = false;
  };
  void Follow(const Key& key, Walk* walk) const;
  Found From(const Key& key) const;

  const std::vector<RankDoing>& ranks_;
  std::map<int, std::size_t> index_;  // by rank
  std::vector<Way> ways_;
};

}  // namespace dtrun::verdict
