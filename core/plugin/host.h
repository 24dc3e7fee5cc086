// The host's side of the ABI: the table and the services that plugins are given.
//
// Tables are constant and live as long as the process. Services that need the runtime of
// a rank (kv, health) reach it through the two hooks below; without a runtime, as in a
// probe, they report failed precondition or nothing. All functions: any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/plugin/plugin.h"

// The ABI's opaque key-value space. Core's store client implements it. Times are what is
// left of the caller's deadline; negative: no limit. May be called from several threads.
struct dtrun_kv {
  // Where reports of the communicator's peers go, by their ranks in it. Set before a plugin gets the space.
  std::function<void(int peer, std::string_view what)> report;

  virtual ~dtrun_kv() = default;
  virtual dtrun::Status Set(std::string_view key, std::string_view value) = 0;
  virtual dtrun::Result<std::string> Get(std::string_view key, dtrun::Nanoseconds timeout) = 0;
  virtual dtrun::Result<std::string> TryGet(std::string_view key) = 0;  // DTRUN_NOT_FOUND
  virtual dtrun::Result<std::int64_t> Add(std::string_view key, std::int64_t amount) = 0;
  // `expected` nullopt-like: has_expected false means "iff absent".
  virtual dtrun::Result<bool> CompareSet(std::string_view key, bool has_expected, std::string_view expected,
                                         std::string_view desired) = 0;
  virtual dtrun::Result<bool> Erase(std::string_view key) = 0;
  virtual dtrun::Status WaitMany(const std::vector<std::string>& keys, dtrun::Nanoseconds timeout) = 0;
  // From now on who asks or waits for a key that is not there gets DTRUN_REMOTE_FAILURE and `text`, on every
  // rank and also where it waits already. For core only. A part (dtrun_kv_service) tells nobody.
  virtual dtrun::Status Fail(std::string_view text) {
    static_cast<void>(text);
    return {};
  }
};

namespace dtrun::plugin {

// The table given to plugins of this kind.
const dtrun_host* HostTable(Kind kind, bool in_probe);

// Receives peer reports of plugins; set by the runtime of a rank, null otherwise.
void SetHealthHooks(std::function<bool()> should_stop, std::function<void(int, std::string_view)> report);

}  // namespace dtrun::plugin
