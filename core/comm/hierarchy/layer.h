// A communicator of one layer: some ranks of the whole one, joined by the local engine or the wire.
//
// Calls a backend table; its exceptions name ranks by their numbers in the whole communicator. Owned by
// HierarchyCommunicator. Start and Do belong to the thread that runs calls; the rest: any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/comm/hierarchy/ending.h"
#include "core/comm/shm/group.h"
#include "dtrun/plugin/backend.hpp"

namespace dtrun::comm {

class Layer;

// An operation of a layer in flight. Dropping it before Wait ends the communicator: its call did not
// complete, so the others cannot either.
class Step {
 public:
  Step(Layer& layer, dtrun_request* request) : layer_(&layer), request_(request) {}
  Step(Step&& other) noexcept : layer_(other.layer_), request_(std::exchange(other.request_, nullptr)) {}
  Step& operator=(Step&& other) noexcept {
    std::swap(layer_, other.layer_);
    std::swap(request_, other.request_);
    return *this;
  }
  ~Step();
  void Wait();

 private:
  Layer* layer_;
  dtrun_request* request_;
};

class Layer {
 public:
  struct Place {
    std::string name;        // for messages of the layer itself
    std::vector<int> ranks;  // of the whole communicator, this process's included
    int hosts = 1;
    dtrun_kv* kv = nullptr;
    // All calls go to this layer, and it fails by its own rules.
    bool sole = false;
    // How much longer than the caller's limit this layer waits, so that the rank that sees the culprit
    // reports first.
    std::chrono::nanoseconds grace{0};
  };
  // Collective over the ranks. Throws sdk::Failure.
  Layer(const dtrun_backend& table, dtrun_instance* instance, Place place, const sdk::CommParams& whole,
        shm::Deadline& deadline, Ending& ending);
  ~Layer() { table_.comm_destroy(comm_); }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  int size() const { return static_cast<int>(place_.ranks.size()); }
  dtrun_backend_comm* raw() const { return comm_; }

  // Starts `op` as this layer's next call; what is left of `deadline` replaces its timeout.
  Step Start(dtrun_op op, shm::Deadline& deadline);
  void Do(const dtrun_op& op, shm::Deadline& deadline) { Start(op, deadline).Wait(); }
  // The user's own operation, unchanged.
  std::unique_ptr<sdk::Request> Forward(const dtrun_op& op, const dtrun_stream* stream);

  void Abort(const std::string& reason);
  void Snapshot(const sdk::SnapshotSink& sink);
  void* Alloc(const dtrun_mem_params& params);
  void Free(void* memory) { table_.mem_free(comm_, memory); }
  // If the table supports it.
  void Register(const dtrun_mem_params& params, void* memory);
  void Deregister(void* memory) {
    if (table_.mem_deregister != nullptr) table_.mem_deregister(comm_, memory);
  }

  const dtrun_backend& table() const { return table_; }
  Ending& ending() { return ending_; }
  // Throws the layer's error as the communicator's failure.
  [[noreturn]] void Throw(dtrun_status status, const dtrun_error& error);

 private:
  const dtrun_backend& table_;
  const Place place_;
  Ending& ending_;
  dtrun_backend_comm* comm_ = nullptr;
  std::uint64_t calls_ = 0;
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::uint64_t> bytes_{0};  // operands of the steps
  std::atomic<bool> reported_{false};
};

// A layer's failure as one of the whole communicator. The backend's text keeps its numbers, and says at its
// end which rank of the whole it speaks of.
sdk::Failure InWhole(dtrun_status status, const dtrun_error& error, const Layer::Place& place);

}  // namespace dtrun::comm
