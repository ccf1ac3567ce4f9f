#include "threads.h"

#include <cstddef>
#include <cstdint>
#include <string>

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

int set_threads(int requested) {
  namespace extension = executorch::extension;
  const uint32_t fast_cores = extension::cpuinfo::get_num_performant_cores();
  const uint32_t wanted = requested > 0 ? static_cast<uint32_t>(requested) : fast_cores;
  auto* pool = extension::threadpool::get_threadpool();
  if (pool == nullptr) throw RunError("cannot create the thread pool");
  if (wanted > 0) pool->_unsafe_reset_threadpool(wanted);
  const auto used = static_cast<int>(pool->get_thread_count());
  if (requested > 0 && used != requested) {
    throw RunError("the thread pool has " + std::to_string(used) + " threads, but --cpu_threads requests " +
                   std::to_string(requested));
  }
  return used;
}
