#include "core/comm/work.h"

#include <cstddef>
#include <deque>
#include <mutex>
#include <new>

namespace {

// This many handles are released before the memory of one is reused.
constexpr std::size_t kKept = 256;

struct Slot {
  std::atomic<bool> held{true};
  alignas(dtrun_work) std::byte work[sizeof(dtrun_work)];
};

// Released ones, oldest first. Never freed: a program may use one of them at any time.
struct Released {
  std::mutex mutex;
  std::deque<Slot*> slots;
};

Released& AllReleased() {
  static auto* const released = new Released;
  return *released;
}

Slot* SlotOf(void* work) {
  return reinterpret_cast<Slot*>(static_cast<std::byte*>(work) - offsetof(Slot, work));
}

}  // namespace

void* dtrun_work::operator new(std::size_t) {
  Released& released = AllReleased();
  {
    const std::lock_guard lock(released.mutex);
    if (released.slots.size() > kKept) {
      Slot* const slot = released.slots.front();
      released.slots.pop_front();
      slot->held = true;
      return slot->work;
    }
  }
  return (new Slot)->work;
}

void dtrun_work::operator delete(void* work) {
  Slot* const slot = SlotOf(work);
  slot->held = false;
  Released& released = AllReleased();
  const std::lock_guard lock(released.mutex);
  released.slots.push_back(slot);
}

bool dtrun_work::IsHeld(dtrun_work* work) { return SlotOf(work)->held; }
