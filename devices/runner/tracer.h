// Records the events of executions, as ETDumpGen does, except while paused, and knows how large the ETDump will be.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstddef>
#include <cstring>

class Tracer : public executorch::etdump::ETDumpGen {
 public:
  // Returns the bytes of the ETDump so far, a little too many.
  size_t bytes() const { return bytes_; }

  // Records nothing until the next call with false.
  void pause(bool is_paused) { is_paused_ = is_paused; }

  void create_event_block(const char* name) override {
    if (is_paused_) return;
    bytes_ += kRunBytes;
    ETDumpGen::create_event_block(name);
  }

  executorch::runtime::EventTracerEntry start_profiling(const char* name, executorch::runtime::ChainID chain,
                                                        executorch::runtime::DebugHandle handle) override {
    if (is_paused_) return {};
    add(name, 0);
    return ETDumpGen::start_profiling(name, chain, handle);
  }

  void end_profiling(executorch::runtime::EventTracerEntry entry) override {
    if (!is_paused_) ETDumpGen::end_profiling(entry);
  }

  executorch::runtime::EventTracerEntry start_profiling_delegate(
      const char* name, executorch::runtime::DelegateDebugIntId index) override {
    if (is_paused_) return {};
    add(name, 0);
    return ETDumpGen::start_profiling_delegate(name, index);
  }

  void end_profiling_delegate(executorch::runtime::EventTracerEntry entry, const void* metadata,
                              size_t metadata_bytes) override {
    if (!is_paused_) ETDumpGen::end_profiling_delegate(entry, metadata, metadata_bytes);
  }

  void log_profiling_delegate(const char* name, executorch::runtime::DelegateDebugIntId index, et_timestamp_t start,
                              et_timestamp_t end, const void* metadata, size_t metadata_bytes) override {
    if (is_paused_) return;
    add(name, metadata_bytes);
    ETDumpGen::log_profiling_delegate(name, index, start, end, metadata, metadata_bytes);
  }

  void track_allocation(executorch::runtime::AllocatorID id, size_t size) override {
    if (!is_paused_) ETDumpGen::track_allocation(id, size);
  }

 private:
  // An event has two tables and its name; a table of another layout than those before it adds one for its fields.
  static constexpr size_t kEventBytes = 60;
  static constexpr size_t kRunBytes = 40;

  void add(const char* name, size_t metadata_bytes) {
    bytes_ += kEventBytes + (name == nullptr ? 0 : std::strlen(name)) + metadata_bytes;
  }

  size_t bytes_ = 0;
  bool is_paused_ = false;
};
