// failure.hpp - errors of a plugin: an exception inside it, a dtrun_error at its edge.
//
// Values and pure functions; any thread.
#pragma once

#ifndef __cpp_exceptions
#error \
    "dtrun's C++ headers for plugins need exceptions: compile without -fno-exceptions, or use dtrun/abi.h, which is C"
#endif

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "dtrun/abi.h"
#include "dtrun/abi/structs.h"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // Why something failed. Throw it from any method; core sees the code, the text and the
  // peer. Texts follow dtrun/abi/error.h: lower case, exact cause, next step last.
  class Failure : public std::runtime_error {
   public:
    explicit Failure(dtrun_status code, const std::string& text, int peer = -1)
        : std::runtime_error(text), code_(code), peer_(peer) {}

    // What a host service reported.
    explicit Failure(const dtrun_error& error, dtrun_status code)
        : std::runtime_error(error.message[0] != '\0' ? error.message : "a host service failed"),
          code_(code),
          peer_(error.peer),
          vendor_code_(error.vendor_code),
          vendor_domain_(error.vendor_domain) {}

    // The vendor library's own number: Vendor("nccl", result).
    Failure& Vendor(std::string domain, std::int64_t code) {
      vendor_domain_ = std::move(domain);
      vendor_code_ = code;
      return *this;
    }

    dtrun_status code() const noexcept { return code_; }
    int peer() const noexcept { return peer_; }

    // Fills a caller's struct, which may be null, and returns the code.
    dtrun_status CopyTo(dtrun_error* out) const noexcept;

   private:
    dtrun_status code_;
    int peer_;
    std::int64_t vendor_code_ = 0;
    std::string vendor_domain_;
  };

  namespace internal {

  // Copies at most capacity - 1 bytes and never ends inside a UTF-8 character.
  inline void CopyCut(char* out, std::size_t capacity, std::string_view text) noexcept {
    std::size_t size = std::min(text.size(), capacity - 1);
    if (size < text.size()) {
      while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
    }
    if (size > 0) std::memcpy(out, text.data(), size);
    out[size] = '\0';
  }

  // Writes as much of `value` as the caller's struct holds, and keeps its struct_size.
  template <class T>
  void WriteStruct(T* out, const T& value) noexcept {
    const std::uint32_t size = out->struct_size;
    std::memcpy(out, &value, std::min<std::size_t>(size, sizeof(T)));
    if (size >= sizeof out->struct_size) out->struct_size = size;
  }

  // The least struct_size of a T: that of ABI 1.0; of a struct of the device draft, its size.
  template <class T>
  inline constexpr std::uint32_t kFloor = sizeof(T);
#define DTRUN_SDK_FLOOR(type, bytes) \
  template <>                        \
  inline constexpr std::uint32_t kFloor<type> = bytes;
  DTRUN_FLOORS(DTRUN_SDK_FLOOR)
#undef DTRUN_SDK_FLOOR

  // A full-size copy; what the caller's struct lacks is zero.
  template <class T>
  T ReadStruct(const T* in) noexcept {
    T value;
    if (in != nullptr && in->struct_size >= sizeof value) {  // the usual case, and a fast one
      std::memcpy(&value, in, sizeof value);
    } else {
      std::memset(&value, 0, sizeof value);
      if (in != nullptr) std::memcpy(&value, in, in->struct_size);
    }
    value.struct_size = sizeof value;
    return value;
  }

  // Throws when `flags` has a bit that must be understood and is not in `known`.
  inline void Understand(std::uint32_t flags, const char* what, std::uint32_t known = 0) {
    const std::uint32_t strange = flags & DTRUN_FLAGS_MUST_UNDERSTAND & ~known;
    if (strange == 0) return;
    throw Failure(DTRUN_UNSUPPORTED, std::string(what) + " has flags " + std::to_string(strange) +
                                         ", which this plugin does not know; use a newer plugin");
  }

  // ReadStruct of what a caller gives to a member; throws when it is smaller than at ABI 1.0, or has flags
  // that must be understood and are not in `known`.
  template <class T>
  T ReadKnown(const T* in, const char* what, std::uint32_t known = 0) {
    if (in != nullptr && in->struct_size < kFloor<T>) {
      throw Failure(DTRUN_INVALID_ARGUMENT, std::string(what) + " has a struct_size of " +
                                                std::to_string(in->struct_size) + ", and ABI 1.0 has " +
                                                std::to_string(kFloor<T>) + "; DTRUN_INIT sets it");
    }
    const T value = ReadStruct(in);
    Understand(value.flags, what, known);
    return value;
  }

  // A member of a query or a sink that an older host may lack.
  template <class Function>
  Function* Offered(Function* function, const char* what) {
    if (function == nullptr)
      throw Failure(DTRUN_UNSUPPORTED, std::string("this dtrun takes no ") + what + "; upgrade dtrun");
    return function;
  }

  }  // namespace internal

  // Fills a caller's error, which may be null, and returns `code`. Allocates nothing.
  inline dtrun_status FillError(dtrun_error * out, dtrun_status code, std::string_view text, int peer = -1,
                                std::string_view vendor_domain = {}, std::int64_t vendor_code = 0) noexcept {
    dtrun_error_set_text(out, code, peer, text.data(), text.size());
    if (out != nullptr && !vendor_domain.empty()) {
      char domain[DTRUN_ERROR_DOMAIN_BYTES];
      internal::CopyCut(domain, sizeof domain, vendor_domain);
      dtrun_error_set_vendor(out, domain, vendor_code);
    }
    return code;
  }

  inline dtrun_status Failure::CopyTo(dtrun_error * out) const noexcept {
    return FillError(out, code_, what(), peer_, vendor_domain_, vendor_code_);
  }

  // Runs `body`, which returns a dtrun_status, and turns whatever it throws into a status
  // and a filled error. For code that writes C slots by hand.
  template <class Body>
  dtrun_status Guard(dtrun_error * err, Body && body) noexcept {
    try {
      return std::forward<Body>(body)();
    } catch (const Failure& failure) {
      return failure.CopyTo(err);
    } catch (const std::bad_alloc&) {
      return FillError(err, DTRUN_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) {
      return FillError(err, DTRUN_INTERNAL, error.what());
    } catch (...) {
      return FillError(err, DTRUN_INTERNAL, "the plugin threw something that is no std::exception");
    }
  }

  namespace internal {
  // Guard for a body that returns nothing.
  template <class Body>
  dtrun_status Do(dtrun_error* err, Body&& body) noexcept {
    return Guard(err, [&] {
      body();
      return dtrun_status{DTRUN_OK};
    });
  }
  }  // namespace internal

  // Makes an instance of a plugin's table, for hosts and tests. DTRUN_INTERNAL also if init reports success
  // without one.
  inline dtrun_status InitPlugin(const dtrun_plugin& table, const dtrun_host* host,
                                 const dtrun_options* options, dtrun_instance** out, dtrun_error* err) {
    dtrun_init_params params;
    DTRUN_INIT(params);
    params.host = host;
    params.options = options;
    *out = nullptr;
    const dtrun_status status = table.init(&params, out, err);
    if (status != DTRUN_OK || *out != nullptr) return status;
    return FillError(err, DTRUN_INTERNAL,
                     "init returned DTRUN_OK and left *out untouched; report it to the plugin's author");
  }

  // Runs `call(&error)` of the C ABI and throws what it reports.
  template <class Call>
  void Check(Call && call) {
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const dtrun_status status = std::forward<Call>(call)(&error);
    if (status != DTRUN_OK) throw Failure(error, status);
  }

}  // namespace v1
}  // namespace dtrun::sdk
