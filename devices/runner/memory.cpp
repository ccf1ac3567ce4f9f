#include "memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "stats.h"

namespace {

constexpr size_t kBytes = size_t{256} << 20;  // several times the caches of phones and of most servers
constexpr size_t kValues = kBytes / sizeof(uint64_t);
constexpr size_t kMinBytes = size_t{16} << 10;

// 64 bytes, which a compiler reads by the widest loads of the processor that it compiles for.
using Vector = uint64_t __attribute__((vector_size(64)));
struct Block {
  Vector values;
};
constexpr size_t kUnrolled = 4;  // sums that do not wait for each other

// Calls work(first, last) in each thread for its part of `count`; returns whether the system started all threads.
template <typename Work>
bool on_threads(size_t threads, size_t count, const Work& work) {
  std::vector<std::thread> started;
  try {
    for (size_t i = 0; i < threads; ++i) started.emplace_back(work, count * i / threads, count * (i + 1) / threads);
  } catch (const std::system_error&) {
  }
  for (std::thread& thread : started) thread.join();
  return started.size() == threads;
}

// Adds up groups of kUnrolled blocks.
__attribute__((always_inline)) inline uint64_t add_up_groups(const Block* blocks, size_t groups) {
  Vector sums[kUnrolled] = {};
  for (size_t group = 0; group < groups; ++group) {
    for (size_t i = 0; i < kUnrolled; ++i) sums[i] += blocks[group * kUnrolled + i].values;
  }
  const Vector sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

using AddUp = uint64_t (*)(const Block*, size_t);
uint64_t add_up_by_default(const Block* blocks, size_t groups) { return add_up_groups(blocks, groups); }
#if defined(__x86_64__)
// The runner is compiled for every x86-64 processor, whose loads of 16 bytes cannot keep up with a first cache.
__attribute__((target("avx2"))) uint64_t add_up_avx2(const Block* blocks, size_t groups) {
  return add_up_groups(blocks, groups);
}
__attribute__((target("avx512f"))) uint64_t add_up_avx512(const Block* blocks, size_t groups) {
  return add_up_groups(blocks, groups);
}
AddUp choose_add_up() {
  if (__builtin_cpu_supports("avx512f")) return add_up_avx512;
  return __builtin_cpu_supports("avx2") ? add_up_avx2 : add_up_by_default;
}
#else
AddUp choose_add_up() { return add_up_by_default; }
#endif

int64_t bytes_per_s(int64_t time_ns) {
  return static_cast<int64_t>(static_cast<double>(kBytes) * 1e9 / static_cast<double>(time_ns));
}

}  // namespace

std::optional<int64_t> memory_read_bytes_per_s(int threads, int rounds) {
  const std::unique_ptr<uint64_t[]> values(new (std::nothrow) uint64_t[kValues]);
  if (values == nullptr) return std::nullopt;
  const auto count = static_cast<size_t>(threads);
  std::atomic<uint64_t> used{0};  // otherwise the compiler could drop the reads
  const auto write = [&values](size_t first, size_t last) { std::fill(&values[first], &values[last], first + 1); };
  const auto read = [&values, &used](size_t first, size_t last) {
    uint64_t sum = 0;
    for (size_t i = first; i < last; ++i) sum += values[i];
    used += sum;
  };
  // Until a page is written, it takes no memory, and it lies near the core that writes it.
  if (!on_threads(count, kValues, write)) return std::nullopt;
  std::vector<int64_t> times_ns;
  for (int round = 0; round < rounds; ++round) {
    const int64_t start = now_ns();
    if (!on_threads(count, kValues, read)) return std::nullopt;
    times_ns.push_back(now_ns() - start);
  }
  std::sort(times_ns.begin(), times_ns.end());
  return bytes_per_s(times_ns[times_ns.size() / 2]);
}

std::vector<ReadSpeed> read_speeds(int threads, int rounds) {
  const std::unique_ptr<Block[]> blocks(new (std::nothrow) Block[kBytes / sizeof(Block)]());
  if (blocks == nullptr) return {};
  const AddUp add_up = choose_add_up();
  const auto count = static_cast<size_t>(threads);
  std::atomic<uint64_t> used{0};
  std::vector<ReadSpeed> speeds;
  for (size_t bytes = kMinBytes; bytes <= kBytes; bytes *= 4) {
    const size_t passes = kBytes / bytes;
    const auto read = [&](size_t first, size_t last) {
      uint64_t sum = 0;
      for (size_t pass = 0; pass < passes; ++pass) {
        sum += add_up(&blocks[first * kUnrolled], last - first);
        asm volatile("" ::: "memory");  // otherwise the compiler could reuse the sum of the first pass
      }
      used += sum;
    };
    std::vector<int64_t> times_ns;
    for (int round = 0; round < rounds; ++round) {
      const int64_t start = now_ns();
      if (!on_threads(count, bytes / sizeof(Block) / kUnrolled, read)) return {};
      times_ns.push_back(now_ns() - start);
    }
    const int64_t fastest_ns = *std::min_element(times_ns.begin(), times_ns.end());
    speeds.push_back({static_cast<int64_t>(bytes), bytes_per_s(fastest_ns)});
  }
  return speeds;
}
