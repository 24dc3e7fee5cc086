// How the parts of the suite register their cases.
//
// Used while static objects are made, by the main thread.
#pragma once

#include <functional>
#include <string>

#include "subject.h"

namespace dtrun::conformance {

// Registers one case; `body` gets a freshly loaded subject. `rule`: the ids of docs/abi.md that it proves,
// such as "C4, F2"; a literal, which sdk/tests/abi_rules_test.py reads.
using Body = std::function<void(const Subject&)>;
void AddCase(const std::string& suite, const std::string& name, const std::string& rule,
             const BackendUnderTest& backend, const Body& body);
// The same for a case that loads the plugin itself, a launcher or a device; `body` throws what it cannot go
// on after.
void AddCase(const std::string& suite, const std::string& name, const std::string& rule,
             const BackendUnderTest& plugin, const std::function<void()>& body);

// On both ranks of two: a message, and collectives where there are any.
void MakeSomeCalls(const Subject& subject, Rank& rank);

void AddCallerCases(const BackendUnderTest& backend);
void AddCapabilityCases(const BackendUnderTest& backend);
void AddCollectiveCases(const BackendUnderTest& backend);
void AddAccuracyCases(const BackendUnderTest& backend);
void AddExactCases(const BackendUnderTest& backend);
void AddSizeCases(const BackendUnderTest& backend);
void AddRandomCases(const BackendUnderTest& backend);
void AddRequestCases(const BackendUnderTest& backend);
void AddWaitCases(const BackendUnderTest& backend);
void AddPointToPointCases(const BackendUnderTest& backend);
void AddDeliveryCases(const BackendUnderTest& backend);
void AddCommunicatorCases(const BackendUnderTest& backend);
void AddFailureCases(const BackendUnderTest& backend);
void AddPeerCases(const BackendUnderTest& backend);
void AddStoppedCases(const BackendUnderTest& backend);
void AddFaultCases(const BackendUnderTest& backend);
void AddPartCases(const BackendUnderTest& backend);
void AddTraceCases(const BackendUnderTest& backend);
void AddPluginCases(const BackendUnderTest& backend);
void AddMemoryCases(const BackendUnderTest& backend);
void AddStructCases(const BackendUnderTest& backend);
void AddFlagCases(const BackendUnderTest& backend);
// Of plugins of any kind.
void AddLoadCases(const BackendUnderTest& plugin);
void AddLauncherCases(const BackendUnderTest& launcher);
void AddHostsCases(const BackendUnderTest& launcher);
void AddDeviceCases(const BackendUnderTest& device);
void AddStreamCases(const BackendUnderTest& device);

}  // namespace dtrun::conformance
