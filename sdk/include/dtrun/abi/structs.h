/* structs.h - reading and filling structs of which the other side chose the size, in C.
 *
 * A struct of a caller may be shorter than the one that these headers know, and longer: rules S2 and S3 of
 * docs/abi.md. A plugin that only reads first members of a struct needs none of this. Pure; any thread.
 */
#ifndef DTRUN_ABI_STRUCTS_H
#define DTRUN_ABI_STRUCTS_H

#include "dtrun/abi/base.h"

/* Makes `full`, of `bytes` bytes, a copy of `given`; what `given` lacks is zero. */
static inline void dtrun_struct_read(void* full, size_t bytes, const void* given) {
  uint32_t size;
  uint32_t mine = (uint32_t)bytes;
  memcpy(&size, given, sizeof size);
  memset(full, 0, bytes);
  memcpy(full, given, size < bytes ? size : bytes);
  memcpy(full, &mine, sizeof mine);
}

/* Fills a caller's struct from `full`, of `bytes` bytes, as far as the caller's goes; struct_size stays. */
static inline void dtrun_struct_write(void* given, const void* full, size_t bytes) {
  uint32_t size;
  memcpy(&size, given, sizeof size);
  if (size < bytes) bytes = size;
  if (bytes > sizeof size)
    memcpy((char*)given + sizeof size, (const char*)full + sizeof size, bytes - sizeof size);
}

#endif
