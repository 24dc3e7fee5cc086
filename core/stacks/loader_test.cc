#include <gtest/gtest.h>

#include "core/stacks/place.h"

namespace dtrun::stacks {
namespace {

constexpr char kLoader[] = "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py";
constexpr char kWorker[] = "/usr/lib/python3/dist-packages/torch/utils/data/_utils/worker.py";
constexpr char kFetch[] = "/usr/lib/python3/dist-packages/torch/utils/data/_utils/fetch.py";
constexpr char kQueues[] = "/usr/lib/python3.11/multiprocessing/queues.py";

std::string NoSource(const std::string&, int) { return {}; }

TEST(WaitsForLoader, WhereABatchIsAwaited) {
  EXPECT_TRUE(WaitsForLoader({{"/usr/lib/python3.11/selectors.py", "_PollLikeSelector.select", 415},
                              {kQueues, "Queue.get", 113},
                              {kLoader, "_MultiProcessingDataLoaderIter._try_get_data", 1120},
                              {kLoader, "_BaseDataLoaderIter.__next__", 628},
                              {"/home/u/train.py", "<module>", 40}}));
  EXPECT_FALSE(WaitsForLoader({{kFetch, "_MapDatasetFetcher.fetch", 58},
                               {kLoader, "_SingleProcessDataLoaderIter._next_data", 671},
                               {kLoader, "_BaseDataLoaderIter.__next__", 628},
                               {"/home/u/train.py", "<module>", 40}}));
}

TEST(PlaceInWorker, IsTheProgramsLineInsideTheWorkersLoop) {
  // Forked: the outer frames are the rank's.
  const std::vector<Frame> rank = {{"/usr/lib/python3.11/multiprocessing/process.py", "BaseProcess.run", 108},
                                   {kLoader, "_MultiProcessingDataLoaderIter.__init__", 1042},
                                   {"/home/u/train.py", "<module>", 40}};
  std::vector<Frame> works = {{"/home/u/data.py", "Shards.__getitem__", 6},
                              {kFetch, "_MapDatasetFetcher.fetch", 58},
                              {kWorker, "_worker_loop", 302}};
  works.insert(works.end(), rank.begin(), rank.end());
  ASSERT_TRUE(PlaceInWorker(works, NoSource));
  EXPECT_EQ(PlaceInWorker(works, NoSource)->where, "data.py:6");
  std::vector<Frame> idle = {{kQueues, "Queue.get", 113}, {kWorker, "_worker_loop", 275}};
  idle.insert(idle.end(), rank.begin(), rank.end());
  EXPECT_FALSE(PlaceInWorker(idle, NoSource));
  EXPECT_TRUE(IsWorker(idle));
  EXPECT_FALSE(PlaceInWorker(rank, NoSource));
  EXPECT_FALSE(IsWorker(rank));
}

}  // namespace
}  // namespace dtrun::stacks
