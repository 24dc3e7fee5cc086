// Makes sure, before anything is reduced, that all ranks built the same model: reducing
// tensors of different shapes would mix unrelated numbers or hang.
//
// Collective; called by DataParallel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dtrun/plugin/hash.hpp"
#include "dtrun/torch/collectives.h"
#include "dtrun/torch/failure.h"

namespace dtrun::torch::detail {

// `parts` describes the model in lines of text that must be equal on all ranks. Throws on
// every rank when they are not; the error has the first line that differs, of rank 0 and of
// the first rank that differs from it.
inline void check_same_model(Collectives& ranks, const std::vector<std::string>& parts) {
  const auto size = static_cast<std::size_t>(ranks.size());
  struct Digest {
    std::uint64_t parts;
    std::uint64_t hash;
  };
  std::vector<std::uint64_t> hashes;
  sdk::Fnv1a whole;
  for (const std::string& part : parts) {
    sdk::Fnv1a one;
    one.Add(part);
    hashes.push_back(one.value());
    whole.Add(part);
  }
  const Digest mine{parts.size(), whole.value()};
  std::vector<Digest> digests(size);
  ranks.allgather(&mine, digests.data(), sizeof mine);
  const bool same = std::all_of(digests.begin(), digests.end(), [&](const Digest& d) {
    return d.parts == digests[0].parts && d.hash == digests[0].hash;
  });
  if (same) return;

  // From here on every rank sees the same numbers and takes the same path.
  std::size_t most = 0;
  for (const Digest& d : digests) most = std::max<std::size_t>(most, d.parts);
  hashes.resize(most, 0);
  std::vector<std::uint64_t> all(size * most);
  ranks.allgather(hashes.data(), all.data(), most * sizeof(std::uint64_t));
  std::size_t index = 0;
  std::size_t other = 0;
  for (; index < most && other == 0; ++index) {
    for (std::size_t r = 1; r < size && other == 0; ++r) {
      if (all[r * most + index] != all[index]) other = r;
    }
  }
  --index;

  using Line = std::array<char, 160>;
  Line line{};
  const std::string text = index < parts.size() ? parts[index] : "nothing";
  std::memcpy(line.data(), text.data(), std::min(text.size(), line.size() - 1));
  std::vector<Line> lines(size);
  ranks.allgather(line.data(), lines.data(), sizeof line);
  fail(DTRUN_INVALID_ARGUMENT, std::string("the ranks built different models: rank 0 has ") +
                                   lines[0].data() + " where rank " + std::to_string(other) + " has " +
                                   lines[other].data() + "; construct the same module on every rank");
}

}  // namespace dtrun::torch::detail
