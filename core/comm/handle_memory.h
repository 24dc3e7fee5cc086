// Memory of the objects behind the handles of the C API. It tells a handle that a program uses after its end.
//
// Never returned to the system, as a program may use such a handle at any time: it is reused when kKept
// others have been deleted. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>

namespace dtrun::comm {

template <class T, std::size_t kKept>
class HandleMemory {
 public:
  // For T's operators new and delete.
  static void* New() {
    Deleted& deleted = All();
    {
      const std::lock_guard lock(deleted.mutex);
      if (deleted.slots.size() > kKept) {
        Slot* const slot = deleted.slots.front();
        deleted.slots.pop_front();
        slot->held = true;
        return slot->object;
      }
    }
    return (new Slot)->object;
  }
  static void Delete(void* object) {
    Slot* const slot = SlotOf(object);
    slot->held = false;
    Deleted& deleted = All();
    const std::lock_guard lock(deleted.mutex);
    deleted.slots.push_back(slot);
  }
  // False once the object is deleted.
  static bool IsHeld(const void* object) { return SlotOf(const_cast<void*>(object))->held; }

 private:
  struct Slot {
    std::atomic<bool> held{true};
    alignas(T) std::byte object[sizeof(T)];
  };
  struct Deleted {
    std::mutex mutex;
    std::deque<Slot*> slots;  // oldest first
  };

  static Deleted& All() {
    static auto* const deleted = new Deleted;
    return *deleted;
  }
  static Slot* SlotOf(void* object) {
    return reinterpret_cast<Slot*>(static_cast<std::byte*>(object) - offsetof(Slot, object));
  }
};

}  // namespace dtrun::comm
