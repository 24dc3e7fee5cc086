#include "core/store/horovod_table.h"

namespace dtrun::store {
namespace {

constexpr unsigned kBadRequest = 400, kNotFound = 404, kMethodNotAllowed = 405, kFull = 507;

}  // namespace

HorovodTable::Answer HorovodTable::Take(std::string_view method, std::string_view target,
                                        std::string_view body) {
  const std::size_t slash = target.find('/', 1);
  if (!target.starts_with('/') || slash == std::string_view::npos || slash == 1) return {kBadRequest};
  const std::string scope(target.substr(1, slash - 1)), key(target.substr(slash + 1));
  if (key.empty()) return {kBadRequest};

  if (method == "GET") {
    const auto found = scopes_.find(scope);
    if (found == scopes_.end() || !found->second.contains(key)) return {kNotFound};
    return {200, found->second.at(key)};
  }
  if (method == "PUT") {
    if (bytes_ + scope.size() + key.size() + body.size() > kMostBytes) return {kFull};
    const auto [value, fresh] = scopes_[scope].try_emplace(key);
    bytes_ += body.size() + (fresh ? key.size() : 0) - value->second.size();
    value->second = body;
    return {};
  }
  if (method != "DELETE") return {kMethodNotAllowed};
  if (const auto members = members_.find(scope); members != members_.end()) {
    if (++finished_[scope] == members->second) Clear(scope);
  } else if (const auto found = scopes_.find(scope); found != scopes_.end()) {
    if (const auto value = found->second.find(key); value != found->second.end()) {
      bytes_ -= key.size() + value->second.size();
      found->second.erase(value);
    }
    if (found->second.empty()) scopes_.erase(found);
  }
  return {};
}

void HorovodTable::Clear(const std::string& scope) {
  finished_.erase(scope);
  const auto found = scopes_.find(scope);
  if (found == scopes_.end()) return;
  for (const auto& [key, value] : found->second) bytes_ -= key.size() + value.size();
  scopes_.erase(found);
}

}  // namespace dtrun::store
