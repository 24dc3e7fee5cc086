// dtrun/plugin/collectives.hpp - every collective over a Messenger, by the host's "dtrun.collectives/1".
//
// Not part of plugin.hpp. The same Messenger as for algorithms::RunCollective (dtrun/algorithms.hpp), but no
// library is linked: the host has the algorithms. Owned by a communicator, and closed before its Messenger.
// Run: one thread at a time.
#pragma once

#include "dtrun/algorithms.hpp"
#include "dtrun/plugin/services.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  class Collectives {
   public:
    Collectives(const Host& host, algorithms::Messenger& messenger)
        : host_(host.raw()), table_(host.Get<dtrun_collectives_service>(DTRUN_COLLECTIVES_SERVICE)) {
      dtrun_messenger given;
      DTRUN_INIT(given);
      given.context = &messenger;
      given.rank = messenger.rank();
      given.size = messenger.size();
      given.send = &Send;
      given.recv = &Recv;
      given.wait = &Wait;
      given.cancel = [](void* context) { Of(context).Cancel(); };
      Check([&](dtrun_error* e) { return table_->open(host_, &given, &opened_, e); });
    }
    ~Collectives() { table_->close(host_, opened_); }
    Collectives(const Collectives&) = delete;
    Collectives& operator=(const Collectives&) = delete;

    // As algorithms::RunCollective.
    void Run(const dtrun_op& op) const {
      Check([&](dtrun_error* e) { return table_->run(host_, opened_, &op, e); });
    }

   private:
    static algorithms::Messenger& Of(void* context) { return *static_cast<algorithms::Messenger*>(context); }
    static dtrun_status Send(void* context, std::int32_t peer, const void* data, std::uint64_t bytes,
                             dtrun_message** out, dtrun_error* err) noexcept {
      return internal::Do(err,
                          [&] { *out = static_cast<dtrun_message*>(Of(context).Send(peer, data, bytes)); });
    }
    static dtrun_status Recv(void* context, std::int32_t peer, void* data, std::uint64_t bytes,
                             dtrun_message** out, dtrun_error* err) noexcept {
      return internal::Do(err,
                          [&] { *out = static_cast<dtrun_message*>(Of(context).Recv(peer, data, bytes)); });
    }
    static dtrun_status Wait(void* context, dtrun_message* message, dtrun_error* err) noexcept {
      return internal::Do(err, [&] { Of(context).Wait(message); });
    }

    const dtrun_host* host_;
    const dtrun_collectives_service* table_;
    dtrun_collectives* opened_ = nullptr;
  };

}  // namespace v1
}  // namespace dtrun::sdk
