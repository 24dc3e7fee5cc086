#include "core/plan/output.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/number.h"
#include "core/options/text.h"
#include "core/plan/at.h"

namespace dtrun::plan {
namespace {

constexpr char kRanks[] = "output.ranks";

output::Prefix PrefixNamed(const std::string& word) {
  if (word == "rank") return output::Prefix::kRank;
  if (word == "host") return output::Prefix::kHost;
  return word == "none" ? output::Prefix::kNone : output::Prefix::kAuto;
}

output::ColourWhen ColourNamed(const std::string& word) {
  if (word == "always") return output::ColourWhen::kAlways;
  return word == "never" ? output::ColourWhen::kNever : output::ColourWhen::kAuto;
}

}  // namespace

Result<output::Style> StyleOf(const spec::JobSpec& spec) {
  output::Style style;
  style.prefix = PrefixNamed(*spec.output.prefix);
  style.timestamps = *spec.output.timestamps;
  style.fold = *spec.output.fold;
  style.colour = ColourNamed(*spec.output.color);
  const std::string& ranks = *spec.output.ranks;
  if (ranks == "all") return style;
  style.ranks = ranks == "none" ? std::vector<int>() : ReadNumberList(ranks);
  if (!style.ranks) {
    return At(spec.output.ranks, "expected \"all\", \"none\" or ranks such as \"0\" and \"0,4-7\"; found {}",
              options::QuoteShort(ranks));
  }
  return style;
}

Result<unsigned> LogModeOf(const spec::JobSpec& spec) {
  const std::string& text = *spec.logs.mode;
  if (text == "private") return 0700u;
  if (text == "group") return 0750u;
  if (text == "all") return 0755u;
  const std::optional<unsigned> mode = NumberOf<unsigned>(text, 8);
  if (mode && *mode <= 0777 && (*mode & 0700) == 0700) return *mode;
  return At(spec.logs.mode,
            "expected \"private\", \"group\", \"all\" or an octal mode from 0700 to 0777; found {}",
            options::QuoteShort(text));
}

std::string RanksThatAreMissing(const output::Style& style, int world_size) {
  if (!style.ranks) return {};
  const auto first = std::ranges::lower_bound(*style.ranks, world_size);
  if (first == style.ranks->end()) return {};
  const std::string named = NumberList({first, style.ranks->end()});
  if (world_size == 1) return fmt::format("{} names {}, and the only rank of this job is 0", kRanks, named);
  return fmt::format("{} names {}, and the ranks of this job are 0-{}", kRanks, named, world_size - 1);
}

}  // namespace dtrun::plan
