#include "gathering.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace dtrun::nccl_plugin {
namespace {

using sdk::Failure;

const std::string kIdKey = "nccl/id";
const std::string kFailedKey = "nccl/failed";
const std::string kLeftKey = "nccl/left";
constexpr char kIdMark = 'i';
constexpr char kErrorMark = 'e';

std::string HereKey(int rank) { return "nccl/here/" + std::to_string(rank); }
std::string LeftKey(int rank) { return "nccl/left/" + std::to_string(rank); }
std::string WaitingKey(int rank) { return "nccl/waiting/" + std::to_string(rank); }

}  // namespace

std::string Progress::Encode() const {
  std::ostringstream text;
  text << collective;
  for (const auto& [peer, count] : messages) text << ' ' << peer << ' ' << count;
  return text.str();
}

Progress Progress::Decode(const std::string& encoded) {
  std::istringstream text(encoded);
  Progress progress;
  text >> progress.collective;
  int peer = 0;
  std::uint64_t count = 0;
  while (text >> peer >> count) progress.messages[peer] = count;
  return progress;
}

Gathering::Gathering(const sdk::CommParams& params)
    : kv_(params.kv), rank_(params.rank), size_(params.size), name_(params.name) {}

void Gathering::Meet(const std::optional<Failure>& obstacle, const sdk::Deadline& deadline) const {
  if (obstacle) AnnounceFailure(*obstacle);
  kv_.Set(HereKey(rank_), "");
  if (obstacle) throw *obstacle;
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(HereKey(rank));
  try {
    kv_.WaitMany(keys, deadline.Left());
  } catch (const Failure& failure) {
    if (failure.code() != DTRUN_TIMEOUT) throw;
    std::vector<int> missing;
    for (int rank = 0; rank < size_; ++rank) {
      if (!kv_.TryGet(HereKey(rank))) missing.push_back(rank);
    }
    if (missing.empty()) missing.push_back(rank_);  // it came at the last moment, and so did the rest
    throw Failure(DTRUN_TIMEOUT,
                  RanksText(missing) + " did not join '" + name_ + "' in time; look at the log of " +
                      (missing.size() == 1 ? "that rank" : "these ranks"),
                  missing.front());
  }
  if (const auto failure = FailureOfAnother()) throw *failure;
}

void Gathering::PublishId(const nccl::UniqueId& id) const {
  kv_.Set(kIdKey, kIdMark + std::string(id.internal, sizeof id.internal));
}

void Gathering::PublishNoId(const Failure& why) const {
  kv_.Set(kIdKey, kErrorMark + std::string(why.what()));
}

nccl::UniqueId Gathering::FetchId(const sdk::Deadline& deadline) const {
  const std::string value = kv_.Get(kIdKey, deadline.Left());
  nccl::UniqueId id;
  if (value.size() != 1 + sizeof id.internal || value[0] != kIdMark) {
    throw Failure(DTRUN_REMOTE_FAILURE, "rank 0 could not open '" + name_ + "': " + value.substr(1), 0);
  }
  std::memcpy(id.internal, value.data() + 1, sizeof id.internal);
  return id;
}

void Gathering::AnnounceFailure(const Failure& cause) const {
  std::ostringstream text;
  text << rank_ << ' ' << cause.code() << ' ' << cause.peer() << ' ' << cause.what();
  kv_.CompareSet(kFailedKey, std::nullopt, text.str());
}

std::optional<Failure> Gathering::FailureOfAnother() const {
  const std::optional<std::string> value = kv_.TryGet(kFailedKey);
  if (!value) return std::nullopt;
  std::istringstream text(*value);
  int rank = -1;
  int culprit = -1;
  dtrun_status code = DTRUN_INTERNAL;
  text >> rank >> code >> culprit;
  text.get();
  std::string cause;
  std::getline(text, cause, '\0');
  if (rank == rank_) return std::nullopt;
  const std::string who = "rank " + std::to_string(rank);
  if (code == DTRUN_ABORTED) return Failure(DTRUN_ABORTED, "aborted by " + who + ": " + cause, rank);
  // Who merely noticed is not to blame.
  if (code == DTRUN_REMOTE_FAILURE && culprit >= 0 && culprit != rank_) return Failure(code, cause, culprit);
  return Failure(DTRUN_REMOTE_FAILURE, who + " failed: " + cause, rank);
}

void Gathering::AnnounceLeaving(const Progress& progress) const {
  kv_.Set(LeftKey(rank_), progress.Encode());
  kv_.Add(kLeftKey, 1);
}

std::vector<std::pair<int, Progress>> Gathering::Departed() const {
  std::vector<std::pair<int, Progress>> departed;
  if (!kv_.TryGet(kLeftKey)) return departed;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    if (const auto value = kv_.TryGet(LeftKey(rank))) departed.emplace_back(rank, Progress::Decode(*value));
  }
  return departed;
}

void Gathering::AnnounceWaiting(std::uint64_t sequence) const {
  kv_.Set(WaitingKey(rank_), std::to_string(sequence));
}

std::vector<int> Gathering::NotWaitingIn(std::uint64_t sequence) const {
  std::vector<int> others;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const auto value = kv_.TryGet(WaitingKey(rank));
    if (!value || std::stoull(*value) < sequence) others.push_back(rank);
  }
  return others;
}

std::string RanksText(const std::vector<int>& ranks) {
  constexpr std::size_t kListed = 4;
  if (ranks.size() == 1) return "rank " + std::to_string(ranks[0]);
  const bool cut = ranks.size() > kListed + 1;
  const std::size_t listed = cut ? kListed : ranks.size() - 1;
  std::string text = "ranks ";
  for (std::size_t i = 0; i < listed; ++i) text.append(i == 0 ? "" : ", ").append(std::to_string(ranks[i]));
  return text + " and " +
         (cut ? std::to_string(ranks.size() - listed) + " more" : std::to_string(ranks[listed]));
}

}  // namespace dtrun::nccl_plugin
