#include "core/plugin/services.h"

#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/log/log.h"
#include "core/plugin/host.h"

namespace dtrun::plugin {
namespace {

// Runs `body`, which returns a Status. Exceptions never reach the plugin.
template <class Body>
dtrun_status Call(dtrun_kv* kv, dtrun_error* err, Body&& body) noexcept {
  try {
    if (kv == nullptr) {
      return Error{DTRUN_FAILED_PRECONDITION, "no key-value space here; one comes with dtrun_comm_params"}
          .CopyTo(err);
    }
    const Status status = body();
    return status ? DTRUN_OK : status.error().CopyTo(err);
  } catch (const std::bad_alloc&) {
    return Error{DTRUN_OUT_OF_MEMORY, {}}.CopyTo(err);
  } catch (const std::exception& error) {
    return Error{DTRUN_INTERNAL, std::string("key-value space: ") + error.what()}.CopyTo(err);
  }
}

Status CheckKey(dtrun_string key) {
  if (key.size == 0 || key.data == nullptr) return Error{DTRUN_INVALID_ARGUMENT, "the key is empty"};
  if (key.size <= DTRUN_KV_MAX_KEY_BYTES) return {};
  return Error::Of(DTRUN_INVALID_ARGUMENT, "the key has {} bytes, at most {} are allowed", key.size,
                   static_cast<int>(DTRUN_KV_MAX_KEY_BYTES));
}

Status CheckValue(dtrun_string key, const void* value, std::uint64_t bytes) {
  if (bytes > 0 && value == nullptr) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "key '{}': the value is a null pointer", View(key));
  }
  if (bytes <= DTRUN_KV_MAX_VALUE_BYTES) return {};
  return Error::Of(DTRUN_INVALID_ARGUMENT, "key '{}': the value has {} bytes, at most {} are allowed",
                   View(key), bytes, static_cast<int>(DTRUN_KV_MAX_VALUE_BYTES));
}

std::string_view Bytes(const void* value, std::uint64_t bytes) {
  return bytes == 0 ? std::string_view() : std::string_view(static_cast<const char*>(value), bytes);
}

// Returns a value to the plugin in a buffer of the memory service.
Status Hand(Result<std::string> value, void** out_value, std::uint64_t* out_bytes) {
  if (!value) return std::move(value).error();
  void* copy = MemoryService()->allocate(nullptr, value->size(), 8);
  if (copy == nullptr) return Error::Of(DTRUN_OUT_OF_MEMORY, "no memory for {} bytes", value->size());
  std::memcpy(copy, value->data(), value->size());
  *out_value = copy;
  *out_bytes = value->size();
  return {};
}

template <class T, class Out>
Status Give(const Result<T>& result, Out* out) {
  if (!result) return result.error();
  *out = *result;
  return {};
}

dtrun_status Set(const dtrun_host*, dtrun_kv* kv, dtrun_string key, const void* value, std::uint64_t bytes,
                 dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    if (Status status = CheckKey(key); !status) return status;
    if (Status status = CheckValue(key, value, bytes); !status) return status;
    return kv->Set(View(key), Bytes(value, bytes));
  });
}

dtrun_status Get(const dtrun_host*, dtrun_kv* kv, dtrun_string key, std::int64_t timeout_ns, void** out_value,
                 std::uint64_t* out_bytes, dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    if (Status status = CheckKey(key); !status) return status;
    return Hand(kv->Get(View(key), Nanoseconds(timeout_ns)), out_value, out_bytes);
  });
}

dtrun_status TryGet(const dtrun_host*, dtrun_kv* kv, dtrun_string key, void** out_value,
                    std::uint64_t* out_bytes, dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    if (Status status = CheckKey(key); !status) return status;
    return Hand(kv->TryGet(View(key)), out_value, out_bytes);
  });
}

dtrun_status Add(const dtrun_host*, dtrun_kv* kv, dtrun_string key, std::int64_t amount,
                 std::int64_t* out_sum, dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    if (Status status = CheckKey(key); !status) return status;
    return Give(kv->Add(View(key), amount), out_sum);
  });
}

dtrun_status CompareSet(const dtrun_host*, dtrun_kv* kv, dtrun_string key, const void* expected,
                        std::uint64_t expected_bytes, const void* desired, std::uint64_t desired_bytes,
                        std::int32_t* out_swapped, dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    if (Status status = CheckKey(key); !status) return status;
    if (Status status = CheckValue(key, expected, expected_bytes); !status) return status;
    if (Status status = CheckValue(key, desired, desired_bytes); !status) return status;
    return Give(kv->CompareSet(View(key), expected != nullptr, Bytes(expected, expected_bytes),
                               Bytes(desired, desired_bytes)),
                out_swapped);
  });
}

dtrun_status Erase(const dtrun_host*, dtrun_kv* kv, dtrun_string key, std::int32_t* out_existed,
                   dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    if (Status status = CheckKey(key); !status) return status;
    return Give(kv->Erase(View(key)), out_existed);
  });
}

dtrun_status WaitMany(const dtrun_host*, dtrun_kv* kv, const dtrun_string* keys, std::uint64_t key_count,
                      std::int64_t timeout_ns, dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < key_count; ++i) {
      if (Status status = CheckKey(keys[i]); !status) return status;
      texts.emplace_back(View(keys[i]));
    }
    return kv->WaitMany(texts, Nanoseconds(timeout_ns));
  });
}

// A subset of the keys and ranks of another space, which must outlive it.
class Part final : public dtrun_kv {
 public:
  Part(dtrun_kv* whole, std::string_view prefix, std::vector<std::int32_t> ranks)
      : whole_(whole), prefix_(prefix) {
    if (ranks.empty()) return;
    report = [whole, ranks = std::move(ranks)](int peer, std::string_view what) {
      const bool known = peer >= 0 && peer < static_cast<int>(ranks.size());
      if (whole->report) whole->report(known ? ranks[static_cast<std::size_t>(peer)] : -1, what);
    };
  }

  Status Set(std::string_view key, std::string_view value) override { return whole_->Set(Full(key), value); }
  Result<std::string> Get(std::string_view key, Nanoseconds timeout) override {
    return whole_->Get(Full(key), timeout);
  }
  Result<std::string> TryGet(std::string_view key) override { return whole_->TryGet(Full(key)); }
  Result<std::int64_t> Add(std::string_view key, std::int64_t amount) override {
    return whole_->Add(Full(key), amount);
  }
  Result<bool> CompareSet(std::string_view key, bool has_expected, std::string_view expected,
                          std::string_view desired) override {
    return whole_->CompareSet(Full(key), has_expected, expected, desired);
  }
  Result<bool> Erase(std::string_view key) override { return whole_->Erase(Full(key)); }
  Status WaitMany(const std::vector<std::string>& keys, Nanoseconds timeout) override {
    std::vector<std::string> full;
    for (const std::string& key : keys) full.push_back(Full(key));
    return whole_->WaitMany(full, timeout);
  }

 private:
  std::string Full(std::string_view key) const { return prefix_ + std::string(key); }

  dtrun_kv* const whole_;
  const std::string prefix_;
};

dtrun_status OpenPart(const dtrun_host*, dtrun_kv* kv, dtrun_string prefix, const std::int32_t* ranks,
                      std::uint64_t rank_count, dtrun_kv** out, dtrun_error* err) {
  return Call(kv, err, [&]() -> Status {
    if (Status status = CheckKey(prefix); !status) return status;
    std::vector<std::int32_t> list;
    if (ranks != nullptr) list.assign(ranks, ranks + rank_count);
    *out = new Part(kv, View(prefix), std::move(list));
    return {};
  });
}

void ClosePart(const dtrun_host*, dtrun_kv* part) { delete part; }

constexpr std::size_t kMostTopicBytes = 64;

log::Level LevelOf(std::int32_t level) {
  if (level <= DTRUN_LOG_DEBUG) return log::Level::kDebug;
  return level >= DTRUN_LOG_ERROR ? log::Level::kError : static_cast<log::Level>(level);
}

std::int32_t Enabled(const dtrun_host*, std::int32_t level) {
  return LevelOf(level) >= log::LowestKept() ? 1 : 0;
}

void Write(const dtrun_host*, std::int32_t level, const char* topic, dtrun_string text) {
  const std::string_view given = topic == nullptr || *topic == '\0' ? "plugin" : topic;
  const std::string room = Printable(given.substr(0, kMostTopicBytes));
  log::Room(room).Write(LevelOf(level), View(text));
}

}  // namespace

const dtrun_kv_service* KvService() {
  static constexpr dtrun_kv_service kService{
      sizeof(dtrun_kv_service), 0, Set, Get, TryGet, Add, CompareSet, Erase, WaitMany, OpenPart, ClosePart};
  return &kService;
}

const dtrun_log_service* LogService() {
  static constexpr dtrun_log_service kService{sizeof(dtrun_log_service), 0, Enabled, Write};
  return &kService;
}

}  // namespace dtrun::plugin
