#include "threads.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "errors.h"

// The wheel exports these without a header. They are only called through pointers, so the layout does not matter.
namespace executorch::extension {
namespace threadpool {
class ThreadPool {
 public:
  size_t get_thread_count() const;
  bool _unsafe_reset_threadpool(uint32_t new_thread_count);
};
ThreadPool* get_threadpool();
}  // namespace threadpool
namespace cpuinfo {
uint32_t get_num_performant_cores();
}
}  // namespace executorch::extension

namespace {

// The pool ends the process if the system refuses a thread, so that many are started and ended before it.
void check_can_start(uint32_t count) {
  std::mutex all_started;
  std::vector<std::thread> started;
  std::string refused;
  {
    const std::lock_guard<std::mutex> lock(all_started);
    try {
      while (started.size() < count) {
        started.emplace_back([&all_started] { const std::lock_guard<std::mutex> wait(all_started); });
      }
    } catch (const std::exception&) {
      refused = "--cpu_threads=" + std::to_string(count) + " is not possible: this system starts at most " +
                std::to_string(started.size()) + " threads now; request fewer";
    }
  }
  for (std::thread& thread : started) thread.join();
  if (!refused.empty()) throw UsageError(refused);
}

}  // namespace

int set_threads(int requested) {
  namespace extension = executorch::extension;
  if (requested > static_cast<int>(std::thread::hardware_concurrency())) check_can_start(requested);
  const uint32_t fast_cores = extension::cpuinfo::get_num_performant_cores();
  const uint32_t count = requested > 0 ? static_cast<uint32_t>(requested) : fast_cores;
  auto* pool = extension::threadpool::get_threadpool();
  if (pool == nullptr) throw RunError("cannot create the thread pool");
  if (count > 0) pool->_unsafe_reset_threadpool(count);
  const auto used = static_cast<int>(pool->get_thread_count());
  if (requested > 0 && used != requested) {
    throw RunError("the thread pool has " + std::to_string(used) + " threads, but --cpu_threads requests " +
                   std::to_string(requested));
  }
  return used;
}
