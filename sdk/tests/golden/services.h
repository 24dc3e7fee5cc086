/* services.h - a host of one rank: memory, and a key-value space that never has to wait. One thread. */
#ifndef DTRUN_GOLDEN_SERVICES_H
#define DTRUN_GOLDEN_SERVICES_H

#include "dtrun/abi.h"
#include "sized.h"

enum { ENTRIES = 64, LONGEST = 256 };

struct entry {
  char key[LONGEST], value[LONGEST];
  uint64_t key_bytes, value_bytes;
};
static struct entry entries[ENTRIES];
static size_t entry_count;

static void* allocate(const dtrun_host* host, uint64_t bytes, uint64_t alignment) {
  (void)host;
  (void)alignment;
  return malloc(bytes == 0 ? 1 : (size_t)bytes);
}

static void release(const dtrun_host* host, void* memory) {
  (void)host;
  free(memory);
}

static struct entry* find(dtrun_string key) {
  size_t i;
  for (i = 0; i < entry_count; ++i) {
    if (entries[i].key_bytes == key.size && memcmp(entries[i].key, key.data, (size_t)key.size) == 0)
      return &entries[i];
  }
  return NULL;
}

static dtrun_status set(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, const void* value,
                        uint64_t bytes, dtrun_error* err) {
  struct entry* entry = find(key);
  (void)host;
  (void)kv;
  (void)err;
  REQUIRE(key.size <= LONGEST && bytes <= LONGEST && entry_count < ENTRIES);
  if (entry == NULL) entry = &entries[entry_count++];
  memcpy(entry->key, key.data, (size_t)key.size);
  entry->key_bytes = key.size;
  memcpy(entry->value, value, (size_t)bytes);
  entry->value_bytes = bytes;
  return DTRUN_OK;
}

static dtrun_status try_get(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, void** out_value,
                            uint64_t* out_bytes, dtrun_error* err) {
  const struct entry* entry = find(key);
  (void)kv;
  if (entry == NULL) return dtrun_error_set(err, DTRUN_NOT_FOUND, -1, "no such key");
  *out_value = allocate(host, entry->value_bytes, 8);
  memcpy(*out_value, entry->value, (size_t)entry->value_bytes);
  *out_bytes = entry->value_bytes;
  return DTRUN_OK;
}

static dtrun_status get(const dtrun_host* host, dtrun_kv* kv, dtrun_string key, int64_t timeout_ns,
                        void** out_value, uint64_t* out_bytes, dtrun_error* err) {
  const dtrun_status status = try_get(host, kv, key, out_value, out_bytes, err);
  (void)timeout_ns;
  return status == DTRUN_NOT_FOUND ? dtrun_error_set(err, DTRUN_TIMEOUT, -1, "nobody else could set it")
                                   : status;
}

static dtrun_status wait_many(const dtrun_host* host, dtrun_kv* kv, const dtrun_string* keys,
                              uint64_t key_count, int64_t timeout_ns, dtrun_error* err) {
  uint64_t i;
  (void)host;
  (void)kv;
  (void)timeout_ns;
  for (i = 0; i < key_count; ++i) {
    if (find(keys[i]) == NULL) return dtrun_error_set(err, DTRUN_TIMEOUT, -1, "nobody else could set it");
  }
  return DTRUN_OK;
}

static int table_delta; /* of the services' own tables */

static const void* get_service(const dtrun_host* host, const char* id) {
  (void)host;
  if (strcmp(id, DTRUN_MEMORY_SERVICE) == 0) {
    dtrun_memory_service table;
    DTRUN_INIT(table);
    table.allocate = allocate;
    table.release = release;
    return SIZED(table, table_delta);
  }
  if (strcmp(id, DTRUN_KV_SERVICE) == 0) {
    dtrun_kv_service table;
    DTRUN_INIT(table);
    table.set = set;
    table.get = get;
    table.try_get = try_get;
    table.wait_many = wait_many;
    return SIZED(table, table_delta);
  }
  if (strcmp(id, DTRUN_OPTIONS_SERVICE) == 0) { /* for plugins without options */
    dtrun_options_service table;
    DTRUN_INIT(table);
    return SIZED(table, table_delta);
  }
  return NULL;
}

#endif
