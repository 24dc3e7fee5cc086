#include "wiring.h"

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <utility>
#include <vector>

#include "addresses.h"
#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::gloo_plugin {
namespace {

std::shared_ptr<::gloo::transport::Device> MakeDevice(const std::string& address) {
  const sdk::BlockSignals block;  // the device starts a thread
  ::gloo::transport::tcp::attr attributes;
  attributes.hostname = address;
  return ::gloo::transport::tcp::CreateDevice(attributes);
}

}  // namespace

// A context with pairs that this plugin connects.
class Wiring::Wired : public ::gloo::Context {
 public:
  Wired(int own_rank, int ranks, std::shared_ptr<::gloo::transport::Device> device,
        std::chrono::milliseconds timeout)
      : ::gloo::Context(own_rank, ranks) {
    setTimeout(timeout);
    device_ = std::move(device);
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(timeout);  // that of the pairs
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) transportContext_->createPair(peer);
    }
  }
};

Wiring::Wiring(int rank, int size, const interfaces::Interface& interface, std::chrono::milliseconds timeout)
    : context_(std::make_shared<Wired>(rank, size, MakeDevice(ListenAddress(interface, rank)), timeout)) {}

std::string Wiring::Addresses() const {
  std::vector<std::string> addresses;
  for (int peer = 0; peer < context_->size; ++peer) {
    // There is no pair with oneself; any other keeps its place.
    const int shown = peer != context_->rank ? peer : peer == 0 ? 1 : 0;
    const std::vector<char> bytes = context_->getPair(shown)->address().bytes();
    addresses.emplace_back(bytes.begin(), bytes.end());
  }
  return PackAddresses(addresses);
}

void Wiring::Connect(int peer, const std::string& theirs) {
  const std::string address = UnpackAddress(theirs, static_cast<std::size_t>(context_->rank));
  context_->getPair(peer)->connect({address.begin(), address.end()});
}

std::shared_ptr<::gloo::Context> Wiring::context() const { return context_; }

}  // namespace dtrun::gloo_plugin
