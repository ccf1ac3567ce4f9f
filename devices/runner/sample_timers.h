// Timers that send SIGPROF to a thread while it uses the processor.
#pragma once

#include <cstdint>
#include <vector>

// One timer for each thread of this process: signals of a timer for the whole process merge when two threads run. Where
// the system has none for a thread (macOS), one timer for the process.
class SampleTimers {
 public:
  explicit SampleTimers(int rate_hz);
  ~SampleTimers();
  SampleTimers(const SampleTimers&) = delete;
  SampleTimers& operator=(const SampleTimers&) = delete;

 private:
  bool start_each_thread(int64_t period_ns);

  std::vector<int> timers_;  // of the kernel; empty: one for the process
};

// Returns the processor time of all threads of this process so far in nanoseconds.
int64_t processor_time_ns();
