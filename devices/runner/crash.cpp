#include "crash.h"

#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

constexpr std::pair<int, const char*> kSignals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
constexpr size_t kStackBytes = 1 << 16;
constexpr uint64_t kFullBytes = 1 << 20;  // with less free space than this, a disk is full

std::atomic<const char*> doing{"started"};
std::atomic<const char*> removed{nullptr};
char stack[kStackBytes];

void print(const char* text) {
  const auto written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

void remove_file() {
  if (const char* path = removed.load()) unlink(path);
}

// Whether the disk of that file has no space left: a write to a mapped file then ends the program by SIGBUS.
bool is_disk_full() {
  const char* path = removed.load();
  struct statvfs disk {};
  return path && statvfs(path, &disk) == 0 && uint64_t{disk.f_bavail} * disk.f_frsize < kFullBytes;
}

// May run at any point: only functions that are safe in a signal handler.
void report(int number) {
  print("executor_runner: ExecuTorch crashed (");
  for (const auto& [signal_number, name] : kSignals) {
    if (signal_number == number) print(name);
  }
  print(") while it ");
  print(doing.load());
  if (number == SIGBUS && is_disk_full()) print(", with a full disk");
  print("\n");
  remove_file();
  raise(number);  // the default action is set again, and ends the program after this handler
}

}  // namespace

void now_doing(const char* what) { doing = what; }

void remove_in_crash(const char* path) { removed = path; }

void end_by_signal(int number) {
  remove_file();
  signal(number, SIG_DFL);
  raise(number);
  std::abort();  // of a signal that ends nothing
}

void report_crashes() {
  stack_t own{};
  own.ss_sp = stack;
  own.ss_size = sizeof stack;
  sigaltstack(&own, nullptr);  // an overflow of the stack leaves no room for the handler
  struct sigaction action {};
  action.sa_handler = report;
  action.sa_flags = SA_RESETHAND | SA_ONSTACK;
  for (const auto& [number, _] : kSignals) sigaction(number, &action, nullptr);
}
