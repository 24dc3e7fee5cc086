// wrapped.hpp - a backend that this one stands on, opened by the host with its own options.
//
// Made in the constructor of a backend, where its options are at hand; ends after the communicators of both.
// dtrun/abi/services.h says what a wrapper owes the backend below.
#pragma once

#include "dtrun/abi/services.h"
#include "dtrun/plugin/options.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  class Wrapped {
   public:
    // The one that the option `key` names, which has DTRUN_OPTION_BACKEND.
    Wrapped(const Host& host, const dtrun_options* options, const char* key)
        : host_(host.raw()), service_(host.Get<dtrun_plugins_service>(DTRUN_PLUGINS_SERVICE)) {
      Check([&](dtrun_error* e) { return service_->open(host_, options, key, &opened_, e); });
    }
    ~Wrapped() { service_->close(host_, opened_); }
    Wrapped(const Wrapped&) = delete;
    Wrapped& operator=(const Wrapped&) = delete;

    const char* name() const { return opened_->plugin->name; }
    const dtrun_backend& table() const { return *opened_->plugin->backend; }
    dtrun_instance* instance() const { return opened_->instance; }
    const dtrun_wrapped* raw() const { return opened_; }

   private:
    const dtrun_host* host_;
    const dtrun_plugins_service* service_;
    const dtrun_wrapped* opened_ = nullptr;
  };

}  // namespace v1
}  // namespace dtrun::sdk
