// Which joined hosts count, and which number each has.
#include <algorithm>

#include "core/hosts/host_slots.h"
#include "core/hosts/this_machine.h"
#include "core/membership/membership.h"

namespace dtrun::membership {

Membership::Member* Membership::Numbered(int number) {
  const auto found =
      std::ranges::find_if(members_, [number](const auto& member) { return member->number == number; });
  return found == members_.end() ? nullptr : found->get();
}

std::size_t Membership::There() const {
  const auto joined = std::ranges::count_if(members_, [](const auto& member) { return member->there(); });
  return static_cast<std::size_t>(joined) + (cluster_.here >= 0 ? 1 : 0);
}

// Hosts that the job has work for and that may still join.
std::size_t Membership::Wanted() const {
  const auto hopeless =
      std::ranges::count_if(members_, [](const auto& member) { return member->listed && member->hopeless; });
  return cluster_.hosts.size() - static_cast<std::size_t>(hopeless);
}

bool Membership::Enough() const {
  const std::size_t there = There();
  return there >= Wanted() || (called_ && there >= cluster_.min_hosts);
}

// Hosts that joined without a number get the free ones, in the order of their names: node2 before node10.
// Assigned numbers stay, so a host that replaces a lost one does not change the ranks of others.
void Membership::DealNumbers() {
  std::vector<Member*> waiting;
  for (auto& member : members_) {
    if (member->there() && member->number < 0) waiting.push_back(member.get());
  }
  std::ranges::stable_sort(
      waiting, [](const Member* a, const Member* b) { return hosts::NaturallyBefore(a->name, b->name); });
  int next = 0;
  for (Member* member : waiting) {
    while (next == cluster_.here || Numbered(next) != nullptr) ++next;
    if (next >= static_cast<int>(cluster_.hosts.size())) return;
    member->number = next;
  }
}

const std::string* Membership::DuplicateOf(const Member& member) const {
  static const std::string kRoot = hosts::HostName();
  if (cluster_.share_machines) return nullptr;
  if (cluster_.here >= 0 && member.introduction->machine == hosts::MachineIdentity()) {
    const std::string& name = cluster_.hosts[static_cast<std::size_t>(cluster_.here)];
    return name.empty() ? &kRoot : &name;
  }
  for (const auto& other : members_) {
    if (other.get() == &member || !other->there()) continue;
    if (other->introduction->machine == member.introduction->machine) return &other->name;
  }
  return nullptr;
}

}  // namespace dtrun::membership
