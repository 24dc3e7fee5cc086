#include <memory>

#include "arguments.h"
#include "dtrun/algorithms.hpp"
#include "services.h"

namespace dtrun::services {
namespace {

class PluginMessenger final : public algorithms::Messenger {
 public:
  explicit PluginMessenger(const dtrun_messenger& table) : table_(table) {}

  int rank() const override { return table_.rank; }
  int size() const override { return table_.size; }

  Message Send(int peer, const void* data, std::size_t bytes) override {
    dtrun_message* message = nullptr;
    CheckAnswer("dtrun_messenger.send",
                [&](dtrun_error* e) { return table_.send(table_.context, peer, data, bytes, &message, e); });
    return message;
  }
  Message Recv(int peer, void* data, std::size_t bytes) override {
    dtrun_message* message = nullptr;
    CheckAnswer("dtrun_messenger.recv",
                [&](dtrun_error* e) { return table_.recv(table_.context, peer, data, bytes, &message, e); });
    return message;
  }
  void Wait(Message message) override {
    CheckAnswer("dtrun_messenger.wait", [&](dtrun_error* e) {
      return table_.wait(table_.context, static_cast<dtrun_message*>(message), e);
    });
  }
  void Cancel() noexcept override { table_.cancel(table_.context); }

 private:
  const dtrun_messenger table_;
};

PluginMessenger* ToMessenger(dtrun_collectives* handle) { return reinterpret_cast<PluginMessenger*>(handle); }

dtrun_status OpenCollectives(const dtrun_host*, const dtrun_messenger* given, dtrun_collectives** out,
                             dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(out, "out");
    const dtrun_messenger table = Read(given, "the messenger");
    RequireRank(table.rank, table.size, "dtrun_messenger.rank");
    Require(reinterpret_cast<const void*>(table.send), "dtrun_messenger.send");
    Require(reinterpret_cast<const void*>(table.recv), "dtrun_messenger.recv");
    Require(reinterpret_cast<const void*>(table.wait), "dtrun_messenger.wait");
    Require(reinterpret_cast<const void*>(table.cancel), "dtrun_messenger.cancel");
    *out = reinterpret_cast<dtrun_collectives*>(new PluginMessenger(table));
    return dtrun_status{DTRUN_OK};
  });
}

dtrun_status RunCollective(const dtrun_host*, dtrun_collectives* collectives, const dtrun_op* given,
                           dtrun_error* err) {
  return sdk::Guard(err, [&] {
    Require(collectives, "the dtrun_collectives");
    PluginMessenger& messenger = *ToMessenger(collectives);
    const dtrun_op op = Read(given, "the operation");
    RequireCollective(op, messenger.rank(), messenger.size());
    algorithms::RunCollective(messenger, op);
    return dtrun_status{DTRUN_OK};
  });
}

void CloseCollectives(const dtrun_host*, dtrun_collectives* collectives) { delete ToMessenger(collectives); }

}  // namespace

const dtrun_collectives_service* Collectives() {
  static constexpr dtrun_collectives_service kService{sizeof(dtrun_collectives_service), 0, &OpenCollectives,
                                                      &RunCollective, &CloseCollectives};
  return &kService;
}

}  // namespace dtrun::services
