#include "calibrate.h"

#include <array>
#include <cstddef>

#include "stats.h"

namespace {

constexpr size_t kValues = 1024;       // 4 KB each of integers and floats: together a quarter of the smallest L1
constexpr int kRounds = 60'000;
constexpr int kRampUpRounds = 20'000;  // until the governor has raised the clock and the scheduler found a fast core

struct Values {
  std::array<uint32_t, kValues> integers{};
  std::array<float, kValues> floats{};
};

// Every step needs the one before it: a compiler can neither drop nor reorder the work.
void work(Values& values, int rounds) {
  uint32_t state = 0x9e3779b9u;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < kValues; ++i) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      values.integers[i] += state;
      // The factor keeps the values between 0 and 2, away from slow denormal numbers.
      values.floats[i] = values.floats[i] * 0.5f + static_cast<float>(values.integers[i] >> 8) * 0x1p-24f;
    }
  }
}

}  // namespace

int64_t calibration_ns() {
  Values values;
  work(values, kRampUpRounds);
  const int64_t start = now_ns();
  work(values, kRounds);
  const int64_t end = now_ns();
  volatile float used = 0;
  for (const float value : values.floats) used = used + value;
  return end - start;
}
