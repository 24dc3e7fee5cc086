#include "core/agent/mpi_service.h"

#include "core/agent/spawn.h"

namespace dtrun::agent {

static_assert(pmi::kRankDescriptor == kExtraDescriptor);

Status MpiService::Begin(const pmi::Job& job) {
  serves_ = job.kind != pmi::Kind::kNone;
  if (!serves_) return {};
  if (server_ == nullptr) {
    pmi::Events events;
    events.offered = [this](pmi::Part part) { emit_(Offered{std::move(part)}); };
    events.started = [this](int rank) { emit_(MpiStarted{rank}); };
    events.finished = [this](int rank) { emit_(MpiFinished{rank}); };
    events.aborted = [this](int rank, int code, const std::string& message) {
      emit_(MpiAborted{rank, code, message});
    };
    events.said = [this](int rank, const std::string& text) {
      emit_(Output{rank, output::Stream::kErr, text});
    };
    Result<std::unique_ptr<pmi::Server>> made = pmi::MakeServer(job, loop_, folders_, std::move(events));
    if (!made) return made.error();
    server_ = *std::move(made);
  }
  return server_->Begin(job);
}

Result<pmi::Admission> MpiService::Admit(const plan::Process& process) {
  if (!serves_) return pmi::Admission();
  for (int rank = process.rank + process.rank_count - 1; rank > process.rank; --rank) {
    if (Result<pmi::Admission> other = server_->Admit(rank); !other) return other;
  }
  return server_->Admit(process.rank);
}

void MpiService::Complete(const Exchanged& exchanged) {
  if (server_ == nullptr) return;
  if (exchanged.error.empty()) return server_->Complete(exchanged.exchange, exchanged.bytes);
  server_->Complete(exchanged.exchange, Error{DTRUN_ABORTED, exchanged.error});
}

void MpiService::End() {
  if (server_ != nullptr) server_->End();
}

}  // namespace dtrun::agent
