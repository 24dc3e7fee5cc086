#include "core/output/style.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <string_view>

#include "core/base/number.h"

namespace dtrun::output {
namespace {

// Neither red nor yellow, which mark failures and warnings.
constexpr int kColours[] = {36, 35, 34, 32, 96, 95};

bool Wanted(Prefix prefix, int world_size) {
  return prefix == Prefix::kRank || prefix == Prefix::kHost || (prefix == Prefix::kAuto && world_size > 1);
}

}  // namespace

std::string LabelOf(const Source& source, Prefix prefix) {
  if (!Wanted(prefix, source.world_size)) return {};
  const std::size_t width = fmt::formatted_size("{}", source.world_size - 1);
  return prefix == Prefix::kHost ? fmt::format("[{:>{}} {}] ", source.rank, width, source.host)
                                 : fmt::format("[{:>{}}] ", source.rank, width);
}

std::string LabelOf(const std::vector<int>& ranks, int world_size, Prefix prefix) {
  if (!Wanted(prefix, world_size)) return {};
  const std::size_t width = fmt::formatted_size("0-{}", world_size - 1);
  return fmt::format("[{:>{}}] ", NumberList(ranks), width);
}

std::string Coloured(std::string_view label, int rank) {
  if (label.empty()) return {};
  const std::size_t end = label.find_last_not_of(' ') + 1;
  return fmt::format("\033[{}m{}\033[0m{}", kColours[static_cast<std::size_t>(rank) % std::size(kColours)],
                     label.substr(0, end), label.substr(end));
}

std::string Timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%F %T", &local);
  return fmt::format("{}.{:03} ", std::string_view(text, size), milliseconds);
}

bool Style::Shows(int rank) const { return !ranks || std::ranges::binary_search(*ranks, rank); }

bool WantsColour(ColourWhen when, bool terminal) {
  if (when != ColourWhen::kAuto) return when == ColourWhen::kAlways;
  const char* const refused = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  if (refused != nullptr && *refused != '\0') return false;
  return terminal && kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace dtrun::output
