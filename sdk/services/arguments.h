// Argument checks of the services for a plugin's calls; core does not see these calls. Pure
// functions; any thread.
#pragma once

#include <string>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/op.hpp"
#include "dtrun/plugin/services.hpp"

namespace dtrun::services {

// If `pointer` is null, throws sdk::Failure that names `what`.
inline void Require(const void* pointer, const char* what) {
  if (pointer == nullptr)
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, std::string(what) + " is a null pointer");
}

// A full-size copy. Throws if the struct is missing or has flags that require support; none are defined here.
template <class T>
T Read(const T* given, const char* what) {
  Require(given, what);
  const T copy = sdk::internal::ReadStruct(given);
  if ((copy.flags & DTRUN_FLAGS_MUST_UNDERSTAND) == 0) return copy;
  throw sdk::Failure(DTRUN_UNSUPPORTED, std::string(what) + " has flags " + std::to_string(copy.flags) +
                                            " that this dtrun does not know; upgrade dtrun");
}

// Calls `ask(&error)` of the plugin's `member` and throws its failure. It must not return "pending".
template <class Ask>
void CheckAnswer(const char* member, Ask&& ask) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_status status = ask(&error);
  if (status == DTRUN_OK) return;
  if (status > DTRUN_PENDING && status <= DTRUN_MISMATCH) throw sdk::Failure(error, status);
  throw sdk::Failure(DTRUN_INTERNAL, std::string("the plugin's ") + member + " returned status " +
                                         std::to_string(status) + "; return DTRUN_OK or a failure");
}

inline void RequireRank(int rank, int size, const char* what) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT, std::string(what) + " is " + std::to_string(rank) + " of " +
                                                   std::to_string(size) + " ranks");
  }
}

inline void RequireMeaning(std::int32_t dtype, std::int32_t reduce) {
  if (kernels::Supports(dtype, reduce)) return;
  throw sdk::Failure(DTRUN_UNSUPPORTED, "'" + std::string(sdk::ReductionName(reduce)) + "' (" +
                                            std::to_string(reduce) +
                                            ") has no meaning for elements of type '" + sdk::TypeName(dtype) +
                                            "' (" + std::to_string(dtype) + ")");
}

// Checks that a communicator of `size` ranks can run the collective, without looking at its buffers.
inline void RequireCollective(const dtrun_op& op, int rank, int size) {
  if (!sdk::IsKnown(op.kind)) {
    throw sdk::Failure(DTRUN_UNSUPPORTED, "unknown operation: kind " + std::to_string(op.kind));
  }
  const std::string_view name = sdk::OperationName(op.kind);
  if (!sdk::IsCollective(op.kind)) {
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                       std::string(name) + " is a message, no collective; give it to your transport");
  }
  if (op.kind != DTRUN_BARRIER && kernels::ElementBytes(op.dtype) == 0) {
    throw sdk::Failure(DTRUN_UNSUPPORTED,
                       std::string(name) + ": unknown element type " + std::to_string(op.dtype));
  }
  if (sdk::IsReduction(op.kind)) RequireMeaning(op.dtype, op.reduce);
  if (sdk::IsRooted(op.kind)) RequireRank(op.root, size, "the root");
  const sdk::Form& form = sdk::FormOf(op.kind);
  const auto used = [&](sdk::On on) { return on == sdk::On::kEveryRank || rank == op.root; };
  if (form.send == sdk::Shape::kSendParts && used(form.send_on))
    Require(op.send_counts, "dtrun_op.send_counts");
  const bool receives_parts = form.recv == sdk::Shape::kRecvParts && used(form.recv_on);
  if (receives_parts || form.send == sdk::Shape::kRecvParts) Require(op.recv_counts, "dtrun_op.recv_counts");
}

}  // namespace dtrun::services
