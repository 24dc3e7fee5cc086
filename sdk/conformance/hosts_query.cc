#include "hosts_query.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "dtrun/plugin/failure.hpp"
#include "text_check.h"

namespace dtrun::conformance {
namespace {

// What dtrun takes at most.
constexpr std::uint64_t kMostHosts = 65536;
constexpr int kMostSlots = 4096;
constexpr int kHighestPort = 65535;
constexpr std::size_t kLongestName = 255;

constexpr const char* kArgv[] = {"/opt/dtrun/bin/dtrun", "agent", "with 'quotes' and $VALUES"};

std::string OrEmpty(const char* text) { return text == nullptr ? "" : text; }

// Letters, digits and a few others; a command of a platform must not take it for an option.
bool IsHostName(const std::string& name) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%@";
  return !name.empty() && name.size() <= kLongestName && name[0] != '-' &&
         name.find_first_not_of(kAllowed) == name.npos;
}

void CheckFlags(std::uint32_t flags, std::uint32_t known, const char* of, Answer* answer) {
  if ((flags & DTRUN_FLAGS_MUST_UNDERSTAND & ~known) != 0)
    answer->problems.push_back(std::string(of) + " has flags that no host understands");
}

void CheckSize(std::size_t says, std::size_t has, const char* of, Answer* answer) {
  if (answer->exact_sizes && says != has)
    answer->problems.push_back(std::string(of) + " says that it has " + std::to_string(says) +
                               " bytes, and has " + std::to_string(has) + " (S1)");
}

void CheckText(const char* text, const char* name, Answer* answer) {
  if (const std::string wrong = TextProblem(text, true); !wrong.empty())
    answer->problems.push_back(std::string(name) + " " + wrong + " (S15)");
}

std::string CopyHosts(const dtrun_allocation& from, Answer* answer) {
  std::string text;
  std::set<std::string> seen;
  if (from.host_count > kMostHosts || (from.host_count > 0 && from.hosts == nullptr)) {
    answer->problems.push_back("it has " + std::to_string(from.host_count) + " hosts, or no array of them");
    return text;
  }
  if (from.host_count > 0)
    CheckSize(from.hosts->struct_size, sizeof *from.hosts, "a dtrun_allocated_host", answer);
  const auto* const first = reinterpret_cast<const char*>(from.hosts);
  for (std::uint64_t i = 0; i < from.host_count; ++i) {
    const auto host = sdk::internal::ReadStruct(
        reinterpret_cast<const dtrun_allocated_host*>(first + i * from.hosts->struct_size));
    const std::string name = OrEmpty(host.name);
    CheckFlags(host.flags, 0, "a host", answer);
    if (!IsHostName(name))
      answer->problems.push_back("host " + std::to_string(i) + " is called '" + name + "'");
    if (!seen.insert(name).second) answer->problems.push_back("it has the host '" + name + "' twice");
    if (host.slots < 0 || host.slots > kMostSlots)
      answer->problems.push_back("host '" + name + "' has " + std::to_string(host.slots) + " slots");
    answer->hosts.push_back(name);
    text += "host " + name + ", " + std::to_string(host.slots) + " slots\n";
  }
  return text;
}

void CheckCounts(const dtrun_allocation& from, Answer* answer) {
  const auto most = static_cast<std::int64_t>(
      from.host_count > 0 ? from.host_count : static_cast<std::uint64_t>(from.max_hosts));
  if (from.min_hosts < 0 || from.max_hosts < 0 || most > static_cast<std::int64_t>(kMostHosts) ||
      from.min_hosts > most) {
    answer->problems.push_back("it has from " + std::to_string(from.min_hosts) + " to " +
                               std::to_string(most) + " hosts");
  }
  if ((from.flags & DTRUN_ALLOCATION_OWN_INDEX) != 0 &&
      (from.own_index < 0 || (most > 0 && from.own_index >= most)))
    answer->problems.push_back("this is host " + std::to_string(from.own_index) + " of " +
                               std::to_string(most));
  if (from.rank_port < 0 || from.rank_port > kHighestPort)
    answer->problems.push_back("rank 0 listens at port " + std::to_string(from.rank_port));
}

dtrun_status TakeAllocation(void* context, const dtrun_allocation* given, dtrun_error*) {
  auto* const answer = static_cast<Answer*>(context);
  CheckSize(given->struct_size, sizeof *given, "a dtrun_allocation", answer);
  const dtrun_allocation from = sdk::internal::ReadStruct(given);
  CheckFlags(from.flags,
             DTRUN_ALLOCATION_EVERYWHERE | DTRUN_ALLOCATION_OWN_INDEX | DTRUN_ALLOCATION_PORT_TAKEN,
             "the allocation", answer);
  if (!answer->parts.empty()) answer->problems.push_back("it gives a second allocation");
  std::string text = CopyHosts(from, answer);
  CheckCounts(from, answer);
  const std::string root = OrEmpty(from.root_address);
  if (!root.empty() && !IsHostName(root)) answer->problems.push_back("host 0 is at '" + root + "'");
  for (const std::int64_t number :
       {static_cast<std::int64_t>(from.flags), std::int64_t{from.min_hosts}, std::int64_t{from.max_hosts},
        std::int64_t{from.own_index}, std::int64_t{from.rank_port}})
    text += std::to_string(number) + " ";
  for (const char* word : {from.root_address, from.processes_per_host, from.evidence, from.sharing})
    text += "'" + OrEmpty(word) + "' ";
  for (const auto& [of, name] : {std::pair(from.root_address, "root_address"),
                                 {from.processes_per_host, "processes_per_host"},
                                 {from.evidence, "evidence"},
                                 {from.sharing, "sharing"}})
    CheckText(of, name, answer);
  for (std::uint64_t i = 0; i < from.implies_count; ++i) {
    CheckText(from.implies[i], "a platform that it implies", answer);
    if (from.implies[i] == nullptr) answer->problems.push_back("a platform that it implies is NULL");
    text += OrEmpty(from.implies[i]) + " ";
  }
  answer->parts.push_back(text + "\n");
  return DTRUN_OK;
}

dtrun_status TakeCommand(void* context, const dtrun_connect_command* given, dtrun_error*) {
  auto* const answer = static_cast<Answer*>(context);
  CheckSize(given->struct_size, sizeof *given, "a dtrun_connect_command", answer);
  const dtrun_connect_command from = sdk::internal::ReadStruct(given);
  for (const auto& [of, name] :
       {std::pair(from.host_variable, "host_variable"), {from.trial, "trial"}, {from.ending, "ending"}})
    CheckText(of, name, answer);
  CheckFlags(from.flags, 0, "a command", answer);
  std::string text;
  for (std::uint64_t i = 0; i < from.argc; ++i) {
    if (from.argv[i] == nullptr)
      answer->problems.push_back("argument " + std::to_string(i) + " of a command is NULL");
    text += "'" + OrEmpty(from.argv[i]) + "' ";
  }
  if (from.argc == 0 || OrEmpty(from.argv[0]).empty()) answer->problems.push_back("a command has no program");
  if (from.host_count == 0) answer->problems.push_back("a command starts no host");
  for (std::uint64_t i = 0; i < from.host_count; ++i) {
    text += "host " + std::to_string(from.hosts[i]) + " ";
    if (from.hosts[i] < answer->started.size())
      ++answer->started[from.hosts[i]];
    else
      answer->problems.push_back("a command starts host " + std::to_string(from.hosts[i]) + " of " +
                                 std::to_string(answer->started.size()) + ", which are numbered from 0");
  }
  for (const char* word : {from.host_variable, from.trial, from.ending}) text += "'" + OrEmpty(word) + "' ";
  answer->parts.push_back(text + "\n");
  return DTRUN_OK;
}

dtrun_status Refuse(void* calls, dtrun_error* error) {
  ++*static_cast<int*>(calls);
  return dtrun_error_set(error, DTRUN_OUT_OF_MEMORY, -1, "no room for it");
}

}  // namespace

std::string Answer::Text() const {
  std::string text = status == DTRUN_OK ? "" : "failed: " + message + "\n";
  for (const std::string& part : parts) text += part;
  return text;
}

FindHostsMember::Sink FindHostsMember::Into(Answer* answer) {
  Sink sink;
  DTRUN_INIT(sink);
  sink.context = answer;
  sink.allocation = &TakeAllocation;
  return sink;
}
FindHostsMember::Sink FindHostsMember::Refusing(int* calls) {
  Sink sink;
  DTRUN_INIT(sink);
  sink.context = calls;
  sink.allocation = [](void* context, const dtrun_allocation*, dtrun_error* error) {
    return Refuse(context, error);
  };
  return sink;
}

ConnectMember::Query ConnectMember::Ask(const std::vector<const char*>& hosts) {
  Query query;
  DTRUN_INIT(query);
  query.hosts = hosts.data();
  query.host_count = hosts.size();
  query.argv = kArgv;
  query.argc = std::size(kArgv);
  return query;
}
ConnectMember::Sink ConnectMember::Into(Answer* answer) {
  Sink sink;
  DTRUN_INIT(sink);
  sink.context = answer;
  sink.command = &TakeCommand;
  return sink;
}
ConnectMember::Sink ConnectMember::Refusing(int* calls) {
  Sink sink;
  DTRUN_INIT(sink);
  sink.context = calls;
  sink.command = [](void* context, const dtrun_connect_command*, dtrun_error* error) {
    return Refuse(context, error);
  };
  return sink;
}

void CheckStatus(const char* member, dtrun_status status, bool strange) {
  EXPECT_TRUE(status >= DTRUN_OK && status <= DTRUN_MISMATCH && status != DTRUN_PENDING)
      << member << " returned status " << status << " (E2, E8)";
  EXPECT_FALSE(strange) << member << " called `variable` with a query that is not the one it was given";
}

void CheckText(const char* member, const Answer& answer) {
  EXPECT_TRUE(answer.status == DTRUN_OK || !answer.message.empty()) << member << " failed without a text";
}

}  // namespace dtrun::conformance
