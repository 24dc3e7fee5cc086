// plugin.hpp - the C++17 wrapper for authors of plugins: write classes, get the C tables.
//
// Header-only; everything is hidden, so two plugins with different wrappers never merge. Core owns the
// objects that the wrapper makes, and calls them by the threads that abi/backend.h, abi/launcher.h and
// abi/device.h name. An author derives from Backend, Communicator and Request (or Launcher, or Device), and
// defines the entry point:
//
//   class DemoRequest final : public dtrun::sdk::Request { ... };
//   class DemoCommunicator final : public dtrun::sdk::Communicator<DemoRequest> { ... };
//   class DemoBackend final : public dtrun::sdk::Backend<DemoCommunicator> {
//    public:
//     DemoBackend(const dtrun::sdk::Host& host, const dtrun::sdk::Options& options);
//     ...
//   };
//
//   DTRUN_SDK_PLUGIN(DemoBackend, "demo", "1.0", "me", "MIT", "collectives over my network")
//
// No exception leaves a slot: Failure keeps its code, everything else becomes
// DTRUN_INTERNAL with its text. An optional method that is not overridden becomes a NULL
// slot, and its capability bit is clear.
#pragma once

#include "dtrun/plugin/backend.hpp"   // IWYU pragma: export
#include "dtrun/plugin/deadline.hpp"  // IWYU pragma: export
#include "dtrun/plugin/device.hpp"    // IWYU pragma: export
#include "dtrun/plugin/entry.hpp"     // IWYU pragma: export
#include "dtrun/plugin/failure.hpp"   // IWYU pragma: export
#include "dtrun/plugin/launcher.hpp"  // IWYU pragma: export
#include "dtrun/plugin/options.hpp"   // IWYU pragma: export
#include "dtrun/plugin/services.hpp"  // IWYU pragma: export
