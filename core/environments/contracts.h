// The dialects' writers (frameworks.cc, platforms.cc), registered in dialect.cc. Pure; any thread.
#pragma once

#include "core/environments/dialect.h"

namespace dtrun::environments {

Contract WriteAccelerate(const RankTable& table, int rank);
Contract WriteAzureMl(const RankTable& table, int rank);
Contract WriteDeepSpeed(const RankTable& table, int rank);
Contract WriteGcp(const RankTable& table, int rank);
Contract WriteHorovod(const RankTable& table, int rank);
Contract WriteJax(const RankTable& table, int rank);
Contract WriteKubeflowV1(const RankTable& table, int rank);
Contract WriteKubeflowV2(const RankTable& table, int rank);
Contract WriteLightning(const RankTable& table, int rank);
Contract WriteMpich(const RankTable& table, int rank);
Contract WriteOpenMpi(const RankTable& table, int rank);
Contract WriteSlurm(const RankTable& table, int rank);
Contract WriteSpark(const RankTable& table, int rank);
Contract WriteTfConfig(const RankTable& table, int rank);
Contract WriteTorchrun(const RankTable& table, int rank);
Contract WriteVertex(const RankTable& table, int rank);

int AzureMlPort(int hosts);

}  // namespace dtrun::environments
