// Watches every connection of a mesh and says goodbye for this rank.
//
// Gloo does not report that a connection broke in the middle of a message. So one receive
// that nothing ever answers is posted on each connection: it fails when the connection
// does, and that fails the mesh. Owned by its Mesh; the thread is the only one that closes
// connections.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mesh.h"

namespace dtrun::gloo_plugin {

class Monitor {
 public:
  // Once constructed, this rank will hear of every connection's end.
  Monitor(const sdk::Host& host, Mesh& mesh);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void Start();
  // Tells the peers that this rank leaves without a failure, unless the mesh has failed.
  // Idempotent; the destructor does it too.
  void Stop();
  // The mesh has failed: tell the peers why and close. Any thread.
  void Wake();

 private:
  void Run();
  // False when a connection has failed.
  bool Arm();
  bool Wait();
  void CheckConnections();
  void SayGoodbye();

  const sdk::Host host_;
  Mesh& mesh_;
  std::vector<bool> gone_;  // peers that left properly; the thread's
  std::mutex mutex_;        // guards the pointer, not what it points at
  std::shared_ptr<::gloo::transport::UnboundBuffer> alarm_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace dtrun::gloo_plugin
