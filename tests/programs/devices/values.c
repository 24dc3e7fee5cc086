#include "values.h"

#include <stdint.h>
#include <string.h>

#include "dtrun/device.h"

static const char* const kTypeNames[] = {"",       "float16", "bfloat16",  "float32",   "float64", "int32",
                                         "int64",  "uint8",   "int8",      "int16",     "uint16",  "uint32",
                                         "uint64", "bool",    "complex64", "complex128"};
static const char* const kReductionNames[] = {"",           "sum",  "prod", "min",  "max",  "avg",
                                              "premul-sum", "band", "bor",  "bxor", "land", "lor"};
static const char* const kKindNames[] = {
    "",          "allreduce", "broadcast", "allgather", "reduce_scatter", "barrier",    "send",
    "recv",      "reduce",    "alltoall",  "gather",    "scatter",        "allgatherv", "reduce_scatterv",
    "alltoallv", "gatherv",   "scatterv"};

const char* type_name(int dtype) { return kTypeNames[dtype]; }
const char* reduction_name(int reduce) { return kReductionNames[reduce]; }
const char* kind_name(int kind) { return kKindNames[kind]; }

static int is_complex(int dtype) { return dtype == DTRUN_COMPLEX64 || dtype == DTRUN_COMPLEX128; }
static int is_floating(int dtype) { return dtype >= DTRUN_FLOAT16 && dtype <= DTRUN_FLOAT64; }

int is_defined(int dtype, int reduce) {
  switch (reduce) {
    case DTRUN_SUM:
    case DTRUN_PROD: return 1;
    case DTRUN_MIN:
    case DTRUN_MAX: return !is_complex(dtype);
    case DTRUN_AVG:
    case DTRUN_PREMUL_SUM: return is_floating(dtype) || is_complex(dtype);
    default: return !is_floating(dtype) && !is_complex(dtype);
  }
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* For numbers that fit 11 bits and are 0 or between 2^-14 and 2^15. */
static uint16_t half_of(float value) {
  const uint32_t bits = bits_of(value);
  if (value == 0) return 0;
  return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

static float from_half(uint16_t half) {
  const uint32_t exponent = half >> 10 & 0x1f;
  if ((half & 0x7fff) == 0) return 0;
  if (exponent == 0 || exponent == 31) return -1e30f; /* none that we write */
  return of_bits((uint32_t)(half & 0x8000) << 16 | (exponent + 112) << 23 | (uint32_t)(half & 0x3ff) << 13);
}

#define PUT(type, from)                                    \
  do {                                                     \
    const type element = (type)(from);                     \
    memcpy((type*)elements + i, &element, sizeof element); \
  } while (0)

void put(void* elements, size_t i, int dtype, double value, double imaginary) {
  switch (dtype) {
    case DTRUN_FLOAT16: PUT(uint16_t, half_of((float)value)); break;
    case DTRUN_BFLOAT16: PUT(uint16_t, bits_of((float)value) >> 16); break;
    case DTRUN_FLOAT32: PUT(float, value); break;
    case DTRUN_FLOAT64: PUT(double, value); break;
    case DTRUN_INT32:
    case DTRUN_UINT32: PUT(int32_t, value); break;
    case DTRUN_INT64:
    case DTRUN_UINT64: PUT(int64_t, value); break;
    case DTRUN_INT16:
    case DTRUN_UINT16: PUT(int16_t, value); break;
    case DTRUN_INT8:
    case DTRUN_UINT8: PUT(int8_t, value); break;
    case DTRUN_BOOL: PUT(int8_t, value != 0); break;
    case DTRUN_COMPLEX64:
      put(elements, 2 * i, DTRUN_FLOAT32, value, 0);
      put(elements, 2 * i + 1, DTRUN_FLOAT32, imaginary, 0);
      break;
    case DTRUN_COMPLEX128:
      put(elements, 2 * i, DTRUN_FLOAT64, value, 0);
      put(elements, 2 * i + 1, DTRUN_FLOAT64, imaginary, 0);
      break;
    default: break;
  }
}

static uint16_t half_at(const void* elements, size_t i) {
  uint16_t half;
  memcpy(&half, (const uint16_t*)elements + i, sizeof half);
  return half;
}

#define GET(type)                                                \
  do {                                                           \
    type element;                                                \
    memcpy(&element, (const type*)elements + i, sizeof element); \
    return (double)element;                                      \
  } while (0)

double get(const void* elements, size_t i, int dtype, int imaginary) {
  if (dtype == DTRUN_COMPLEX64) return get(elements, 2 * i + (imaginary != 0), DTRUN_FLOAT32, 0);
  if (dtype == DTRUN_COMPLEX128) return get(elements, 2 * i + (imaginary != 0), DTRUN_FLOAT64, 0);
  if (imaginary) return 0;
  switch (dtype) {
    case DTRUN_FLOAT16: return from_half(half_at(elements, i));
    case DTRUN_BFLOAT16: return of_bits((uint32_t)half_at(elements, i) << 16);
    case DTRUN_FLOAT32: GET(float);
    case DTRUN_FLOAT64: GET(double);
    case DTRUN_INT32: GET(int32_t);
    case DTRUN_UINT32: GET(uint32_t);
    case DTRUN_INT64: GET(int64_t);
    case DTRUN_UINT64: GET(uint64_t);
    case DTRUN_INT16: GET(int16_t);
    case DTRUN_UINT16: GET(uint16_t);
    case DTRUN_INT8: GET(int8_t);
    default: GET(uint8_t);
  }
}

static double combine(double a, double b, int dtype, int reduce) {
  switch (reduce) {
    case DTRUN_PROD: return a * b;
    case DTRUN_MIN: return a < b ? a : b;
    case DTRUN_MAX: return a > b ? a : b;
    case DTRUN_BAND: return dtype == DTRUN_BOOL ? a != 0 && b != 0 : (double)((int)a & (int)b);
    case DTRUN_BOR: return dtype == DTRUN_BOOL ? a != 0 || b != 0 : (double)((int)a | (int)b);
    case DTRUN_BXOR: return dtype == DTRUN_BOOL ? (a != 0) != (b != 0) : (double)((int)a ^ (int)b);
    case DTRUN_LAND: return a != 0 && b != 0;
    case DTRUN_LOR: return a != 0 || b != 0;
    default: return dtype == DTRUN_BOOL ? a != 0 || b != 0 : a + b;
  }
}

double reduced(const double* numbers, int count, int dtype, int reduce, double scale) {
  double total = numbers[0];
  for (int i = 1; i < count; ++i) total = combine(total, numbers[i], dtype, reduce);
  if (reduce == DTRUN_AVG) total /= count;
  if (reduce == DTRUN_PREMUL_SUM) total *= scale;
  if (reduce == DTRUN_LAND || reduce == DTRUN_LOR || dtype == DTRUN_BOOL) total = total != 0;
  return total;
}
