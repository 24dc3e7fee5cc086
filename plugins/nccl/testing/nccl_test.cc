// The nccl plugin over the fake libraries: everything a backend must do is inherited.
#include "dtrun/abi.h"
#include "sdk/conformance/backend_suite.h"

namespace dtrun::nccl_test {
namespace {

constexpr const char* kThreads = "the fake's ranks are threads; core names a killed process";
constexpr const char* kNoTags = "nccl's messages have no tags; message_test.cc has the case without";

const conformance::BackendUnderTest kBackend{
    .plugin = NCCL_PLUGIN_FILE,
    .options = {{"library", FAKE_NCCL_FILE}, {"cuda_library", FAKE_CUDART_FILE}},
    .worlds = {1, 2, 3, 4, 7},
    .skips = {
        {"Plugin.StartsNoThreadThatTakesSignals", "the fake libraries have threads of their own"},
        {"Plugin.OffersMessages", "its profile is device collectives: it moves no memory of the host"},
        {"Plugin.OffersCollectives",
         "nccl has no bitwise and logical reductions; element_test.cc has the table"},
        {"Messages.ThatCrossDoNotBlock", "nccl's sends wait for their receivers unless they are grouped"},
        {"Messages.ThatAreLateHoldUpNothing", "nccl's operations of one communicator wait for one another"},
        {"Messages.MayBeWaitedForBySeveralThreads", "its barrier would wait for the receive before it"},
        {"Messages.AreNotTakenByCollectives", kNoTags},
        {"Messages.AreToldApartByTag", kNoTags},
        {"Messages.OfOneTagKeepTheirOrder", kNoTags},
        {"Messages.OfManySmallCallsArrive", kNoTags},
        {"Messages.ThatAreCompleteOutliveTheirSender", kNoTags},
        {"Messages.ReachARankThatWasStopped", kThreads},
        {"Requests.OfMessagesStartWithoutReceives", kNoTags},
        {"Requests.OfMessagesStartWhileAPeerIsStopped", kThreads},
        {"Communicators.OfSomeRanksWorkBesideThatOfAll", kNoTags},
        {"Communicators.KeepTheirTagsApart", kNoTags},
        {"Communicators.NumberTheirRanks", kNoTags},
        {"Communicators.NumberTheirRanksInProcesses", kThreads},
        {"Groups.CompleteAsAWhole", kNoTags},
        {"Memory.MayBeRegistered", "it sends with a tag; memory_test.cc has the case without"},
        {"Failures.EndAMessageThatNobodyAnswers", kNoTags},
        {"Failures.EndABlockingMessageThatNobodyAnswers", kNoTags},
        {"Failures.DoNotFollowARankThatIsDone", kNoTags},
        {"Failures.EndWhatWaitsForARankThatHasFailed", kNoTags},
        {"Failures.EndWhatWaitsForARankThatLeaves", kNoTags},
        {"Failures.EndALargeSendThatNobodyReceives", kNoTags},
        {"Failures.WriteNothingAfterTheyWereReported", kNoTags},
        {"Failures.NameARankThatWasKilled", kThreads},
        {"Faults.NameARankThatDiesWhileItJoins", kThreads},
        {"Faults.NameARankThatDiesBetweenCalls", kThreads},
        {"Faults.NameARankThatDiesWhileItLeaves", kThreads},
        {"Faults.NameARankThatDiesInAPart", kThreads},
        {"Faults.LeaveTheOthersACommunicator", kThreads},
        {"Faults.EndACallWithARankThatStops", kThreads},
        {"Faults.EndAMessageOfARankThatStops", kThreads},
        {"Faults.WaitForARankThatIsSlow", kThreads},
    }};

const bool kRegistered = conformance::RegisterBackendSuite(kBackend);

}  // namespace
}  // namespace dtrun::nccl_test
