#include "core/output/fold.h"

#include <algorithm>
#include <utility>

#include "core/output/display.h"
#include "core/output/style.h"

namespace dtrun::output {

Fold::Fold(int world_size, const Style& style, Console& console)
    : world_size_(world_size),
      style_(style),
      console_(console),
      readers_(static_cast<std::size_t>(world_size)) {}

Fold::~Fold() {
  while (!groups_.empty()) PrintOldest();
}

void Fold::Add(int rank) {
  readers_[static_cast<std::size_t>(rank)].next = oldest_;
  awaited_ = AwaitedByOldest();
}

void Fold::Take(int rank, Stream stream, std::string_view text, bool continues) {
  Reader& reader = readers_[static_cast<std::size_t>(rank)];
  if (reader.next == kGone) Add(rank);
  reader.next = std::max(reader.next, oldest_);
  const auto from = groups_.begin() + static_cast<std::ptrdiff_t>(reader.next - oldest_);
  const auto found = std::find_if(from, groups_.end(), [&](const Group& group) {
    return group.stream == stream && group.continues == continues && group.text == text;
  });
  const std::uint64_t number = found == groups_.end()
                                   ? MakeGroup(reader, stream, text, continues)
                                   : oldest_ + static_cast<std::uint64_t>(found - groups_.begin());
  Group& group = groups_[number - oldest_];
  group.ranks.insert(std::ranges::upper_bound(group.ranks, rank), rank);
  const bool leaves_oldest = reader.next == oldest_;
  reader = {number + 1, group.line};
  if (leaves_oldest) awaited_ = AwaitedByOldest();
  PrintWhole();
  while (groups_.size() > kLines || bytes_ > kBytes) PrintOldest();
}

std::uint64_t Fold::MakeGroup(Reader& reader, Stream stream, std::string_view text, bool continues) {
  const std::uint64_t line = reader.line + 1;
  const auto from = groups_.begin() + static_cast<std::ptrdiff_t>(reader.next - oldest_);
  const auto at = std::find_if(from, groups_.end(), [&](const Group& group) { return group.line > line; });
  const std::uint64_t number = oldest_ + static_cast<std::uint64_t>(at - groups_.begin());
  for (Reader& other : readers_) {
    if (other.next != kGone && other.next > number) ++other.next;
  }
  groups_.insert(at, {line,
                      stream,
                      continues,
                      std::string(text),
                      {},
                      Clock::now(),
                      style_.timestamps ? Timestamp() : std::string()});
  bytes_ += text.size();
  return number;
}

void Fold::Remove(int rank) {
  readers_[static_cast<std::size_t>(rank)].next = kGone;
  awaited_ = AwaitedByOldest();
  PrintWhole();
}

void Fold::Flush() {
  const Clock::time_point now = Clock::now();
  const auto waited = [&](const Group& group) { return now - group.since >= kPatience; };
  while (std::ranges::any_of(groups_, waited)) PrintOldest();
}

std::size_t Fold::AwaitedByOldest() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(readers_, [&](const Reader& reader) { return reader.next <= oldest_; }));
}

void Fold::PrintWhole() {
  while (!groups_.empty() && awaited_ == 0) PrintOldest();
}

void Fold::PrintOldest() {
  const Group group = std::move(groups_.front());
  groups_.pop_front();
  ++oldest_;
  bytes_ -= group.text.size();
  if (!groups_.empty()) awaited_ = AwaitedByOldest();
  const bool terminal = console_.terminal(group.stream);
  const std::string label = LabelOf(group.ranks, world_size_, style_.prefix);
  console_.Line(
      group.stream,
      group.stamp + (WantsColour(style_.colour, terminal) ? Coloured(label, group.ranks.front()) : label) +
          (group.continues ? std::string(kContinuation) : "") + (terminal ? Tamed(group.text) : group.text));
}

}  // namespace dtrun::output
