#include "tools/dtrun/mpirun/remote.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/text.h"
#include "core/contract/environment.h"
#include "core/store/connection.h"

namespace dtrun::mpirun {
namespace {

std::string Key(int index) { return fmt::format("mpi/daemon/{}", index); }

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A call on the store of this process's job that does not count as a rank's call.
Result<store::Reply> Call(store::Body body) {
  Result<store::Connection> connection = store::Connection::Open(Variable(contract::kStore));
  if (!connection) return connection.error();
  store::Hello hello;
  hello.job_key = Variable(contract::kJobKey);
  hello.generation = std::strtoull(Variable(contract::kGeneration).c_str(), nullptr, 10);
  hello.rank = 0;
  Result<store::Reply> reply = connection->Call(hello, std::nullopt);
  if (reply && reply->status == DTRUN_OK) reply = connection->Call(std::move(body), std::nullopt);
  if (reply && reply->status != DTRUN_OK) return Error{reply->status, reply->value};
  return reply;
}

}  // namespace

Result<int> IndexOf(const std::string& name, const std::string& hosts) {
  const auto host = [](std::string_view text) { return text.substr(0, text.find('.')); };
  int found = -1, index = 0;
  for (const std::string_view one : Split(hosts, ',')) {
    if (one == name) return index;
    if (found < 0 && host(one) == host(name)) found = index;
    ++index;
  }
  if (found >= 0) return found;
  return Error{DTRUN_NOT_FOUND,
               fmt::format("mpirun wants to start a daemon on '{}', which is not one of the job's hosts ({})",
                           name, hosts)};
}

Status LeaveCommand(int index, const std::string& command) {
  Result<store::Reply> reply = Call(store::Set{Key(index), command});
  if (!reply) return reply.error();
  return {};
}

Result<std::string> AwaitCommand(int index) {
  Result<store::Reply> reply = Call(store::Get{Key(index), -1});
  if (!reply) return reply.error();
  return std::move(reply->value);
}

}  // namespace dtrun::mpirun
