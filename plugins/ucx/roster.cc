#include "roster.h"

#include <sstream>

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

constexpr const char* kJoined = "joined";      // counts ranks
constexpr const char* kComplete = "complete";  // set by the last
constexpr const char* kFailure = "failure";    // code, peer, origin, text
constexpr const char* kLeft = "left";          // instead of a place

std::string PlaceKey(int rank) { return "place/" + std::to_string(rank); }

}  // namespace

Roster::Roster(const sdk::CommParams& params)
    : kv_(params.kv), rank_(params.rank), size_(params.size), name_(params.name), timeout_(params.timeout) {}

void Roster::Join(const Place& place) {
  kv_.Set(PlaceKey(rank_), place.process + '\n' + place.address);
  if (kv_.Add(kJoined, 1) == size_) {
    kv_.Set(kComplete, "");
    return;
  }
  try {
    kv_.Get(kComplete, timeout_);
  } catch (const Failure& failure) {
    if (failure.code() != DTRUN_TIMEOUT) throw;
    int missing = 0;
    int first = -1;
    for (int rank = 0; rank < size_; ++rank) {
      if (kv_.TryGet(PlaceKey(rank))) continue;
      if (missing++ == 0) first = rank;
    }
    if (missing == 0) return;  // the last came while we looked
    throw Failure(DTRUN_TIMEOUT,
                  "'" + name_ + "': rank " + std::to_string(first) +
                      (missing > 1 ? " and " + std::to_string(missing - 1) + " more" : "") + " of " +
                      std::to_string(size_) + " did not come within " + sdk::DurationText(timeout_) +
                      "; see what that rank is doing, or raise backend.timeout",
                  first);
  }
}

std::optional<Roster::Place> Roster::PlaceOf(int peer) const {
  const std::string text = kv_.Get(PlaceKey(peer), timeout_);
  if (text == kLeft) return std::nullopt;
  const auto line_end = text.find('\n');
  return Place{text.substr(0, line_end), text.substr(line_end + 1)};
}

void Roster::Leave() const { kv_.Set(PlaceKey(rank_), kLeft); }

bool Roster::HasLeft(int peer) const { return kv_.TryGet(PlaceKey(peer)) == kLeft; }

void Roster::PublishFailure(const Cause& cause) const {
  kv_.CompareSet(kFailure, std::nullopt,
                 std::to_string(cause.code) + " " + std::to_string(cause.peer) + " " + std::to_string(rank_) +
                     " " + cause.text);
}

std::optional<Cause> Roster::TheirFailure() const {
  const std::optional<std::string> text = kv_.TryGet(kFailure);
  if (!text) return std::nullopt;
  std::istringstream fields(*text);
  Cause theirs;
  int origin = -1;
  fields >> theirs.code >> theirs.peer >> origin;
  fields.get();
  std::getline(fields, theirs.text, '\0');
  Cause ours;
  ours.theirs = true;
  if (theirs.code == DTRUN_ABORTED) {
    ours.code = DTRUN_ABORTED;
    ours.text = theirs.text;
  } else {
    ours.code = DTRUN_REMOTE_FAILURE;
    ours.peer = theirs.code == DTRUN_REMOTE_FAILURE && theirs.peer >= 0 && theirs.peer != rank_ ? theirs.peer
                                                                                                : origin;
    ours.text = "rank " + std::to_string(origin) + " gave up: " + theirs.text;
  }
  return ours;
}

Cause Roster::LeftCause(int peer) const {
  return {DTRUN_REMOTE_FAILURE,
          "rank " + std::to_string(peer) + " has left '" + name_ +
              "' and does not answer any more; every rank must make the same calls",
          peer};
}

}  // namespace dtrun::ucx_plugin
