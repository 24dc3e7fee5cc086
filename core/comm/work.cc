#include "core/comm/work.h"

#include "core/comm/handle_memory.h"

namespace {
using WorkMemory = dtrun::comm::HandleMemory<dtrun_work, 256>;
}

void* dtrun_work::operator new(std::size_t) { return WorkMemory::New(); }
void dtrun_work::operator delete(void* work) { WorkMemory::Delete(work); }
bool dtrun_work::IsHeld(dtrun_work* work) { return WorkMemory::IsHeld(work); }
