#include "core/pmi/libpmix/pmix_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

namespace dtrun::pmi {

Status DescribeJob(const PmixLibrary& library, const Job& job, const Folders& folders, PmixInfo* info) {
  const JobHost& here = job.host();
  std::vector<std::string> names, ranks_of;
  for (const JobHost& host : job.hosts) {
    std::vector<int> ranks;
    for (int i = 0; i < host.local_size; ++i) ranks.push_back(host.first_rank + i);
    names.push_back(host.name);
    ranks_of.push_back(fmt::format("{}", fmt::join(ranks, ",")));
  }
  char *node_map = nullptr, *process_map = nullptr;
  pmix_status_t status = library.generate_regex(fmt::format("{}", fmt::join(names, ",")).c_str(), &node_map);
  if (status == PMIX_SUCCESS) {
    status = library.generate_ppn(fmt::format("{}", fmt::join(ranks_of, ";")).c_str(), &process_map);
  }
  if (status == PMIX_SUCCESS) {
    const auto size = static_cast<std::uint32_t>(job.size());
    info->Text(PMIX_NODE_MAP, node_map);
    info->Text(PMIX_PROC_MAP, process_map);
    info->Text(PMIX_JOBID, job.name);
    info->Number(PMIX_UNIV_SIZE, size);
    info->Number(PMIX_JOB_SIZE, size);
    info->Number(PMIX_MAX_PROCS, size);
    info->Number(PMIX_JOB_NUM_APPS, 1);
    info->Number(PMIX_APP_SIZE, size);
    info->Number(PMIX_NUM_NODES, static_cast<std::uint32_t>(job.hosts.size()));
    info->Number(PMIX_LOCAL_SIZE, static_cast<std::uint32_t>(here.local_size));
    info->Number(PMIX_NODE_SIZE, static_cast<std::uint32_t>(here.local_size));
    info->Text(PMIX_LOCAL_PEERS, ranks_of[static_cast<std::size_t>(job.here)]);
    info->Rank(PMIX_LOCALLDR, here.first_rank);
    info->Text(PMIX_TMPDIR, folders.disk.string());
    info->Text(PMIX_NSDIR, (folders.disk / job.name).string());
    for (std::size_t host = 0; host < job.hosts.size(); ++host) {
      for (int i = 0; i < job.hosts[host].local_size; ++i) {
        const int rank = job.hosts[host].first_rank + i;
        PmixInfo of_rank(library);
        of_rank.Rank(PMIX_RANK, rank);  // must come first
        of_rank.Rank(PMIX_GLOBAL_RANK, rank);
        of_rank.Rank(PMIX_APP_RANK, rank);
        of_rank.Number(PMIX_APPNUM, 0);
        of_rank.Small(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(i));
        of_rank.Small(PMIX_NODE_RANK, static_cast<std::uint16_t>(i));
        of_rank.Number(PMIX_NODEID, static_cast<std::uint32_t>(host));
        of_rank.Text(PMIX_HOSTNAME, job.hosts[host].name);
        info->List(PMIX_PROC_DATA, of_rank);
      }
    }
  }
  std::free(node_map);
  std::free(process_map);
  if (status != PMIX_SUCCESS) return library.Failed("describe the hosts", status);
  return {};
}

}  // namespace dtrun::pmi
