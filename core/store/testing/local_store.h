// For tests: a store server on its own thread, in a new folder.
//
// One thread creates and destroys it; any thread may call Connect.
#pragma once

#include <stdlib.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/store/client.h"
#include "core/store/server.h"

namespace dtrun::store::testing {

// The server's events in order: "joined 0", "left 1", "report 0: comm.timeout of 3".
class EventLog {
 public:
  Events Hooks() {
    return {[this](int rank) { Add("joined " + std::to_string(rank)); },
            [this](int rank) { Add("left " + std::to_string(rank)); },
            [this](int rank, const Report& report) {
              std::string members;
              for (const int member : report.members) members += " among " + std::to_string(member);
              Add("report " + std::to_string(rank) + ": " + std::string(report.failure.Id()) + " of " +
                  std::to_string(report.failure.peer) + members);
            },
            [this](int rank, const Metrics& metrics) {
              for (const Metric& metric : metrics.values) {
                Add("rank " + std::to_string(rank) + ": " + metric.name + " " + std::to_string(metric.value) +
                    (metric.step ? " at " + std::to_string(*metric.step) : ""));
              }
            }};
  }
  std::vector<std::string> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  void Add(std::string entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  mutable std::mutex mutex_;
  std::vector<std::string> entries_;
};

class LocalStore {
 public:
  explicit LocalStore(std::uint64_t generation = 0) {
    char name[] = "/tmp/dtrun-store-XXXXXX";
    folder_ = ::mkdtemp(name);
    address_ = {folder_ / "store", NewJobKey(), generation, 0};
    server_ = std::make_unique<Server>(address_.job_key, generation, events_.Hooks());
    Result<std::unique_ptr<Listener>> listener = Listener::Listen(
        loop_, address_.socket, [this](Socket client) { server_->Serve(std::move(client)); });
    if (!listener) std::abort();
    listener_ = *std::move(listener);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~LocalStore() {
    Stop();
    std::filesystem::remove_all(folder_);
  }

  // Stops the server, as if the agent died.
  void Stop() {
    if (!thread_.joinable()) return;
    loop_.stop();
    thread_.join();
    listener_.reset();
    server_.reset();
  }

  Address AddressOf(int rank) const {
    Address address = address_;
    address.rank = rank;
    return address;
  }
  std::shared_ptr<Client> Connect(int rank = 0) const {
    Result<std::shared_ptr<Client>> client = Client::Connect(AddressOf(rank));
    if (!client) std::abort();
    return *std::move(client);
  }
  const EventLog& events() const { return events_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  boost::asio::io_context loop_;
  EventLog events_;
  std::filesystem::path folder_;
  Address address_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

}  // namespace dtrun::store::testing
