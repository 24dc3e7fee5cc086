// hosts.hpp - what a launcher that finds hosts or connects to them is asked, and what it answers.
//
// Values and short-lived views; the thread that calls the launcher.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dtrun/plugin/backend.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  struct AllocatedHost {
    std::string name;
    std::optional<int> slots = {};  // ranks that it has room for
  };

  // The hosts that a platform gave to the job. dtrun_allocation says what each member means.
  struct Allocation {
    std::vector<AllocatedHost> hosts;  // in rank order; empty: their names are not known
    int min_hosts = 0;                 // fewest that will do; 0: all
    int max_hosts = 0;                 // without names, how many there are; 0: the user has to say it
    bool everywhere = false;           // the platform starts dtrun on every host; else once for all
    std::optional<int> own_index;      // which host this is
    std::string root_address;          // of host 0
    std::optional<int> rank_port;      // where rank 0 listens by the platform's contract
    bool rank_port_taken = false;      // the platform itself listens there
    std::string processes_per_host;    // as job.processes_per_host takes it
    std::string evidence;              // the variable or file by which the platform is known
    std::vector<std::string> implies;  // platforms that this one has set variables of as well
    std::string sharing;               // how the user brings a variable to dtrun on every host
  };

  // A command that starts what is asked for on some hosts; dtrun_connect_command has its duties.
  struct ConnectCommand {
    std::vector<std::string> argv;
    std::vector<std::uint64_t> hosts;  // indexes into ConnectQuery::hosts
    std::string host_variable;         // that tells each of several hosts its name; empty: its own names do
    std::string trial;                 // for a user to try by hand
    std::string ending;                // in lines of its own that say only that something has ended
  };

  namespace internal {

  // `read` is ReadKnown of `query`, which the caller's member takes back.
  template <class Query>
  std::optional<std::string> VariableOf(const Query& read, const Query* query, const std::string& name) {
    const char* const value = Offered(read.variable, "variables of a query")(query, name.c_str());
    return value == nullptr ? std::nullopt : std::make_optional<std::string>(value);
  }

  inline const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

  inline std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> out;
    for (const std::string& text : texts) out.push_back(text.c_str());
    return out;
  }

  }  // namespace internal

  // Borrows, valid during FindHosts.
  class HostsQuery {
   public:
    explicit HostsQuery(const dtrun_hosts_query* query)
        : query_(query), read_(internal::ReadKnown(query, "dtrun_hosts_query")) {}
    // A variable of the dtrun that asks; nullopt when unset.
    std::optional<std::string> Variable(const std::string& name) const {
      return internal::VariableOf(read_, query_, name);
    }

   private:
    const dtrun_hosts_query* query_;
    dtrun_hosts_query read_;
  };

  // Borrows, valid during Connect.
  class ConnectQuery {
   public:
    explicit ConnectQuery(const dtrun_connect_query* query)
        : query_(query), read_(internal::ReadKnown(query, "dtrun_connect_query")) {}
    std::vector<std::string> hosts() const { return {read_.hosts, read_.hosts + read_.host_count}; }
    // What is to run once on each host.
    std::vector<std::string> argv() const { return {read_.argv, read_.argv + read_.argc}; }
    std::optional<std::string> Variable(const std::string& name) const {
      return internal::VariableOf(read_, query_, name);
    }

   private:
    const dtrun_connect_query* query_;
    dtrun_connect_query read_;
  };

  namespace internal {

  inline void Give(const Allocation& from, const dtrun_hosts_sink* sink) {
    std::vector<dtrun_allocated_host> hosts;
    for (const AllocatedHost& host : from.hosts) {
      hosts.push_back({sizeof(dtrun_allocated_host), 0, host.name.c_str(), host.slots.value_or(0), 0});
    }
    const std::vector<const char*> implies = Pointers(from.implies);
    dtrun_allocation raw;
    DTRUN_INIT(raw);
    if (from.everywhere) raw.flags |= DTRUN_ALLOCATION_EVERYWHERE;
    if (from.own_index) raw.flags |= DTRUN_ALLOCATION_OWN_INDEX;
    if (from.rank_port_taken) raw.flags |= DTRUN_ALLOCATION_PORT_TAKEN;
    raw.hosts = hosts.data();
    raw.host_count = hosts.size();
    raw.min_hosts = from.min_hosts;
    raw.max_hosts = from.max_hosts;
    raw.own_index = from.own_index.value_or(0);
    raw.rank_port = from.rank_port.value_or(0);
    raw.root_address = OrNull(from.root_address);
    raw.processes_per_host = OrNull(from.processes_per_host);
    raw.evidence = OrNull(from.evidence);
    raw.implies = implies.data();
    raw.implies_count = implies.size();
    raw.sharing = OrNull(from.sharing);
    const dtrun_hosts_sink to = ReadKnown(sink, "dtrun_hosts_sink");
    const auto allocation = Offered(to.allocation, "allocations");
    Check([&](dtrun_error* e) { return allocation(to.context, &raw, e); });
  }

  inline void Give(const ConnectCommand& from, const dtrun_connect_sink* sink) {
    const std::vector<const char*> argv = Pointers(from.argv);
    dtrun_connect_command raw;
    DTRUN_INIT(raw);
    raw.argv = argv.data();
    raw.argc = argv.size();
    raw.hosts = from.hosts.data();
    raw.host_count = from.hosts.size();
    raw.host_variable = OrNull(from.host_variable);
    raw.trial = OrNull(from.trial);
    raw.ending = OrNull(from.ending);
    const dtrun_connect_sink to = ReadKnown(sink, "dtrun_connect_sink");
    const auto command = Offered(to.command, "commands that connect");
    Check([&](dtrun_error* e) { return command(to.context, &raw, e); });
  }

  }  // namespace internal
}  // namespace v1
}  // namespace dtrun::sdk
