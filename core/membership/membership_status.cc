// The membership's messages about missing hosts, and about the address where agents reach this host.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "core/base/endpoint.h"
#include "core/base/units.h"
#include "core/hosts/this_machine.h"
#include "core/membership/agent_command.h"
#include "core/membership/membership.h"
#include "core/protocol/resolve.h"

namespace dtrun::membership {
namespace {

constexpr std::size_t kMostMissingNamed = 8;
// A shell without output for this long is reported as silent.
constexpr std::chrono::seconds kSilence{2};

std::string Without(std::string text, const std::string& name) {
  if (name.empty()) return text;
  for (auto at = text.find(name); at != text.npos; at = text.find(name, at)) text.erase(at, name.size());
  return text;
}

}  // namespace

std::string Membership::WhyMissing(const Member& member) const {
  const Starter* const start = member.start;
  if (start == nullptr) return member.last_error;
  if (start->shell->HasStarted(member.number)) {
    return fmt::format("started by {}; {}", ProgramOf(start->command),
                       member.last_error.empty() ? "it has not joined yet" : member.last_error);
  }
  if (!member.last_error.empty()) return member.last_error;
  const auto silent = std::chrono::steady_clock::now() - start->begun;
  if (silent < kSilence) return {};
  const std::string& trial = start->command.trial;
  return fmt::format("{} has printed nothing for {}; it may be waiting for the host or for a password{}",
                     ProgramOf(start->command),
                     FormatDuration(std::chrono::floor<std::chrono::seconds>(silent)),
                     trial.empty() ? "" : fmt::format(": try `{}` by hand", trial));
}

std::vector<std::pair<std::string, std::string>> Membership::Missing() const {
  std::vector<std::pair<std::string, std::string>> missing;
  for (const auto& member : members_) {
    if (!member->there()) missing.emplace_back(member->name, WhyMissing(*member));
  }
  const std::size_t there = There();
  if (cluster_.hosts[0].empty() && there < cluster_.hosts.size()) {
    missing.emplace_back(fmt::format("{} of {}", there, cluster_.hosts.size() - 1), "");
  }
  return missing;
}

// Where hosts that are started by the user or another tool must connect.
std::string Membership::Where() const {
  if (cluster_.connect != Cluster::Connect::kManual || cluster_.names.size() != 1) return {};
  const std::string& name = cluster_.names[0];
  std::string text = "; waiting at " + EndpointText(name, std::to_string(cluster_.port));
  if (name == "localhost" || name == "::1" || name.starts_with("127.")) {
    text +=
        ", which only this machine can reach; for other hosts, set --master-addr, --rdzv-endpoint or "
        "cluster.root to an address of this one";
  }
  return text;
}

// Reports hosts with the same reason in one sentence that quotes the first.
void Membership::TellGivenUp() {
  struct Reason {
    std::string text, kind, others;
  };
  std::vector<Reason> reasons;
  for (const auto& [name, error] : given_up_) {
    const std::string kind = Without(error.text, name);
    const auto known = std::ranges::find(reasons, kind, &Reason::kind);
    if (known == reasons.end()) {
      reasons.push_back({error.text, kind, ""});
    } else {
      known->others += (known->others.empty() ? "; the same for " : ", ") + name;
    }
  }
  if (reasons.empty()) return;
  std::string text;
  for (const Reason& one : reasons) text += (text.empty() ? "" : "; ") + one.text + one.others;
  const dtrun_status code = given_up_.front().second.code;
  given_up_.clear();
  if (joining_hosts_ && Wanted() < cluster_.min_hosts) return Fail({code, std::move(text)});
  services_.say("dtrun: " + text);
}

std::string Membership::StatusLine() const {
  struct Reason {
    std::string why, hosts, kind;  // same kind: equal except for the host name
  };
  std::vector<Reason> reasons;
  std::size_t missing = 0;
  std::string names;
  for (const auto& member : members_) {
    if (member->there()) continue;
    if (++missing <= kMostMissingNamed) names += (names.empty() ? "" : ", ") + member->name;
    const std::string why = WhyMissing(*member);
    if (why.empty()) continue;
    const std::string kind = Without(why, member->name);
    const auto known = std::ranges::find(reasons, kind, &Reason::kind);
    if (known != reasons.end()) {
      known->hosts += ", " + member->name;
    } else if (reasons.size() < kMostMissingNamed) {
      reasons.push_back({why, member->name, kind});
    }
  }
  if (missing > kMostMissingNamed) names += ", …";
  // Hosts that are started by the user or another tool have no names yet.
  const std::string who = cluster_.hosts[0].empty()
                              ? fmt::format("{} missing", cluster_.hosts.size() - There())
                              : "missing: " + names;
  std::string line = fmt::format("{} of {} hosts joined; {}", There(), cluster_.hosts.size(), who);
  // A single reason for all missing hosts follows their names.
  if (reasons.size() == 1 && reasons[0].hosts == names) return line + ": " + reasons[0].why + Where();
  for (const Reason& reason : reasons) line += fmt::format("; {}: {}", reason.hosts, reason.why);
  return line + Where();
}

// Checks the address where manually started hosts find this one. Other hosts may see it differently, behind a
// service or a forwarded port, so a mismatch is reported but is not an error.
void Membership::CheckAddress() {
  if (cluster_.connect != Cluster::Connect::kManual || cluster_.names.size() != 1) return;
  const std::string name = cluster_.names[0];
  address_lookup_ = protocol::ResolveBySystem(loop_, name, [this, name](const protocol::Addresses& found) {
    std::string trouble;
    if (!found) trouble = found.error().text;
    if (found && std::ranges::none_of(*found, [](const auto& address) {
          return address.is_loopback() || hosts::IsOwnAddress(address.to_string());
        })) {
      trouble = fmt::format("no interface of this host has the address {}; it has {}", name,
                            fmt::join(hosts::OwnAddresses(), ", "));
    }
    if (trouble.empty() || !joining_hosts_) return;
    services_.say(fmt::format(
        "dtrun: waiting on port {} for {} more host{}, but {}; the others connect to {}: correct "
        "--master-addr, --rdzv-endpoint or cluster.root, unless something forwards that address to this host",
        cluster_.port, cluster_.hosts.size() - There(), cluster_.hosts.size() - There() == 1 ? "" : "s",
        trouble, name));
  });
}

}  // namespace dtrun::membership
