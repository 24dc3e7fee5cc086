/* sized.h - structs of another size than these headers have, as a host of another minor hands them over.
 *
 * A copy ends where a page begins that nobody may touch, so whoever reads or writes behind struct_size
 * crashes. What it has beyond these headers are bytes that only its owner knows. Copies live as long as the
 * process.
 */
#ifndef DTRUN_GOLDEN_SIZED_H
#define DTRUN_GOLDEN_SIZED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CANARY = 0xa5 };

/* Ends the program, with the words of what does not hold. */
static void require(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: not so: %s\n", line, what);
  exit(1);
}
#define REQUIRE(condition) require((condition) ? 1 : 0, #condition, __LINE__)

static void* before_a_guard(size_t bytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t room = (bytes + page - 1) / page * page;
  char* pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(mprotect(pages + room, page, PROT_NONE) == 0);
  return pages + room - bytes;
}

/* `count` copies of objects of `bytes` each, `delta` bytes longer. */
static void* sized_array(const void* objects, size_t count, size_t bytes, int delta) {
  const size_t size = (size_t)((long)bytes + delta);
  char* copies = before_a_guard(count * size);
  size_t i;
  memset(copies, CANARY, count * size);
  for (i = 0; i < count; ++i) {
    const uint32_t struct_size = (uint32_t)size;
    memcpy(copies + i * size, (const char*)objects + i * bytes, size < bytes ? size : bytes);
    memcpy(copies + i * size, &struct_size, sizeof struct_size);
  }
  return copies;
}

#define SIZED(object, delta) sized_array(&(object), 1, sizeof(object), (delta))

/* Whether the callee has kept the size, and what lies beyond these headers. */
static int is_kept(const void* copy, size_t bytes, int delta) {
  uint32_t struct_size;
  int i;
  memcpy(&struct_size, copy, sizeof struct_size);
  if (struct_size != (uint32_t)((long)bytes + delta)) return 0;
  for (i = 0; i < delta; ++i) {
    if (((const unsigned char*)copy)[bytes + (size_t)i] != CANARY) return 0;
  }
  return 1;
}

#endif
