/* elements.h - the element types and reductions of backend.c, as doubles: exact for the values of the suite.
 */
#ifndef DTRUN_BROKEN_ELEMENTS_H
#define DTRUN_BROKEN_ELEMENTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "dtrun/abi/types.h"
#include "faults.h"

static size_t element_bytes(int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT64:
    case DTRUN_INT64: return 8;
    case DTRUN_FLOAT32:
    case DTRUN_INT32: return 4;
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16: return 2;
    default: return 1;
  }
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double read_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25));
}

static uint16_t write_half(double value) {
  const uint16_t sign = signbit(value) != 0 ? 0x8000 : 0;
  int exponent;
  double magnitude = fabs(value);
  if (isnan(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  frexp(magnitude, &exponent);
  if (magnitude == 0 || exponent < -13) return sign | (uint16_t)nearbyint(ldexp(magnitude, 24));
  magnitude = nearbyint(ldexp(magnitude, 11 - exponent)); /* 1024 to 2048 */
  return sign | (uint16_t)((exponent + 13) * 1024 + (int)magnitude);
}

static uint16_t write_bfloat(double value) {
  const uint32_t bits = bits_of((float)value);
  if (isnan(value)) return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define READ_AS(type)                 \
  {                                   \
    type value;                       \
    memcpy(&value, at, sizeof value); \
    return (double)value;             \
  }

static double read_element(int32_t dtype, const void* buffer, uint64_t index) {
  const char* const at = (const char*)buffer + index * element_bytes(dtype);
  uint16_t half;
  switch (dtype) {
    case DTRUN_FLOAT64: READ_AS(double)
    case DTRUN_FLOAT32: READ_AS(float)
    case DTRUN_INT64: READ_AS(int64_t)
    case DTRUN_INT32: READ_AS(int32_t)
    case DTRUN_FLOAT16: memcpy(&half, at, 2); return read_half(half);
    case DTRUN_BFLOAT16: memcpy(&half, at, 2); return float_of((uint32_t)half << 16);
    default: READ_AS(uint8_t)
  }
}

static void write_element(int32_t dtype, void* buffer, uint64_t index, double value) {
  char* const at = (char*)buffer + index * element_bytes(dtype);
  const float as_float = (float)value;
  const uint16_t half = dtype == DTRUN_FLOAT16 ? write_half(value) : write_bfloat(value);
  switch (dtype) {
    case DTRUN_FLOAT64: memcpy(at, &value, 8); break;
    case DTRUN_FLOAT32: memcpy(at, &as_float, 4); break;
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16: memcpy(at, &half, 2); break;
    default: {
      int64_t whole = (int64_t)value; /* its low bytes, as sums wrap; little endian */
      if (FAULT(SUMS_SATURATE) && dtype == DTRUN_INT32 && whole > INT32_MAX) whole = INT32_MAX;
      if (FAULT(SUMS_SATURATE) && dtype == DTRUN_UINT8 && whole > UINT8_MAX) whole = UINT8_MAX;
      memcpy(at, &whole, element_bytes(dtype));
    }
  }
}

static int is_whole(int32_t dtype) {
  return !FAULT(WHOLE_AS_DOUBLE) && !FAULT(SUMS_SATURATE) &&
         (dtype == DTRUN_INT64 || dtype == DTRUN_INT32 || dtype == DTRUN_UINT8);
}

static int64_t read_whole(int32_t dtype, const void* buffer, uint64_t index) {
  const char* const at = (const char*)buffer + index * element_bytes(dtype);
  int64_t value;
  int32_t half;
  if (dtype == DTRUN_UINT8) return *(const uint8_t*)at;
  if (dtype == DTRUN_INT32) return memcpy(&half, at, 4), half;
  return memcpy(&value, at, 8), value;
}

static int64_t combine_whole(int32_t reduce, int64_t a, int64_t b) {
  if (reduce == DTRUN_PROD) return (int64_t)((uint64_t)a * (uint64_t)b);
  if (reduce == DTRUN_SUM) return (int64_t)((uint64_t)a + (uint64_t)b);
  return (reduce == DTRUN_MIN) == (a < b) ? a : b;
}

static double combine(int32_t dtype, int32_t reduce, double a, double b) {
  if ((FAULT(SUMS_AS_BFLOAT) || FAULT(SOUND_LOSSY)) && dtype == DTRUN_FLOAT32 && reduce == DTRUN_SUM)
    return float_of((uint32_t)write_bfloat(a) << 16) + float_of((uint32_t)write_bfloat(b) << 16);
  if (reduce == DTRUN_PROD) return a * b;
  if (reduce == DTRUN_SUM || reduce == DTRUN_AVG || reduce == DTRUN_PREMUL_SUM) return a + b;
  if (FAULT(LOSES_NAN) && dtype == DTRUN_BFLOAT16 && reduce == DTRUN_MAX) return fmax(a, b);
  if (isnan(a) || isnan(b)) return NAN;
  return (reduce == DTRUN_MIN) == (a < b) ? a : b;
}

#endif
