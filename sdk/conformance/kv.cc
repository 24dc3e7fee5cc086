#include "kv.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "fill_error.h"

namespace dtrun::conformance {

void ThreadKv::Set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::optional<std::string> ThreadKv::TryGet(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

bool ThreadKv::Erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return values_.erase(key) > 0;
}

bool ThreadKv::Update(const std::string& key, Change change, void* context) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  const auto next = change(found == values_.end() ? std::nullopt : std::optional(found->second), context);
  if (!next) return false;
  values_[key] = *next;
  changed_.notify_all();
  return true;
}

bool ThreadKv::WaitFor(const std::vector<std::string>& keys, Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] {
    for (const std::string& key : keys) {
      if (values_.count(key) == 0) return false;
    }
    return true;
  });
}

void ThreadKv::Clear() {
  const std::lock_guard lock(mutex_);
  values_.clear();
}

FolderKv::FolderKv(std::string folder) : folder_(std::move(folder)) {
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    throw std::runtime_error("cannot make '" + folder_ + "': " + std::strerror(errno));
  }
}

std::string FolderKv::Path(const std::string& key) const {
  constexpr std::size_t kBytesOfAName = 100;  // NAME_MAX allows 127; a key has up to 1024
  std::string name = folder_ + "/";
  for (std::size_t i = 0; i < key.size(); ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(key[i]));
    name += hex;
    if ((i + 1) % kBytesOfAName == 0) name += "+/";  // no key is a folder, too
  }
  return name + "=";
}

void FolderKv::Set(const std::string& key, const std::string& value) {
  const std::string path = Path(key);
  for (std::size_t at = path.find("+/"); at != path.npos; at = path.find("+/", at + 1))
    mkdir(path.substr(0, at + 1).c_str(), 0700);
  std::ostringstream part;
  part << path << "." << getpid() << "." << std::this_thread::get_id();
  std::ofstream(part.str(), std::ios::binary) << value;
  std::rename(part.str().c_str(), path.c_str());
}

std::optional<std::string> FolderKv::TryGet(const std::string& key) {
  std::ifstream file(Path(key), std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool FolderKv::Erase(const std::string& key) { return std::remove(Path(key).c_str()) == 0; }

bool FolderKv::Update(const std::string& key, Change change, void* context) {
  const int lock = open((folder_ + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) std::abort();
  const auto next = change(TryGet(key), context);
  if (next) Set(key, *next);
  close(lock);
  return next.has_value();
}

bool FolderKv::WaitFor(const std::vector<std::string>& keys, Deadline deadline) {
  for (const std::string& key : keys) {
    while (access(Path(key).c_str(), F_OK) != 0) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return true;
}

namespace {

std::string Text(dtrun_string text) { return std::string(text.data == nullptr ? "" : text.data, text.size); }

dtrun_kv::Deadline DeadlineOf(std::int64_t timeout_ns) {
  // A limit even without one, so that a defect ends a test instead of hanging it.
  const auto left = timeout_ns < 0 ? std::chrono::nanoseconds(std::chrono::minutes(5))
                                   : std::chrono::nanoseconds(timeout_ns);
  return std::chrono::steady_clock::now() + left;
}

constexpr std::size_t kMaxKeyBytes = DTRUN_KV_MAX_KEY_BYTES, kMaxValueBytes = DTRUN_KV_MAX_VALUE_BYTES;

// What a key-value space takes (H5): DTRUN_OK, or fills `err` and returns its code.
struct Limits {
  dtrun_kv* kv;
  dtrun_error* err;

  dtrun_status Refuse(dtrun_status code, const std::string& text) const { return FillError(err, code, text); }
  dtrun_status Key(dtrun_string key) const {
    if (kv == nullptr)
      return Refuse(DTRUN_FAILED_PRECONDITION, "no key-value space here; one comes with dtrun_comm_params");
    if (key.size == 0 || key.data == nullptr) return Refuse(DTRUN_INVALID_ARGUMENT, "the key is empty");
    if (key.size <= kMaxKeyBytes) return DTRUN_OK;
    return Refuse(DTRUN_INVALID_ARGUMENT, "the key has " + std::to_string(key.size) + " bytes, at most " +
                                              std::to_string(kMaxKeyBytes) + " are allowed");
  }
  dtrun_status Value(const void* value, std::uint64_t bytes) const {
    if (bytes > 0 && value == nullptr) return Refuse(DTRUN_INVALID_ARGUMENT, "the value is a null pointer");
    if (bytes <= kMaxValueBytes) return DTRUN_OK;
    return Refuse(DTRUN_INVALID_ARGUMENT, "the value has " + std::to_string(bytes) + " bytes, at most " +
                                              std::to_string(kMaxValueBytes) + " are allowed");
  }
};

std::string Bytes(const void* value, std::uint64_t bytes) {
  return bytes == 0 ? std::string() : std::string(static_cast<const char*>(value), bytes);
}

dtrun_status Give(const std::string& value, void** out, std::uint64_t* bytes) {
  *out = std::malloc(value.size() + 1);
  std::memcpy(*out, value.c_str(), value.size() + 1);
  *bytes = value.size();
  return DTRUN_OK;
}

dtrun_status Set(const dtrun_host*, dtrun_kv* kv, dtrun_string key, const void* value, std::uint64_t bytes,
                 dtrun_error* err) {
  const Limits limits{kv, err};
  if (const dtrun_status status = limits.Key(key); status != DTRUN_OK) return status;
  if (const dtrun_status status = limits.Value(value, bytes); status != DTRUN_OK) return status;
  kv->Set(Text(key), Bytes(value, bytes));
  return DTRUN_OK;
}

dtrun_status Vain(const InVain& why, dtrun_error* err) {
  return dtrun_error_set_text(err, DTRUN_REMOTE_FAILURE, why.peer, why.text.data(), why.text.size());
}

// Waits in steps, because it may be in vain.
dtrun_status AwaitKeys(dtrun_kv* kv, const std::vector<std::string>& keys, std::int64_t timeout_ns,
                       const std::string& late, dtrun_error* err) {
  constexpr std::chrono::milliseconds kStep{20};
  const dtrun_kv::Deadline deadline = DeadlineOf(timeout_ns);
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    if (kv->WaitFor(keys, std::min<dtrun_kv::Deadline>(deadline, now + kStep))) return DTRUN_OK;
    if (const auto why = WhyInVain(kv->Making())) return Vain(*why, err);
    if (std::chrono::steady_clock::now() >= deadline) return FillError(err, DTRUN_TIMEOUT, late);
  }
}

dtrun_status TryGet(const dtrun_host*, dtrun_kv* kv, dtrun_string key, void** out, std::uint64_t* bytes,
                    dtrun_error* err) {
  if (const dtrun_status status = Limits{kv, err}.Key(key); status != DTRUN_OK) return status;
  if (const auto value = kv->TryGet(Text(key))) return Give(*value, out, bytes);
  if (const auto why = WhyInVain(kv->Making())) return Vain(*why, err);
  return FillError(err, DTRUN_NOT_FOUND, "no key '" + Text(key) + "'");
}

dtrun_status Get(const dtrun_host*, dtrun_kv* kv, dtrun_string key, std::int64_t timeout_ns, void** out,
                 std::uint64_t* bytes, dtrun_error* err) {
  if (const dtrun_status status = Limits{kv, err}.Key(key); status != DTRUN_OK) return status;
  const dtrun_status came = AwaitKeys(kv, {Text(key)}, timeout_ns, "no key '" + Text(key) + "' in time", err);
  if (came != DTRUN_OK) return came;
  return TryGet(nullptr, kv, key, out, bytes, err);
}

dtrun_status Add(const dtrun_host*, dtrun_kv* kv, dtrun_string key, std::int64_t amount, std::int64_t* sum,
                 dtrun_error* err) {
  if (const dtrun_status status = Limits{kv, err}.Key(key); status != DTRUN_OK) return status;
  struct Context {
    std::int64_t amount;
    std::int64_t sum;
  } context{amount, 0};
  const bool added = kv->Update(
      Text(key),
      [](const std::optional<std::string>& now, void* raw) -> std::optional<std::string> {
        auto* const add = static_cast<Context*>(raw);
        const std::string text = now.value_or("0");
        std::int64_t before = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), before);
        if (problem != std::errc() || end != text.data() + text.size() ||
            __builtin_add_overflow(before, add->amount, &add->sum))
          return std::nullopt;
        return std::to_string(add->sum);
      },
      &context);
  if (!added) return FillError(err, DTRUN_INVALID_ARGUMENT, "key '" + Text(key) + "' is no counter");
  *sum = context.sum;
  return DTRUN_OK;
}

dtrun_status CompareSet(const dtrun_host*, dtrun_kv* kv, dtrun_string key, const void* expected,
                        std::uint64_t expected_bytes, const void* desired, std::uint64_t desired_bytes,
                        std::int32_t* swapped, dtrun_error* err) {
  const Limits limits{kv, err};
  if (const dtrun_status status = limits.Key(key); status != DTRUN_OK) return status;
  for (const dtrun_status status :
       {limits.Value(expected, expected_bytes), limits.Value(desired, desired_bytes)}) {
    if (status != DTRUN_OK) return status;
  }
  struct Context {
    std::optional<std::string> expected;
    std::string desired;
  } context;
  if (expected != nullptr) context.expected = Bytes(expected, expected_bytes);
  context.desired = Bytes(desired, desired_bytes);
  *swapped = kv->Update(
                 Text(key),
                 [](const std::optional<std::string>& now, void* raw) -> std::optional<std::string> {
                   const auto* const swap = static_cast<Context*>(raw);
                   if (now != swap->expected) return std::nullopt;
                   return swap->desired;
                 },
                 &context)
                 ? 1
                 : 0;
  return DTRUN_OK;
}

dtrun_status Erase(const dtrun_host*, dtrun_kv* kv, dtrun_string key, std::int32_t* existed,
                   dtrun_error* err) {
  if (const dtrun_status status = Limits{kv, err}.Key(key); status != DTRUN_OK) return status;
  *existed = kv->Erase(Text(key)) ? 1 : 0;
  return DTRUN_OK;
}

dtrun_status WaitMany(const dtrun_host*, dtrun_kv* kv, const dtrun_string* keys, std::uint64_t count,
                      std::int64_t timeout_ns, dtrun_error* err) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const dtrun_status status = Limits{kv, err}.Key(keys[i]); status != DTRUN_OK) return status;
    names.push_back(Text(keys[i]));
  }
  return AwaitKeys(kv, names, timeout_ns, "not all keys came in time", err);
}

void* Allocate(const dtrun_host*, std::uint64_t bytes, std::uint64_t alignment) {
  void* memory = nullptr;
  const bool usable = alignment >= sizeof(void*) && (alignment & (alignment - 1)) == 0;
  if (!usable || posix_memalign(&memory, alignment, std::max<std::uint64_t>(bytes, 1)) != 0) return nullptr;
  return memory;
}

void Release(const dtrun_host*, void* memory) { std::free(memory); }

dtrun_status OpenPart(const dtrun_host*, dtrun_kv* kv, dtrun_string prefix, const std::int32_t* ranks,
                      std::uint64_t rank_count, dtrun_kv** out, dtrun_error* err) {
  if (const dtrun_status status = Limits{kv, err}.Key(prefix); status != DTRUN_OK) return status;
  auto part = std::make_unique<PartKv>(kv, Text(prefix));
  if (ranks != nullptr) part->ranks.assign(ranks, ranks + rank_count);
  part->quiet = ranks == nullptr;
  *out = part.release();
  return DTRUN_OK;
}

void ClosePart(const dtrun_host*, dtrun_kv* part) { delete part; }

}  // namespace

namespace {
constexpr char kInVain[] = "suite/in vain";
}

void SetInVain(dtrun_kv& kv, const InVain& why) {
  kv.Set(kInVain, std::to_string(why.peer) + " " + why.text);
}

std::optional<InVain> WhyInVain(dtrun_kv& kv) {
  const auto told = kv.TryGet(kInVain);
  if (!told) return std::nullopt;
  const std::size_t space = told->find(' ');
  return InVain{std::stoi(told->substr(0, space)), told->substr(space + 1)};
}

const dtrun_kv_service* KvService() {
  static const dtrun_kv_service service{sizeof(dtrun_kv_service),
                                        0,
                                        &Set,
                                        &Get,
                                        &TryGet,
                                        &Add,
                                        &CompareSet,
                                        &Erase,
                                        &WaitMany,
                                        &OpenPart,
                                        &ClosePart};
  return &service;
}

const dtrun_memory_service* MemoryService() {
  static const dtrun_memory_service service{sizeof(dtrun_memory_service), 0, &Allocate, &Release};
  return &service;
}

}  // namespace dtrun::conformance
