#include "sample_timers.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

#if defined(__linux__)
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#endif

namespace {

void set_process_timer(int64_t period_ns) {
  struct itimerval timer {};
  timer.it_interval.tv_usec = timer.it_value.tv_usec = static_cast<suseconds_t>(period_ns / 1000);
  setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace

SampleTimers::SampleTimers(int rate_hz) {
  const int64_t period_ns = 1'000'000'000 / rate_hz;
  if (!start_each_thread(period_ns)) set_process_timer(period_ns);
}

int64_t processor_time_ns() {
  struct timespec used {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

#if defined(__linux__)

namespace {

// The kernel is called directly: in C libraries before 2.34, timers are in another library than the rest.
int start_timer(pid_t thread, int64_t period_ns) {
  // The clock of a thread is its number, inverted, with CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED of Linux in three bits.
  const clockid_t clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 4 | 2);
  struct sigevent event {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = thread;
  int timer = -1;
  if (syscall(SYS_timer_create, clock, &event, &timer) != 0) return -1;
  struct itimerspec period {};
  period.it_interval.tv_nsec = period.it_value.tv_nsec = period_ns;
  if (syscall(SYS_timer_settime, timer, 0, &period, nullptr) == 0) return timer;
  syscall(SYS_timer_delete, timer);
  return -1;
}

}  // namespace

bool SampleTimers::start_each_thread(int64_t period_ns) {
  DIR* threads = opendir("/proc/self/task");
  bool all = threads != nullptr;
  for (const dirent* entry = nullptr; all && (entry = readdir(threads)) != nullptr;) {
    const pid_t thread = std::atoi(entry->d_name);
    if (thread == 0) continue;  // . and ..
    timers_.push_back(start_timer(thread, period_ns));
    all = timers_.back() >= 0;
  }
  if (threads != nullptr) closedir(threads);
  if (!all && !timers_.empty()) {
    timers_.pop_back();
    for (const int timer : timers_) syscall(SYS_timer_delete, timer);
    timers_.clear();
  }
  return all;
}

SampleTimers::~SampleTimers() {
  for (const int timer : timers_) syscall(SYS_timer_delete, timer);
  if (timers_.empty()) set_process_timer(0);
}

#else

bool SampleTimers::start_each_thread(int64_t) { return false; }
SampleTimers::~SampleTimers() { set_process_timer(0); }

#endif
