#include "core/verdict/awaiting.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace dtrun::verdict {
namespace {

using stacks::Stand;

// Of a larger number the places show it as well.
constexpr std::size_t kMostAwaited = 256;

struct Member {
  int rank = 0;  // of the world
  int within = 0;
  std::uint64_t started = 0;
};
using Members = std::map<std::uint64_t, std::vector<Member>>;

bool HasCalled(const RankDoing& other, const contract::RecordedCall& call) {
  return other.call && other.call->group == call.group && other.call->number >= call.number;
}

contract::Awaited Resolve(const RankDoing& doing, const contract::Awaited& told, const Members& members,
                          const std::map<int, const RankDoing*>& others) {
  contract::Awaited out;
  out.either = told.either;
  if (told.communicator == 0) {
    for (const int rank : told.ranks) {
      const auto other = others.find(rank);
      const bool called = other != others.end() && doing.call && HasCalled(*other->second, *doing.call);
      if (rank != doing.rank && !called) out.ranks.push_back(rank);
    }
    return out;
  }
  const auto found = members.find(told.communicator);
  const std::vector<Member> none;
  for (const Member& member : found == members.end() ? none : found->second) {
    if (member.rank == doing.rank || (told.number > 0 && member.started >= told.number)) continue;
    if (told.ranks.empty() || std::ranges::count(told.ranks, member.within) > 0)
      out.ranks.push_back(member.rank);
  }
  out.either = told.either && !out.ranks.empty();
  return out;
}

// Whether both may be in the same call, as far as recorders do not tell.
bool InOneGroup(const RankDoing& one, const RankDoing& other) {
  if (one.call || !one.awaited || !other.awaited) return false;
  const auto group = [](const RankDoing& doing) {
    std::set<int> members(doing.awaited->ranks.begin(), doing.awaited->ranks.end());
    members.insert(doing.rank);
    return members;
  };
  return group(one) == group(other);
}

}  // namespace

void ResolveAwaited(std::vector<RankDoing>* ranks) {
  Members members;
  std::map<int, const RankDoing*> others;
  for (const RankDoing& doing : *ranks) {
    others[doing.rank] = &doing;
    for (const contract::Membership& one : doing.groups)
      members[one.communicator].push_back({doing.rank, one.rank, one.started});
  }
  for (RankDoing& doing : *ranks) {
    // A message that it asked for ahead does not hold it up.
    if (doing.stand == Stand::kElsewhere && doing.call && doing.call->message) doing.awaited.reset();
    if (!doing.awaited) continue;
    doing.awaited = Resolve(doing, *doing.awaited, members, others);
    if (doing.awaited->ranks.size() > kMostAwaited) doing.awaited.reset();
  }
  for (RankDoing& doing : *ranks) doing.groups.clear();
}

Awaiting::Awaiting(const std::vector<RankDoing>& ranks) : ranks_(ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) index_[ranks[i].rank] = i;
  std::map<Key, std::size_t> known;
  for (const RankDoing& doing : ranks) {
    if (doing.stand != Stand::kWaits || doing.waits_for >= 0) continue;
    const auto [way, fresh] = known.try_emplace(doing.awaited, ways_.size());
    if (fresh) ways_.push_back({{}, From(doing.awaited)});
    ways_[way->second].from.push_back(doing.rank);
  }
}

Awaiting::Found Awaiting::From(const Key& key) const {
  Walk walk;
  Follow(key, &walk);
  Found& found = walk.found;
  if (found.late.empty() && !found.locked && !found.unclear) found.late = std::move(walk.entered);
  if (walk.either && found.late.size() > 1) {
    found.late.clear();
    found.unclear = true;
  }
  return std::move(found);
}

void Awaiting::Follow(const Key& key, Walk* walk) const {
  if (!walk->met.insert(key).second) return;
  walk->either = walk->either || (key && key->either);
  const auto visit = [&](const RankDoing& doing) {
    walk->found.passed.insert(doing.rank);
    if (doing.waits_for >= 0) {
      walk->found.locked = true;
    } else if (doing.stand == Stand::kWaits) {
      Follow(doing.awaited, walk);
    } else if (doing.stand != Stand::kElsewhere) {
      walk->found.unclear = true;
    } else if (doing.awaited) {
      walk->entered.insert(doing.rank);
      Follow(doing.awaited, walk);
    } else {
      walk->found.late.insert(doing.rank);
    }
  };
  if (!key || (key->either && key->ranks.empty())) {
    std::ranges::for_each(ranks_, visit);
    return;
  }
  for (const int rank : key->ranks)
    if (const auto at = index_.find(rank); at != index_.end()) visit(ranks_[at->second]);
}

std::vector<int> Awaiting::Circle(const std::function<bool(const RankDoing&)>& counts) const {
  std::vector<int> path;
  std::set<int> done;
  const std::function<bool(int)> goes_round = [&](int rank) {
    if (const auto begin = std::ranges::find(path, rank); begin != path.end()) {
      path.erase(path.begin(), begin);
      return true;
    }
    const auto at = index_.find(rank);
    if (at == index_.end() || !done.insert(rank).second) return false;
    const RankDoing& doing = ranks_[at->second];
    if (doing.stand != Stand::kWaits || !doing.awaited || !counts(doing)) return false;
    path.push_back(rank);
    for (const int other : doing.awaited->ranks) {
      const auto next = index_.find(other);
      if (next != index_.end() && !InOneGroup(doing, ranks_[next->second]) && goes_round(other)) return true;
    }
    path.pop_back();
    return false;
  };
  for (const RankDoing& doing : ranks_)
    if (goes_round(doing.rank)) break;
  std::ranges::sort(path);
  return path;
}

}  // namespace dtrun::verdict
