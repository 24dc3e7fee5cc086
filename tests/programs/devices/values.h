/* Numbers as elements of every type, and what a reduction makes of them.
 *
 * The numbers are small, so that every type and every sum holds them exactly. Pure functions.
 */
#ifndef DTRUN_TESTS_VALUES_H
#define DTRUN_TESTS_VALUES_H

#include <stddef.h>

enum { kFirstType = 1, kTypes = 15, kFirstReduction = 1, kReductions = 11, kFirstKind = 1, kKinds = 16 };

const char* type_name(int dtype);
const char* reduction_name(int reduce);
const char* kind_name(int kind);

/* Whether types.h defines the reduction for the type. */
int is_defined(int dtype, int reduce);

/* Writes `value` as element `i`; a complex number has `imaginary` too. */
void put(void* elements, size_t i, int dtype, double value, double imaginary);
/* The real part of element `i`, or its imaginary one. */
double get(const void* elements, size_t i, int dtype, int imaginary);

/* Of `count` numbers; `scale` is PREMUL_SUM's. */
double reduced(const double* numbers, int count, int dtype, int reduce, double scale);

#endif
