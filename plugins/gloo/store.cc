#include "store.h"

#include <string_view>

namespace dtrun::gloo_plugin {
namespace {

constexpr const char* kPrefix = "gloo/";

}  // namespace

void KvStore::set(const std::string& key, const std::vector<char>& data) {
  kv_.Set(kPrefix + key, std::string_view(data.data(), data.size()));
}

std::vector<char> KvStore::get(const std::string& key) {
  const std::string value = kv_.Get(kPrefix + key, deadline_.Left());
  // Addresses lie under the bare number of their rank.
  if (!key.empty() && key.find_first_not_of("0123456789") == std::string::npos) last_rank_ = std::stoi(key);
  return {value.begin(), value.end()};
}

void KvStore::wait(const std::vector<std::string>& keys) {
  std::vector<std::string> prefixed;
  prefixed.reserve(keys.size());
  for (const std::string& key : keys) prefixed.push_back(kPrefix + key);
  kv_.WaitMany(prefixed, deadline_.Left());
}

void KvStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) { wait(keys); }

}  // namespace dtrun::gloo_plugin
