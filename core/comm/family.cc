#include "core/comm/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "core/base/error_id.h"
#include "core/base/number.h"

namespace dtrun::comm {
namespace {

constexpr std::size_t kRanksInAName = 16;

// What a rank publishes about itself.
struct Card {
  std::int32_t color = 0;
  std::int32_t key = 0;
  std::int32_t host = 0;
};

Result<Card> ParseCard(std::string_view text) {
  Card card;
  std::string_view rest = text;
  for (std::int32_t* number : {&card.color, &card.key, &card.host}) {
    const auto taken = TakeNumber<std::int32_t>(&rest);
    if (!taken) return Error{DTRUN_INTERNAL, fmt::format("'{}' is not a card of a rank", text)};
    *number = *taken;
    if (!rest.empty()) rest.remove_prefix(1);
  }
  return card;
}

Error Absent(const Making& parent, std::string_view call, int rank) {
  return {DTRUN_TIMEOUT,
          fmt::format("rank {} did not call {} on '{}' within {}; every member has to", rank, call,
                      parent.name, FormatDuration(parent.timeout)),
          rank,
          ErrorId::kAbsent,
          {rank},
          {{"call", std::string(call)}, {"communicator", parent.name}}};
}

// Publishes `mine` and collects the cards of `ranks`, in their order.
Result<std::vector<Card>> Exchange(dtrun_kv& kv, const dtrun_comm& parent, std::string_view call,
                                   const Card& mine, const std::vector<int>& ranks) {
  using Clock = std::chrono::steady_clock;
  const Making& making = parent.making();
  const Clock::time_point start = Clock::now();
  const std::string text = fmt::format("{} {} {}", mine.color, mine.key, mine.host);
  if (Status set = kv.Set(std::to_string(making.rank), text); !set) return std::move(set).error();
  std::vector<Card> cards;
  for (const int rank : ranks) {
    if (rank == making.rank) {
      cards.push_back(mine);
      continue;
    }
    Nanoseconds left{-1};
    if (making.timeout.count() >= 0) {
      left = std::max(Nanoseconds(0), making.timeout - Nanoseconds(Clock::now() - start));
    }
    Result<std::string> value = kv.Get(std::to_string(rank), left);
    if (!value && value.error().code == DTRUN_TIMEOUT) return Absent(making, call, rank);
    if (!value) return std::move(value).error();
    Result<Card> card = ParseCard(*value);
    if (!card) return std::move(card).error();
    cards.push_back(*card);
  }
  return cards;
}

std::vector<int> AllRanks(int size) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(r);
  return ranks;
}

// Reports to the agent if a peer or a timeout is the cause.
Error Blamed(const PluginReport& report, Error error) {
  const bool peers = error.code == DTRUN_TIMEOUT || error.code == DTRUN_REMOTE_FAILURE;
  if (report && peers) report(error);
  return error;
}

// Ranks of `parent` as world ranks.
std::vector<int> InWorld(const Making& parent, const std::vector<int>& ranks) {
  if (parent.world_ranks.empty()) return ranks;
  std::vector<int> out;
  for (const int rank : ranks) out.push_back(parent.world_ranks[static_cast<std::size_t>(rank)]);
  return out;
}

// The same for a call that only `ranks` of the parent make.
Error BlamedAmong(const Making& parent, const std::vector<int>& ranks, Error error) {
  const auto tell = [&](const Error& failure) {
    if (parent.report_of_part)
      parent.report_of_part(failure.Renumbered(InWorld(parent, AllRanks(parent.size))),
                            InWorld(parent, ranks));
  };
  return Blamed(tell, std::move(error));
}

// "0,2,5"; for a long list its length and hash, the same on every member.
std::string ListText(std::span<const std::int32_t> ranks) {
  if (ranks.size() <= kRanksInAName) return fmt::format("{}", fmt::join(ranks, ","));
  sdk::Fnv1a hash;
  for (const std::int32_t rank : ranks) hash.Add(static_cast<std::uint64_t>(rank));
  return fmt::format("{} ranks {:016x}", ranks.size(), hash.value());
}

Status CheckList(const dtrun_comm& parent, std::span<const std::int32_t> ranks) {
  const auto invalid = [](std::string text) {
    return Error{DTRUN_INVALID_ARGUMENT, "subset: " + std::move(text)};
  };
  if (ranks.empty()) return invalid("the list of ranks is empty");
  std::set<std::int32_t> seen;
  for (const std::int32_t rank : ranks) {
    if (rank < 0 || rank >= parent.size()) {
      return invalid(fmt::format("rank {} is outside '{}', which has ranks 0 to {}", rank,
                                 parent.making().name, parent.size() - 1));
    }
    if (!seen.insert(rank).second) return invalid(fmt::format("rank {} is in the list twice", rank));
  }
  if (seen.contains(parent.rank())) return {};
  return invalid(fmt::format("rank {}, which calls, is not in the list; only members call", parent.rank()));
}

}  // namespace

Family::~Family() {
  while (!members_.empty()) members_.pop_back();
}

Result<dtrun_comm*> Family::Split(dtrun_comm& parent, std::int32_t color, std::int32_t key) {
  if (Status usable = parent.Usable(); !usable) return std::move(usable).error();
  const Making& making = parent.making();
  const std::string name = fmt::format("{}.{}", making.name, Count(making.name));
  std::vector<Card> cards = {{color, key, making.node_rank}};
  if (parent.size() > 1) {
    const std::unique_ptr<dtrun_kv> kv = spaces_("split/" + name + "/");
    Result<std::vector<Card>> got =
        Exchange(*kv, parent, "split", cards[0], AllRanks(color < 0 ? 0 : parent.size()));
    if (!got) return Blamed(making.report, std::move(got).error());
    cards = *std::move(got);
  }
  if (color < 0) return nullptr;

  std::vector<int> ranks = AllRanks(parent.size());
  const auto card = [&](int rank) { return cards[static_cast<std::size_t>(rank)]; };
  std::erase_if(ranks, [&](int rank) { return card(rank).color != color; });
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return card(a).key < card(b).key; });
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(card(rank).host);
  std::string full = fmt::format("{}:{}", name, color);
  const auto turn = TakeTurn(parent, "split", full, ranks);
  if (!turn) return Blamed(making.report, turn.error());
  return Make(parent, std::move(full), ranks, hosts);
}

Result<dtrun_comm*> Family::Subset(dtrun_comm& parent, std::span<const std::int32_t> list) {
  if (Status usable = parent.Usable(); !usable) return std::move(usable).error();
  if (Status valid = CheckList(parent, list); !valid) return std::move(valid).error();
  const Making& making = parent.making();
  std::string name = fmt::format("{}.{{{}}}", making.name, ListText(list));
  if (const int count = Count(name); count > 1) name += fmt::format("#{}", count);

  const std::string call = fmt::format("subset of {{{}}}", ListText(list));
  const std::vector<int> ranks(list.begin(), list.end());
  std::vector<int> hosts(ranks.size(), making.node_rank);
  if (making.host_count > 1 && ranks.size() > 1) {
    const std::unique_ptr<dtrun_kv> kv = spaces_("subset/" + name + "/");
    Result<std::vector<Card>> cards = Exchange(*kv, parent, call, {0, 0, making.node_rank}, ranks);
    if (!cards) return BlamedAmong(making, ranks, std::move(cards).error());
    std::transform(cards->begin(), cards->end(), hosts.begin(), [](const Card& card) { return card.host; });
  }
  const auto turn = TakeTurn(parent, call, name, ranks);
  if (!turn) return BlamedAmong(making, ranks, turn.error());
  return Make(parent, std::move(name), ranks, hosts);
}

Result<std::unique_lock<std::mutex>> Family::TakeTurn(const dtrun_comm& parent, std::string_view call,
                                                      const std::string& name,
                                                      const std::vector<int>& ranks) {
  if (ranks.size() < 2 || !spaces_) return std::unique_lock(control_);
  const Making& making = parent.making();
  const std::unique_ptr<dtrun_kv> kv = spaces_("turn/" + name + "/");
  const std::string mine = std::to_string(making.rank);
  if (Status came = kv->Set("came/" + mine, ""); !came) return std::move(came).error();
  const auto count = kv->Add("came", 1);
  if (!count) return count.error();
  const bool last = *count == static_cast<std::int64_t>(ranks.size());
  if (Status all = last ? kv->Set("all", "") : Status(); !all) return std::move(all).error();
  if (const auto all = last ? Result<std::string>("") : kv->Get("all", making.timeout); !all) {
    if (all.error().code != DTRUN_TIMEOUT) return all.error();
    for (const int rank : ranks) {
      if (!kv->TryGet("came/" + std::to_string(rank))) return Absent(making, call, rank);
    }
    return all.error();
  }

  // A process that holds a turn never waits for a call that is still to come, nor for the turn of a lower
  // world rank.
  std::vector<int> order = ranks;
  const std::vector<int> world = InWorld(making, AllRanks(making.size));
  std::ranges::sort(order, {}, [&](int rank) { return world[static_cast<std::size_t>(rank)]; });
  const auto self = std::find(order.begin(), order.end(), making.rank);
  if (self != order.begin()) {
    const auto before = kv->Get("turn/" + std::to_string(*std::prev(self)), making.timeout);
    if (!before) return before.error();
  }
  std::unique_lock turn(control_);
  if (Status taken = kv->Set("turn/" + mine, ""); !taken) return std::move(taken).error();
  return turn;
}

Result<dtrun_comm*> Family::Make(dtrun_comm& parent, std::string name, const std::vector<int>& ranks,
                                 const std::vector<int>& hosts) {
  Member member;
  if (spaces_) {
    member.kv = spaces_("comm/" + name + "/");
    member.device_kv = spaces_("device/" + name + "/");
    member.making_kv = spaces_("making/" + name + "/");
  }
  Making making = parent.making();
  making.name = std::move(name);
  making.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), parent.rank()) - ranks.begin());
  making.size = static_cast<int>(ranks.size());
  making.host_count = static_cast<int>(std::set<int>(hosts.begin(), hosts.end()).size());
  making.hosts = hosts;
  making.world_ranks = InWorld(parent.making(), ranks);
  making.parent = parent.raw();
  making.parent_ranks.assign(ranks.begin(), ranks.end());
  making.kv = member.kv.get();
  making.device_kv = member.device_kv.get();
  making.making_kv = member.making_kv.get();
  // The agent knows world ranks only.
  making.report = {};
  if (making.report_of_part) {
    making.report = [tell = making.report_of_part, ranks = making.world_ranks](const Error& failure) {
      tell(failure.Renumbered(ranks), ranks);
    };
  }
  if (member.kv != nullptr && making.report) {
    member.kv->report = member.device_kv->report = [tell = making.report](int peer, std::string_view what) {
      tell(Error{DTRUN_REMOTE_FAILURE, std::string(what), peer, ErrorId::kPeerFailed});
    };
  }
  making.aborted = {};  // the job goes on without a part of itself
  const auto report = making.report;
  Result<std::unique_ptr<dtrun_comm>> made = dtrun_comm::Create(std::move(making));
  if (!made) return Blamed(report, std::move(made).error());
  member.comm = *std::move(made);
  members_.push_back(std::move(member));
  return members_.back().comm.get();
}

void Family::Free(dtrun_comm* comm) {
  const std::lock_guard lock(control_);
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& candidate) { return candidate.comm.get() == comm; });
  if (member == members_.end()) return;
  member->comm.reset();  // before its key-value space
  members_.erase(member);
}

int Family::Count(const std::string& name) {
  const std::lock_guard lock(names_);
  return ++counts_[name];
}

}  // namespace dtrun::comm
