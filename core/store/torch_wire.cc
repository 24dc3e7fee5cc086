#include "core/store/torch_wire.h"


#include <cstring>
#include <iterator>
#include <utility>

namespace dtrun::store {
namespace {

constexpr std::uint32_t kMagic = 0x3C85F7CE;
// Consumed bytes that may stay at the front before the buffer is compacted.
constexpr std::size_t kKeptBytes = 64 << 10;

// The parameters of an op: fixed fields or a counted list, and a number.
struct Layout {
  std::size_t fields = 0;
  bool counted = false;
  bool pairs = false;
  std::size_t number_bytes = 0;
};

Layout LayoutOf(TorchOp op) {
  switch (op) {
    case TorchOp::kSet:
    case TorchOp::kAppend:
    case TorchOp::kQueuePush: return {.fields = 2};
    case TorchOp::kCompareSet: return {.fields = 3};
    case TorchOp::kGet:
    case TorchOp::kDeleteKey:
    case TorchOp::kQueuePop:
    case TorchOp::kQueueLen:
    case TorchOp::kWatchKey: return {.fields = 1};
    case TorchOp::kAdd:
    case TorchOp::kBarrier: return {.fields = 1, .number_bytes = 8};
    case TorchOp::kCheck:
    case TorchOp::kWait:
    case TorchOp::kMultiGet: return {.counted = true};
    case TorchOp::kMultiSet: return {.counted = true, .pairs = true};
    case TorchOp::kValidate:
    case TorchOp::kPing: return {.number_bytes = 4};
    case TorchOp::kNumKeys:
    case TorchOp::kCancelWait:
    case TorchOp::kListKeys: break;
  }
  return {};
}

// Whether the key is followed by values rather than more keys.
bool HasValues(TorchOp op) {
  return op == TorchOp::kSet || op == TorchOp::kCompareSet || op == TorchOp::kAppend ||
         op == TorchOp::kQueuePush;
}

// Before torch 2.1: no kValidate, and kWatchKey in the middle.
std::optional<TorchOp> PlainOp(std::uint8_t op) {
  constexpr TorchOp kOps[] = {
      TorchOp::kSet,      TorchOp::kCompareSet, TorchOp::kGet,       TorchOp::kAdd,       TorchOp::kCheck,
      TorchOp::kWait,     TorchOp::kNumKeys,    TorchOp::kWatchKey,  TorchOp::kDeleteKey, TorchOp::kAppend,
      TorchOp::kMultiGet, TorchOp::kMultiSet,   TorchOp::kCancelWait};
  if (op >= std::size(kOps)) return std::nullopt;
  return kOps[op];
}

std::optional<TorchOp> ValidatedOp(std::uint8_t op) {
  if (op == 0 || op > static_cast<std::uint8_t>(TorchOp::kBarrier)) return std::nullopt;
  return static_cast<TorchOp>(op);
}

}  // namespace

void TorchReader::Append(std::string_view bytes) {
  if (at_ == bytes_.size() || at_ >= kKeptBytes) {
    bytes_.erase(0, at_);
    at_ = 0;
    if (bytes_.empty() && bytes_.capacity() > kKeptBytes) bytes_.shrink_to_fit();
  }
  bytes_ += bytes;
}

bool TorchReader::Read(void* to, std::size_t size) {
  if (left() < size) return false;
  std::memcpy(to, bytes_.data() + at_, size);
  at_ += size;
  return true;
}

// A request of the older protocol with the same beginning as VALIDATE would set a key of a gigabyte.
bool TorchReader::ReadHello() {
  if (left() == 0) return false;
  protocol_ = Protocol::kPlain;
  if (bytes_[at_] != 0) return true;
  std::uint32_t magic = 0;
  if (left() < 1 + sizeof magic) {
    protocol_ = Protocol::kUnknown;
    return false;
  }
  std::memcpy(&magic, bytes_.data() + at_ + 1, sizeof magic);
  if (magic != kMagic) return true;
  protocol_ = Protocol::kValidated;
  at_ += 1 + sizeof magic;
  return true;
}

Status TorchReader::Begin(std::uint8_t byte) {
  const auto op = protocol_ == Protocol::kPlain ? PlainOp(byte) : ValidatedOp(byte);
  if (!op) return Error::Of(DTRUN_INVALID_ARGUMENT, "it sent request {}, which torch does not have", byte);
  const Layout layout = LayoutOf(*op);
  request_ = TorchRequest{.op = *op, .fields = {}};
  counted_ = layout.counted;
  pairs_ = layout.pairs;
  fields_left_ = layout.fields;
  number_bytes_ = layout.number_bytes;
  announced_ = kept_ = 0;
  return {};
}

Result<std::optional<TorchRequest>> TorchReader::Next() {
  constexpr std::optional<TorchRequest> kMore;
  if (protocol_ == Protocol::kUnknown && !ReadHello()) return kMore;
  if (!request_) {
    std::uint8_t op = 0;
    if (!Read(&op, 1)) return kMore;
    if (Status begun = Begin(op); !begun) return begun.error();
  }
  if (counted_) {
    std::uint64_t count = 0;
    if (!Read(&count, sizeof count)) return kMore;
    if (count > kMaxTorchKeys) {
      return Error::Of(DTRUN_INVALID_ARGUMENT, "it sent {} keys at once; allowed are {}", count,
                       kMaxTorchKeys);
    }
    fields_left_ = pairs_ ? 2 * count : count;
    counted_ = false;
  }
  for (; fields_left_ > 0; --fields_left_) {
    const std::size_t done = request_->fields.size();
    const bool is_key = pairs_ ? done % 2 == 0 : done == 0 || !HasValues(request_->op);
    if (!field_size_) {
      std::uint64_t size = 0;
      if (!Read(&size, sizeof size)) return kMore;
      const std::size_t limit = is_key ? kMaxTorchKeyBytes : kMaxTorchValueBytes;
      if (size > limit) {
        return Error::Of(DTRUN_INVALID_ARGUMENT, "it sent a {} of {} bytes; allowed are {}",
                         is_key ? "key" : "value", size, limit);
      }
      announced_ += size + sizeof size;
      if (announced_ > kMaxTorchRequestBytes) {
        return Error::Of(DTRUN_INVALID_ARGUMENT, "it sent a request of more than {} bytes",
                         kMaxTorchRequestBytes);
      }
      field_size_ = size;
    }
    if (left() < *field_size_) return kMore;
    request_->fields.emplace_back(bytes_, at_, *field_size_);
    at_ += *field_size_;
    kept_ += *field_size_ + sizeof *field_size_;
    field_size_.reset();
  }
  if (number_bytes_ == 8) {
    if (!Read(&request_->number, 8)) return kMore;
  } else if (number_bytes_ == 4) {
    std::uint32_t number = 0;
    if (!Read(&number, 4)) return kMore;
    request_->number = number;
  }
  announced_ = kept_ = 0;
  return std::exchange(request_, std::nullopt);
}

}  // namespace dtrun::store
