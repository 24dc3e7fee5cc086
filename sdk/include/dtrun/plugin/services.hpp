// services.hpp - what the host offers, as C++: log, key-value space, clock, threads, health.
//
// All are cheap handles, valid as long as the process (Kv: as long as its communicator);
// copy them freely, use them from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  using Nanoseconds = std::chrono::nanoseconds;
  inline constexpr Nanoseconds kNoLimit{-1};

  namespace internal {
  inline dtrun_string View(const std::string& text) noexcept { return {text.c_str(), text.size()}; }
  inline std::string Text(dtrun_string text) {
    return text.size == 0 ? std::string() : std::string(text.data, text.size);
  }
  }  // namespace internal

  // The host that loaded this plugin.
  class Host {
   public:
    explicit Host(const dtrun_host* host) : host_(host) {}

    // The table of a service, or null when this host lacks it.
    template <class Table>
    const Table* Find(const char* id) const noexcept {
      const auto get_service = internal::ReadStruct(host_).get_service;  // a shorter table has none
      return get_service == nullptr ? nullptr : static_cast<const Table*>(get_service(host_, id));
    }
    // As Find; throws when it is lacking.
    template <class Table>
    const Table* Get(const char* id) const {
      const Table* table = Find<Table>(id);
      if (table == nullptr) {
        throw Failure(DTRUN_UNSUPPORTED,
                      std::string("this dtrun has no service '") + id + "'; upgrade dtrun");
      }
      return table;
    }

    // True in the short-lived process that only lists and describes.
    bool in_probe() const { return host_->in_probe != 0; }
    std::string product() const { return internal::Text(host_->product); }
    const dtrun_host* raw() const { return host_; }

   private:
    const dtrun_host* host_;
  };

  // Lines of the log. `topic` is the plugin's name or a part of it, a literal.
  class Log {
   public:
    Log(const Host& host, const char* topic)
        : host_(host.raw()), table_(host.Find<dtrun_log_service>(DTRUN_LOG_SERVICE)), topic_(topic) {}

    bool Enabled(int level) const noexcept { return table_ != nullptr && table_->enabled(host_, level) != 0; }
    void Debug(const std::string& text) const noexcept { Write(DTRUN_LOG_DEBUG, text); }
    void Info(const std::string& text) const noexcept { Write(DTRUN_LOG_INFO, text); }
    void Warn(const std::string& text) const noexcept { Write(DTRUN_LOG_WARN, text); }
    void Error(const std::string& text) const noexcept { Write(DTRUN_LOG_ERROR, text); }

   private:
    void Write(int level, const std::string& text) const noexcept {
      if (Enabled(level)) table_->write(host_, level, topic_, internal::View(text));
    }
    const dtrun_host* host_;
    const dtrun_log_service* table_;
    const char* topic_;
  };

  // A key-value space shared by the ranks of one communicator. Keys of different
  // communicators never collide. Every method throws Failure; timeouts: DTRUN_TIMEOUT.
  class Kv {
   public:
    Kv(const Host& host, dtrun_kv* kv)
        : host_(host.raw()),
          table_(host.Get<dtrun_kv_service>(DTRUN_KV_SERVICE)),
          memory_(host.Get<dtrun_memory_service>(DTRUN_MEMORY_SERVICE)),
          kv_(kv) {}

    void Set(const std::string& key, std::string_view value) const {
      Check([&](dtrun_error* e) {
        return table_->set(host_, kv_, internal::View(key), value.data(), value.size(), e);
      });
    }
    // Waits for the key.
    std::string Get(const std::string& key, Nanoseconds timeout) const {
      return Take([&](void** out, std::uint64_t* bytes, dtrun_error* e) {
        return table_->get(host_, kv_, internal::View(key), timeout.count(), out, bytes, e);
      });
    }
    // nullopt when the key is absent.
    std::optional<std::string> TryGet(const std::string& key) const {
      try {
        return Take([&](void** out, std::uint64_t* bytes, dtrun_error* e) {
          return table_->try_get(host_, kv_, internal::View(key), out, bytes, e);
        });
      } catch (const Failure& failure) {
        if (failure.code() == DTRUN_NOT_FOUND) return std::nullopt;
        throw;
      }
    }
    // Adds to a counter that starts at 0 and returns the new value.
    std::int64_t Add(const std::string& key, std::int64_t amount) const {
      std::int64_t sum = 0;
      Check([&](dtrun_error* e) { return table_->add(host_, kv_, internal::View(key), amount, &sum, e); });
      return sum;
    }
    // Stores `desired` iff the value equals `expected` (nullopt: iff absent).
    bool CompareSet(const std::string& key, std::optional<std::string_view> expected,
                    std::string_view desired) const {
      // A non-null pointer means that an empty value is expected, not that none is.
      const void* pointer = expected ? (expected->data() != nullptr ? expected->data() : "") : nullptr;
      const std::uint64_t bytes = expected ? expected->size() : 0;
      std::int32_t swapped = 0;
      Check([&](dtrun_error* e) {
        return table_->compare_set(host_, kv_, internal::View(key), pointer, bytes, desired.data(),
                                   desired.size(), &swapped, e);
      });
      return swapped != 0;
    }
    // True when there was such a key.
    bool Erase(const std::string& key) const {
      std::int32_t existed = 0;
      Check([&](dtrun_error* e) { return table_->erase(host_, kv_, internal::View(key), &existed, e); });
      return existed != 0;
    }
    // Waits until every key exists.
    void WaitMany(const std::vector<std::string>& keys, Nanoseconds timeout) const {
      std::vector<dtrun_string> views;
      views.reserve(keys.size());
      for (const std::string& key : keys) views.push_back(internal::View(key));
      Check([&](dtrun_error* e) {
        return table_->wait_many(host_, kv_, views.data(), views.size(), timeout.count(), e);
      });
    }
    dtrun_kv* raw() const { return kv_; }

   private:
    template <class Call>
    std::string Take(Call&& call) const {
      void* value = nullptr;
      std::uint64_t bytes = 0;
      Check([&](dtrun_error* e) { return call(&value, &bytes, e); });
      const auto release = [this](void* memory) { memory_->release(host_, memory); };
      const std::unique_ptr<void, decltype(release)> owner(value, release);
      return bytes == 0 ? std::string() : std::string(static_cast<const char*>(value), bytes);
    }

    const dtrun_host* host_;
    const dtrun_kv_service* table_;
    const dtrun_memory_service* memory_;
    dtrun_kv* kv_;
  };

  // A part of a communicator's space for another plugin's communicator. The caller reports that one's peers
  // itself. Outlives that communicator; `whole` outlives it.
  class KvPart {
   public:
    KvPart(const Host& host, dtrun_kv* whole, const std::string& prefix)
        : host_(host.raw()), table_(host.Get<dtrun_kv_service>(DTRUN_KV_SERVICE)) {
      Check([&](dtrun_error* e) {
        return table_->open_part(host_, whole, internal::View(prefix), nullptr, 0, &part_, e);
      });
    }
    ~KvPart() { table_->close_part(host_, part_); }
    KvPart(const KvPart&) = delete;
    KvPart& operator=(const KvPart&) = delete;
    dtrun_kv* raw() const { return part_; }

   private:
    const dtrun_host* host_;
    const dtrun_kv_service* table_;
    dtrun_kv* part_ = nullptr;
  };

  // One clock for all timeouts and traces.
  class Clock {
   public:
    explicit Clock(const Host& host)
        : host_(host.raw()), table_(host.Get<dtrun_clock_service>(DTRUN_CLOCK_SERVICE)) {}
    Nanoseconds Monotonic() const noexcept { return Nanoseconds(table_->monotonic_ns(host_)); }
    Nanoseconds Wall() const noexcept { return Nanoseconds(table_->wall_ns(host_)); }

   private:
    const dtrun_host* host_;
    const dtrun_clock_service* table_;
  };

  // Declares the calling thread to core, which names it and blocks signals in it. Lives on
  // the stack of the thread's function. `name` has at most 15 bytes.
  class ThreadScope {
   public:
    ThreadScope(const Host& host, const char* name)
        : host_(host.raw()), table_(host.Find<dtrun_threads_service>(DTRUN_THREADS_SERVICE)) {
      if (table_ != nullptr) table_->on_start(host_, name);
    }
    ~ThreadScope() {
      if (table_ != nullptr) table_->on_stop(host_);
    }
    ThreadScope(const ThreadScope&) = delete;
    ThreadScope& operator=(const ThreadScope&) = delete;

   private:
    const dtrun_host* host_;
    const dtrun_threads_service* table_;
  };

  // What core knows and wants to know of the job's health.
  class Health {
   public:
    explicit Health(const Host& host)
        : host_(host.raw()), table_(host.Find<dtrun_health_service>(DTRUN_HEALTH_SERVICE)) {}
    // True once the job is ending; long loops should return.
    bool ShouldStop() const noexcept { return table_ != nullptr && table_->should_stop(host_) != 0; }
    // Rank `peer` (-1: unknown) of the communicator with this space has failed; `what` is one line.
    void ReportPeer(const Kv& kv, int peer, const std::string& what) const noexcept {
      if (table_ != nullptr) table_->report_peer(host_, kv.raw(), peer, internal::View(what));
    }

   private:
    const dtrun_host* host_;
    const dtrun_health_service* table_;
  };

}  // namespace v1
}  // namespace dtrun::sdk
