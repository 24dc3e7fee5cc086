#include "core/protocol/carried_links.h"

#include <algorithm>

namespace dtrun::protocol {
namespace {

bool IsAddress(const std::string& text) {
  return text.size() < 100 &&
         text.find_first_not_of("0123456789abcdefABCDEF.:[]%_-ghijklmnopqrstuvwxyz") == std::string::npos;
}

}  // namespace

bool CarriedLinks::Take(const std::string& line) {
  const auto carried = ParseCarried(line);
  if (!carried) {
    handlers_.on_line(line);
    return true;
  }
  if (!hosts_.contains(carried->host)) return true;
  if (carried->kind == Carried::Kind::kHere) {
    where_[carried->host] = IsAddress(carried->text) ? carried->text : "";
  } else if (carried->kind == Carried::Kind::kOpen) {
    Open(*carried);
  } else if (const auto found = carriers_.find(carried->host); found != carriers_.end()) {
    found->second->Take(*carried);
    return found->second->untaken_bytes() <= kMostUntaken;
  }
  return true;
}

void CarriedLinks::Open(const Carried& carried) {
  std::unique_ptr<Carrier>& carrier = carriers_[carried.host];
  if (carrier == nullptr) {
    Carrier::Wire wire = wire_;
    wire.taken = [this] {
      if (!behind() && wire_.taken) wire_.taken();
    };
    carrier = std::make_unique<Carrier>(loop_, carried.host, std::move(wire));
  }
  Result<UniqueFd> link = carrier->Open(carried.link);
  if (!link) return handlers_.on_line("cannot open the control link through it: " + link.error().text);
  handlers_.on_link(carried.host, *std::move(link), where_[carried.host]);
}

void CarriedLinks::OnSent() {
  for (auto& entry : carriers_) entry.second->OnSent();
}

bool CarriedLinks::behind() const {
  return std::ranges::any_of(carriers_,
                             [](const auto& entry) { return entry.second->untaken_bytes() > kMostUntaken; });
}

}  // namespace dtrun::protocol
