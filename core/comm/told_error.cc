#include "core/comm/told_error.h"

#include <utility>

#include "core/base/encoding.h"
#include "dtrun/abi/host.h"

namespace dtrun::comm {

std::string EncodeError(const Error& error) {
  Encoder encoder;
  ErrorFields(encoder, error, DTRUN_KV_MAX_VALUE_BYTES);
  return std::move(encoder).Payload();
}

Error DecodeError(std::string_view told) {
  Decoder decoder(told);
  Error error;
  ErrorFields(decoder, error, DTRUN_KV_MAX_VALUE_BYTES);
  if (Status whole = decoder.Finish("answer of a rank"); !whole) return std::move(whole).error();
  return error;
}

}  // namespace dtrun::comm
