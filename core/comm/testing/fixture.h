// A communicator of two ranks over the fake backend: for the communicator's own tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/comm/testing/fake_backend.h"

namespace dtrun::comm::testing {

class CommunicatorTest : public ::testing::Test {
 protected:
  virtual Making AMaking() {
    Making making;
    making.backend = Fake::Table();
    making.backend_name = "fake";
    making.name = "world";
    making.rank = 0;
    making.size = 2;
    making.timeout = std::chrono::seconds(5);
    making.report = [this](const Error& failure) {
      const std::lock_guard lock(reports_mutex_);
      reports_.push_back(std::string(failure.Id()) + " of " + std::to_string(failure.peer));
    };
    making.aborted = [this](std::string_view reason) { abort_reasons_.emplace_back(reason); };
    return making;
  }
  dtrun_comm& Comm() {
    if (comm_ == nullptr) comm_ = std::move(dtrun_comm::Create(AMaking())).value();
    return *comm_;
  }
  dtrun_op Op(std::int32_t kind = DTRUN_ALLREDUCE, std::uint64_t count = 2) {
    dtrun_op op;
    DTRUN_INIT(op);
    op.kind = kind;
    op.dtype = kind == DTRUN_BARRIER ? 0 : DTRUN_FLOAT32;
    op.reduce = kind == DTRUN_ALLREDUCE ? DTRUN_SUM : 0;
    op.root = -1;
    op.peer = sdk::IsCollective(kind) ? -1 : 1;
    op.send = kind == DTRUN_RECV ? nullptr : a_;
    op.recv = kind == DTRUN_SEND ? nullptr : b_;
    op.count = kind == DTRUN_BARRIER ? 0 : count;
    return op;
  }
  dtrun_status Run(dtrun_op op) {
    DTRUN_ERROR_INIT(error_);
    return Comm().Start(op, nullptr, &error_);
  }
  dtrun_work* Begin(dtrun_op op = {}) {
    if (op.kind == 0) op = Op();
    dtrun_work* work = nullptr;
    DTRUN_ERROR_INIT(error_);
    EXPECT_EQ(Comm().Start(op, &work, &error_), DTRUN_OK) << error_.message;
    return work;
  }

  // The code of a Status or Result, with the error in error_.
  template <class R>
  dtrun_status CodeOf(const R& result) {
    DTRUN_ERROR_INIT(error_);
    return result.ok() ? dtrun_status{DTRUN_OK} : result.error().CopyTo(&error_);
  }

  float a_[8] = {}, b_[8] = {};
  Fake fake_;
  std::mutex reports_mutex_;
  std::vector<std::string> reports_, abort_reasons_;
  dtrun_error error_{};
  std::unique_ptr<dtrun_comm> comm_;
};

}  // namespace dtrun::comm::testing
