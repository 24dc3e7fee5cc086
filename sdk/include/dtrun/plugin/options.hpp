// options.hpp - the values that the user gave to this plugin's options.
//
// Core has validated them against the plugin's table: present where required, of the
// right type, in range. A cheap handle, valid as long as the plugin instance; any thread.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "dtrun/plugin/services.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // Getters throw Failure: DTRUN_NOT_FOUND where the option is unset and has no default, and
  // DTRUN_INVALID_ARGUMENT on a key or a type that the plugin's table does not have. The
  // Find forms give nullopt for an unset option.
  class Options {
   public:
    Options(const Host& host, const dtrun_options* options)
        : host_(host.raw()),
          table_(host.Get<dtrun_options_service>(DTRUN_OPTIONS_SERVICE)),
          options_(options) {}

    bool Bool(const char* key) const { return Int(key) != 0; }
    // int, uint, bytes, duration in nanoseconds, index of an enum's choice
    std::int64_t Int(const char* key) const {
      std::int64_t value = 0;
      Check([&](dtrun_error* e) { return table_->get_int(host_, options_, key, &value, e); });
      return value;
    }
    std::uint64_t Bytes(const char* key) const { return static_cast<std::uint64_t>(Int(key)); }
    Nanoseconds Duration(const char* key) const { return Nanoseconds(Int(key)); }
    int EnumIndex(const char* key) const { return static_cast<int>(Int(key)); }
    double Float(const char* key) const {
      double value = 0;
      Check([&](dtrun_error* e) { return table_->get_float(host_, options_, key, &value, e); });
      return value;
    }
    // string, absolute path, text of an enum
    std::string String(const char* key) const {
      dtrun_string value{nullptr, 0};
      Check([&](dtrun_error* e) { return table_->get_string(host_, options_, key, &value, e); });
      return internal::Text(value);
    }
    std::vector<std::string> List(const char* key) const {
      const dtrun_string* items = nullptr;
      std::uint64_t count = 0;
      Check([&](dtrun_error* e) { return table_->get_list(host_, options_, key, &items, &count, e); });
      std::vector<std::string> list;
      for (std::uint64_t i = 0; i < count; ++i) list.push_back(internal::Text(items[i]));
      return list;
    }

    std::optional<std::int64_t> FindInt(const char* key) const {
      return IfSet([&] { return Int(key); });
    }
    std::optional<Nanoseconds> FindDuration(const char* key) const {
      return IfSet([&] { return Duration(key); });
    }
    std::optional<std::string> FindString(const char* key) const {
      return IfSet([&] { return String(key); });
    }

    // Where the value came from, for messages: "train.toml:14:3"; empty for a default.
    std::string Place(const char* key) const { return OriginAndPlace(key).second; }
    // One of DTRUN_ORIGIN_*.
    int Origin(const char* key) const { return OriginAndPlace(key).first; }

   private:
    std::pair<std::int32_t, std::string> OriginAndPlace(const char* key) const {
      std::int32_t origin = 0;
      dtrun_string place{nullptr, 0};
      Check([&](dtrun_error* e) { return table_->get_origin(host_, options_, key, &origin, &place, e); });
      return {origin, internal::Text(place)};
    }
    template <class Getter>
    static auto IfSet(Getter&& getter) -> std::optional<decltype(getter())> {
      try {
        return getter();
      } catch (const Failure& failure) {
        if (failure.code() == DTRUN_NOT_FOUND) return std::nullopt;
        throw;
      }
    }
    const dtrun_host* host_;
    const dtrun_options_service* table_;
    const dtrun_options* options_;
  };

  namespace internal {

  // ---- what the slots of backends, launchers and devices share ----

  // What a dtrun_instance points to: the author's object, and the host for the slots that return no status
  // and can only log.
  template <class T>
  struct Instance {
    explicit Instance(const dtrun_host* h, const dtrun_options* options)
        : host(h), object(host, Options(host, options)) {}
    Host host;
    T object;
  };

  // Whether `Derived` is a method that an author overrode: &Derived::Method has the type of the class that
  // last overrode it.
  template <class Derived, class Base>
  inline constexpr bool kOverridden = !std::is_same_v<Derived, Base>;

  template <class T, class Handle>
  T* As(Handle* handle) noexcept {
    return reinterpret_cast<T*>(handle);
  }

  // For slots that return void: what `body` throws becomes a line of the log.
  template <class Body>
  void GuardVoid(const Host& host, const char* slot, Body&& body) noexcept {
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const dtrun_status status = Do(&error, body);
    if (status == DTRUN_OK) return;
    const auto* log = host.Find<dtrun_log_service>(DTRUN_LOG_SERVICE);
    if (log == nullptr) return;
    char text[DTRUN_ERROR_MESSAGE_BYTES + 64];
    std::size_t used = 0;
    for (const char* part : {"an exception left ", slot, ": ", static_cast<const char*>(error.message)}) {
      CopyCut(text + used, sizeof text - used, part);
      used += std::strlen(text + used);
    }
    log->write(host.raw(), DTRUN_LOG_ERROR, "plugin", dtrun_string{text, used});
  }

  }  // namespace internal
}  // namespace v1
}  // namespace dtrun::sdk
