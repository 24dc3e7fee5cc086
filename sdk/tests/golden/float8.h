/* float8.h - arrays of e4m3 codes (OCP 8-bit floating point, revision 1.0) and their values. Pure. */
#ifndef DTRUN_GOLDEN_FLOAT8_H
#define DTRUN_GOLDEN_FLOAT8_H

#include <stdint.h>

enum { FLOAT8_MOST = 16 };

/* Of a code that is not NaN. */
static float float8_value(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  float value = exponent == 0 ? (float)mantissa / 8 / 64 : (1 + (float)mantissa / 8) / 128;
  int i;
  for (i = 0; i < exponent; ++i) value *= 2;
  return code & 0x80 ? -value : value;
}

/* `values` become those of the codes times `scale`. */
static const float* float8_decode(float* values, const void* codes, uint64_t count, double scale) {
  uint64_t i;
  for (i = 0; i < count; ++i) values[i] = float8_value(((const uint8_t*)codes)[i]) * (float)scale;
  return values;
}

/* `codes` become those that are nearest to the values over `scale`. */
static void float8_encode(void* codes, const float* values, uint64_t count, double scale) {
  uint64_t i;
  for (i = 0; i < count; ++i) {
    const float wanted = values[i] / (float)scale;
    float least = 1e30f;
    int code;
    for (code = 0; code < 256; ++code) {
      const float off = float8_value((uint8_t)code) - wanted, size = off < 0 ? -off : off;
      if ((code & 0x7f) == 0x7f || size >= least) continue; /* NaN */
      least = size;
      ((uint8_t*)codes)[i] = (uint8_t)code;
    }
  }
}

#endif
