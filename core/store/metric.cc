#include "core/store/metric.h"


#include "core/base/text.h"

namespace dtrun::store {
namespace {

constexpr std::string_view kFirst = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_:";
constexpr std::string_view kLater = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_:0123456789";

// The name with '_' for what it may not have: "train/loss" becomes "train_loss".
std::string Allowed(std::string_view name) {
  std::string allowed;
  for (const char c : name.substr(0, kMaxMetricName)) allowed += kLater.find(c) == kLater.npos ? '_' : c;
  if (kFirst.find(allowed.front()) == kFirst.npos) allowed.insert(0, "_");
  return allowed;
}

}  // namespace

Status CheckMetricName(std::string_view name) {
  if (name.empty())
    return Error{DTRUN_INVALID_ARGUMENT, "the metric name is empty; give one, such as \"loss\""};
  if (name.size() > kMaxMetricName) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "the metric name '{}...' has {} characters; allowed are {}",
                     Printable(name.substr(0, 40)), name.size(), kMaxMetricName);
  }
  const std::size_t wrong = kFirst.find(name.front()) == kFirst.npos ? 0 : name.find_first_not_of(kLater);
  if (wrong != name.npos) {
    return Error::Of(
        DTRUN_INVALID_ARGUMENT,
        "the metric name '{}' has '{}' at position {}; a name has letters, digits, '_' and ':', and does "
        "not begin with a digit: use '{}'",
        Printable(name), Printable(name.substr(wrong, 1)), wrong + 1, Allowed(name));
  }
  if (name.starts_with("dtrun_")) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "the metric name '{}' begins with 'dtrun_', which names dtrun's own numbers; use '{}'",
                     name, name.size() == 6 ? "metric" : name.substr(6));
  }
  return {};
}

}  // namespace dtrun::store
