// The operations that cases start most.
#include "subject.h"

namespace dtrun::conformance {

bool Has(std::uint64_t mask, std::int32_t value) {
  return value >= 0 && value < 64 && (mask >> value & 1) != 0;
}

dtrun_op MakeOp(std::int32_t kind) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.root = -1;
  op.peer = -1;
  op.timeout_ns = -1;
  return op;
}

dtrun_op AllreduceOp(const void* send, void* recv, std::uint64_t count, std::int32_t dtype,
                     std::int32_t reduce) {
  dtrun_op op = MakeOp(DTRUN_ALLREDUCE);
  op.send = send;
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  op.reduce = reduce;
  return op;
}

dtrun_op SendOp(const void* send, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag) {
  dtrun_op op = MakeOp(DTRUN_SEND);
  op.send = send;
  op.count = count;
  op.dtype = dtype;
  op.peer = peer;
  op.tag = tag;
  return op;
}

dtrun_op RecvOp(void* recv, std::uint64_t count, std::int32_t dtype, int peer, std::uint32_t tag) {
  dtrun_op op = MakeOp(DTRUN_RECV);
  op.recv = recv;
  op.count = count;
  op.dtype = dtype;
  op.peer = peer;
  op.tag = tag;
  return op;
}

}  // namespace dtrun::conformance
