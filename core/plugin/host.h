// The host's side of the ABI: the table and the services passed to plugins.
//
// Tables are constant and live as long as the process. Services that need the runtime of a rank
// (kv, health) reach it through the two hooks below; without a runtime, as in a probe, they report
// failed precondition or nothing. All functions: any thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/number.h"
#include "core/base/result.h"
#include "core/plugin/plugin.h"

// The ABI's opaque key-value space. Core's store client implements it. Timeouts are the rest of the
// caller's deadline; negative: no limit. May be called from several threads.
struct dtrun_kv {
  // Receives reports about the communicator's peers, numbered by their ranks in it. Set before a plugin gets
  // the space.
  std::function<void(int peer, std::string_view what)> report;

  virtual ~dtrun_kv() = default;
  virtual dtrun::Status Set(std::string_view key, std::string_view value) = 0;
  virtual dtrun::Result<std::string> Get(std::string_view key, dtrun::Nanoseconds timeout) = 0;
  virtual dtrun::Result<std::string> TryGet(std::string_view key) = 0;  // DTRUN_NOT_FOUND
  virtual dtrun::Result<std::int64_t> Add(std::string_view key, std::int64_t amount) = 0;
  // has_expected false means "only if absent".
  virtual dtrun::Result<bool> CompareSet(std::string_view key, bool has_expected, std::string_view expected,
                                         std::string_view desired) = 0;
  virtual dtrun::Result<bool> Erase(std::string_view key) = 0;
  virtual dtrun::Status WaitMany(const std::vector<std::string>& keys, dtrun::Nanoseconds timeout) = 0;
  // From now on every get or wait for an absent key fails with DTRUN_REMOTE_FAILURE and `text`, on every
  // rank, including waits in progress. For core only. A part (dtrun_kv_service) notifies no one.
  virtual dtrun::Status Fail(std::string_view text) {
    static_cast<void>(text);
    return {};
  }
};

namespace dtrun::plugin {

// The table passed to plugins of this kind.
const dtrun_host* HostTable(Kind kind, bool in_probe);

// Hooks for plugins' peer reports and stop queries; set by the runtime of a rank, null otherwise.
void SetHealthHooks(std::function<bool()> should_stop, std::function<void(int, std::string_view)> report);

// Watches a call into a backend that another one has opened; the call ends with the returned object, on the
// same thread. `call`: "backend 'gloo', in its init". Set by the runtime of a rank, null otherwise.
using CallWatch = std::function<std::shared_ptr<void>(std::string call)>;
void SetCallWatch(CallWatch watch);

}  // namespace dtrun::plugin
