#include "core/comm/hierarchy/layer_host.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "core/comm/hierarchy/hierarchy.h"
#include "dtrun/plugin/services.hpp"

namespace dtrun::comm {
namespace {

// All hosts of a process give the same services.
std::atomic<const dtrun_host*> original{nullptr};
std::atomic<bool> muted{false};

template <class Table>
const Table* Original(const char* id) {
  return static_cast<const Table*>(original.load()->get_service(id));
}

std::mutex parts_mutex;
std::set<const void*>& Parts() {
  static std::set<const void*> parts;
  return parts;
}

// The part behind a handle, or null when it is a whole space.
const KvPart* PartOf(dtrun_kv* kv) {
  const std::lock_guard lock(parts_mutex);
  return Parts().count(kv) == 0 ? nullptr : reinterpret_cast<const KvPart*>(kv);
}

// Calls `call(service, kv, key)` on the whole space.
template <class Call>
dtrun_status On(dtrun_kv* kv, dtrun_string key, dtrun_error* err, Call&& call) noexcept {
  return sdk::Guard(err, [&] {
    const auto* const service = Original<dtrun_kv_service>(DTRUN_KV_SERVICE);
    const KvPart* const part = PartOf(kv);
    if (part == nullptr) return call(service, kv, key);
    const std::string whole = part->prefix() + sdk::internal::Text(key);
    return call(service, part->whole(), sdk::internal::View(whole));
  });
}

using Service = const dtrun_kv_service*;

dtrun_status Set(dtrun_kv* kv, dtrun_string key, const void* value, std::uint64_t bytes, dtrun_error* err) {
  return On(kv, key, err,
            [&](Service s, dtrun_kv* on, dtrun_string k) { return s->set(on, k, value, bytes, err); });
}

dtrun_status Get(dtrun_kv* kv, dtrun_string key, std::int64_t timeout_ns, void** value, std::uint64_t* bytes,
                 dtrun_error* err) {
  return On(kv, key, err, [&](Service s, dtrun_kv* on, dtrun_string k) {
    return s->get(on, k, timeout_ns, value, bytes, err);
  });
}

dtrun_status TryGet(dtrun_kv* kv, dtrun_string key, void** value, std::uint64_t* bytes, dtrun_error* err) {
  return On(kv, key, err,
            [&](Service s, dtrun_kv* on, dtrun_string k) { return s->try_get(on, k, value, bytes, err); });
}

dtrun_status Add(dtrun_kv* kv, dtrun_string key, std::int64_t amount, std::int64_t* sum, dtrun_error* err) {
  return On(kv, key, err,
            [&](Service s, dtrun_kv* on, dtrun_string k) { return s->add(on, k, amount, sum, err); });
}

dtrun_status CompareSet(dtrun_kv* kv, dtrun_string key, const void* expected, std::uint64_t expected_bytes,
                        const void* desired, std::uint64_t desired_bytes, std::int32_t* swapped,
                        dtrun_error* err) {
  return On(kv, key, err, [&](Service s, dtrun_kv* on, dtrun_string k) {
    return s->compare_set(on, k, expected, expected_bytes, desired, desired_bytes, swapped, err);
  });
}

dtrun_status Erase(dtrun_kv* kv, dtrun_string key, std::int32_t* existed, dtrun_error* err) {
  return On(kv, key, err,
            [&](Service s, dtrun_kv* on, dtrun_string k) { return s->erase(on, k, existed, err); });
}

dtrun_status WaitMany(dtrun_kv* kv, const dtrun_string* keys, std::uint64_t key_count,
                      std::int64_t timeout_ns, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const auto* const service = Original<dtrun_kv_service>(DTRUN_KV_SERVICE);
    const KvPart* const part = PartOf(kv);
    if (part == nullptr) return service->wait_many(kv, keys, key_count, timeout_ns, err);
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < key_count; ++i) {
      names.push_back(part->prefix() + sdk::internal::Text(keys[i]));
    }
    std::vector<dtrun_string> views;
    for (const std::string& name : names) views.push_back(sdk::internal::View(name));
    return service->wait_many(part->whole(), views.data(), views.size(), timeout_ns, err);
  });
}

std::int32_t ShouldStop() { return Original<dtrun_health_service>(DTRUN_HEALTH_SERVICE)->should_stop(); }

void ReportPeer(std::int32_t peer, dtrun_string what) {
  if (!muted.load()) Original<dtrun_health_service>(DTRUN_HEALTH_SERVICE)->report_peer(peer, what);
}

const void* GetService(const char* id) {
  static constexpr dtrun_kv_service kKv{
      sizeof(dtrun_kv_service), 0, Set, Get, TryGet, Add, CompareSet, Erase, WaitMany};
  static constexpr dtrun_health_service kHealth{sizeof(dtrun_health_service), 0, ShouldStop, ReportPeer};
  const void* const service = original.load()->get_service(id);
  if (service == nullptr) return nullptr;
  if (std::strcmp(id, DTRUN_KV_SERVICE) == 0) return &kKv;
  if (std::strcmp(id, DTRUN_HEALTH_SERVICE) == 0) return &kHealth;
  return service;
}

}  // namespace

const dtrun_host* LayerHost(const dtrun_host* host) {
  static std::mutex mutex;
  static std::deque<dtrun_host> hosts;
  original.store(host);
  dtrun_host table = sdk::internal::ReadStruct(host);
  table.get_service = GetService;
  const std::lock_guard lock(mutex);
  return &hosts.emplace_back(table);
}

KvPart::KvPart(dtrun_kv* whole, std::string prefix) : whole_(whole), prefix_(std::move(prefix)) {
  const std::lock_guard lock(parts_mutex);
  Parts().insert(this);
}

KvPart::~KvPart() {
  const std::lock_guard lock(parts_mutex);
  Parts().erase(this);
}

void MuteLayers() { muted.store(true); }

}  // namespace dtrun::comm
