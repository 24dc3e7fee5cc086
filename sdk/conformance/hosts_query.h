// What a launcher answers when it is asked for hosts (find_hosts) or for the commands that start dtrun on
// them (connect), copied and checked, in an environment of the test's choice.
//
// Used by one thread at a time: `variable` of the queries reads the environment of the latest Ask or Call.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dtrun/abi.h"
#include "launcher_subject.h"
#include "own_process.h"

namespace dtrun::conformance {

using Variables = std::map<std::string, std::string>;

struct Answer {
  dtrun_status status = DTRUN_OK;
  std::string message;
  std::vector<std::string> parts;     // an allocation or a command each, as texts that can be compared
  std::vector<std::string> hosts;     // of an allocation
  std::vector<int> started;           // of commands: how many start each host of the query
  std::vector<std::string> problems;  // what dtrun would refuse, or a rule forbids
  bool exact_sizes = false;           // whether structs of the plugin have the sizes of these headers
  std::string Text() const;           // all but the problems
};

// The two members, alike: their structs, their names, and how they are called.
struct FindHostsMember {
  using Query = dtrun_hosts_query;
  using Sink = dtrun_hosts_sink;
  static constexpr const char *kName = "find_hosts", *kQuery = "dtrun_hosts_query",
                              *kSink = "dtrun_hosts_sink";
  static auto Of(const dtrun_launcher& table) { return table.find_hosts; }
  static Query Ask(const std::vector<const char*>&) {
    Query query;
    DTRUN_INIT(query);
    return query;
  }
  static Sink Into(Answer* answer);
  static Sink Refusing(int* calls);
};
struct ConnectMember {
  using Query = dtrun_connect_query;
  using Sink = dtrun_connect_sink;
  static constexpr const char *kName = "connect", *kQuery = "dtrun_connect_query",
                              *kSink = "dtrun_connect_sink";
  static auto Of(const dtrun_launcher& table) { return table.connect; }
  // To `hosts`, which outlive it.
  static Query Ask(const std::vector<const char*>& hosts);
  static Sink Into(Answer* answer);
  static Sink Refusing(int* calls);
};

// The value in `variables`, and nothing else. A query that is not the one that was given fails the case.
template <class Query>
struct Asked {
  inline static const Variables* variables = nullptr;
  inline static const Query* given = nullptr;
  inline static bool strange = false;  // it was called with another query

  static const char* Variable(const Query* query, const char* name) {
    strange = strange || query != given;
    const auto found = variables->find(name);
    return found == variables->end() ? nullptr : found->second.c_str();
  }
};

// Fail the case when the status, the query that `variable` was called with, or the text of a failure is
// wrong.
void CheckStatus(const char* member, dtrun_status status, bool strange);
void CheckText(const char* member, const Answer& answer);

// A launcher with its default options (L12) that is asked.
template <class Member>
class Asking {
 public:
  using Query = typename Member::Query;
  using Sink = typename Member::Sink;

  explicit Asking(const BackendUnderTest& under_test)
      : subject_(under_test, LauncherSubject::OptionsOf::kDefaults), hosts_({"node0", "node1", "node2"}) {}

  bool Has() const { return Member::Of(subject_.table()) != nullptr; }
  // Names to connect to, at least one.
  void SetHosts(const std::vector<std::string>& hosts) { hosts_ = hosts; }
  const std::vector<std::string>& hosts() const { return hosts_; }

  // For Call, as long as this lives.
  Query MakeQuery() {
    names_.clear();
    for (const std::string& host : hosts_) names_.push_back(host.c_str());
    Query query = Member::Ask(names_);
    query.variable = &Asked<Query>::Variable;
    return query;
  }
  dtrun_status Call(const Variables& variables, const Query* query, const Sink* sink, dtrun_error* error) {
    Asked<Query>::variables = &variables;
    Asked<Query>::given = query;
    Asked<Query>::strange = false;
    const dtrun_status status = Member::Of(subject_.table())(subject_.instance(), query, sink, error);
    EndIfCopied();
    CheckStatus(Member::kName, status, Asked<Query>::strange);
    return status;
  }
  Answer Ask(const Variables& variables) {
    Answer answer;
    answer.exact_sizes = subject_.HasTheseHeaders();
    const Query query = MakeQuery();
    answer.started.resize(hosts_.size());
    const Sink sink = Member::Into(&answer);
    Finish(variables, &query, &sink, &answer);
    return answer;
  }
  // Calls with an error of its own and fills the rest of `answer`, into which `sink` copies.
  void Finish(const Variables& variables, const Query* query, const Sink* sink, Answer* answer) {
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    answer->status = Call(variables, query, sink, &error);
    answer->message = error.message;
    CheckError(Member::kName, answer->status, error);
    CheckText(Member::kName, *answer);
  }

 private:
  const LauncherSubject subject_;
  std::vector<std::string> hosts_;
  std::vector<const char*> names_;
};

}  // namespace dtrun::conformance
