// The element types of `dtrun bench`, and small whole numbers encoded in them.
//
// Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::bench {

enum class Form { kInteger, kFloat16, kBfloat16, kFloat32, kFloat64 };

struct Element {
  const char* name;
  std::int32_t dtype;  // DTRUN_FLOAT32, ...
  std::uint32_t size;
  Form form;
};

Result<Element> ParseElement(std::string_view name);
// "float32, ...", for help and errors.
std::string ElementNames();

// Writes the non-negative `value` to `to`. Integers wrap; 16-bit floats lose bits that do not fit.
void Encode(const Element& element, int value, void* to);
// Integers are decoded as unsigned, so wrapped values compare equal.
double Decode(const Element& element, const void* from);

}  // namespace dtrun::bench
