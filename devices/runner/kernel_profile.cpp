#include "kernel_profile.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "errors.h"
#include "json.h"
#include "platform/function_starts.h"
#include "platform/processor.h"

namespace {

constexpr int kRateHz = 1000;            // of each thread's processor time; the system's tick may limit it
constexpr uint32_t kCapacity = 1 << 18;  // over four minutes of processor time

struct Sample {
  uintptr_t counter;
  pthread_t thread;
};

// Never freed: a last signal may be pending when the program ends.
Sample* const samples = new Sample[kCapacity];
std::atomic<bool> is_sampling{false};
std::atomic<int> running_handlers{0};
std::atomic<uint32_t> taken{0};

// Runs in the thread that used the processor, at any point: must not lock or allocate.
void take_sample(int, siginfo_t*, void* context) {
  ++running_handlers;
  if (is_sampling) {
    const uint32_t index = taken++;
    if (index < kCapacity) samples[index] = {program_counter(*static_cast<const ucontext_t*>(context)), pthread_self()};
  }
  --running_handlers;
}

std::string readable(const char* symbol) {
  int status = 0;
  char* name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  const std::unique_ptr<char, decltype(&std::free)> owner(name, std::free);
  return status == 0 ? name : symbol;
}

std::string file_name(const char* path) {
  const char* slash = path == nullptr ? nullptr : std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path != nullptr ? path : "";
}

// Returns (name, library); the name is empty if the symbol table does not contain the function at `counter`.
std::pair<std::string, std::string> resolve(uintptr_t counter) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(counter), &info) == 0) return {"", ""};
  const bool named = info.dli_sname != nullptr && is_in_function(counter, info);
  return {named ? readable(info.dli_sname) : "", file_name(info.dli_fname)};
}

}  // namespace

KernelProfile::KernelProfile() {
  std::fill_n(samples, kCapacity, Sample{});  // before sampling, so that no page is touched for the first time in it
  taken = 0;
  is_sampling = true;
  struct sigaction action {};
  action.sa_sigaction = take_sample;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (sigaction(SIGPROF, &action, nullptr) != 0) throw RunError("cannot start the kernel profile");
  start_ns_ = processor_time_ns();
  timers_.emplace(kRateHz);
}

// The handler stays: a last signal may be pending, and its default action would end the process.
std::string KernelProfile::stop() {
  timers_.reset();
  const int64_t cpu_ns = processor_time_ns() - start_ns_;
  is_sampling = false;
  while (running_handlers > 0) std::this_thread::yield();
  const uint32_t count = std::min(taken.load(), kCapacity);
  std::map<uintptr_t, int> counters;
  std::set<pthread_t> threads;
  for (uint32_t i = 0; i < count; ++i) {
    ++counters[samples[i].counter];
    threads.insert(samples[i].thread);
  }
  std::map<std::pair<std::string, std::string>, int> weights;
  for (const auto& [counter, weight] : counters) weights[resolve(counter)] += weight;
  std::vector<std::pair<std::pair<std::string, std::string>, int>> kernels(weights.begin(), weights.end());
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  int unresolved = 0;
  std::vector<JsonObject> named, unnamed;
  for (const auto& [kernel, weight] : kernels) {
    const auto& [name, library] = kernel;
    JsonObject object;
    if (name.empty()) unresolved += weight;
    else object.add("name", name);
    (name.empty() ? unnamed : named).push_back(object.add("library", library).add("samples", weight));
  }
  JsonObject object;
  object.add("rate_hz", kRateHz).add("cpu_ns", cpu_ns).add("samples", count).add("dropped", taken.load() - count);
  object.add("unresolved", unresolved).add("threads", threads.size());
  return object.add("kernels", named).add("unresolved_libraries", unnamed).text() + "\n";
}
