// executor_runner: loads a method of an ExecuTorch program, executes it and writes measurements.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "backend_options.h"
#include "calibrate.h"
#include "crash.h"
#include "errors.h"
#include "files.h"
#include "first_start.h"
#include "flags.h"
#include "kernel_profile.h"
#include "memory.h"
#include "model.h"
#include "platform/kernel_counts.h"
#include "platform/peak_memory.h"
#include "platform/sme2.h"
#include "runtime_log.h"
#include "stats.h"
#include "threads.h"

namespace {

constexpr size_t kMappings = 8;  // the others are small

// A full disk is reported only when the text is flushed. Throws RunError.
void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
  throw RunError(std::string("cannot write to standard output: ") + std::strerror(errno));
}

void check_sme_possible(const Flags& flags) {
  if (flags.sme2.value_or(Sme::none) <= sme_hardware()) return;
  const std::string reason = " is not possible: the processor or the operating system does not support ";
  throw UsageError(*flags.sme2 == Sme::sme2 ? "--sme2=on" + reason + "SME2" : "--sme2=sme1" + reason + "SME");
}

// Prevents measuring a variant other than the requested one.
void check_sme_effective(const Flags& flags) {
  if (!flags.sme2 || sme_hardware() == Sme::none) return;
  if (!sme_reported()) throw RunError("--sme2 has no effect: XNNPACK did not query SME2 through the replaced function");
  if (*sme_reported() != *flags.sme2) throw RunError("--sme2 has no effect: XNNPACK received another answer");
}

// An ETDump has offsets of 31 bits; ExecuTorch crashes where it becomes larger.
void check_etdump_size(const Flags& flags, size_t bytes_before, size_t bytes_per_run) {
  constexpr size_t kMaxBytes = (size_t{1} << 31) - (1 << 20);
  const size_t max_executions = (kMaxBytes - bytes_before) / bytes_per_run;
  if (static_cast<size_t>(flags.num_executions) <= max_executions) return;
  throw UsageError("--num_executions=" + std::to_string(flags.num_executions) + " needs an ETDump of over 2 GB, with " +
                   std::to_string(bytes_per_run) + " bytes for each; use at most " + std::to_string(max_executions));
}

void execute_all(const Flags& flags, Model& model, Stats& stats) {
  stats.execution_ns.reserve(static_cast<size_t>(flags.num_executions));
  const size_t bytes_before = model.tracer() ? model.tracer()->bytes() : 0;
  std::optional<KernelProfile> profile;
  if (!flags.kernel_profile_path.empty()) profile.emplace();
  std::optional<KernelCounts> counts;
  if (!flags.kernel_counts_path.empty()) counts.emplace();
  for (int i = 0; i < flags.num_executions; ++i) {
    stats.execution_ns.push_back(model.execute());
    if (i + 1 == flags.output_execution) model.keep_outputs();
    if (i > 0) continue;
    stats.model_peak_memory_bytes = peak_memory_bytes();
    stats.model_memory = resident_memory();
    if (flags.list_mappings) stats.mappings = largest_mappings(flags.model_path, kMappings);
    if (model.tracer()) check_etdump_size(flags, bytes_before, model.tracer()->bytes() - bytes_before);
  }
  if (profile) write_complete(flags.kernel_profile_path, profile->stop());
  if (counts) write_complete(flags.kernel_counts_path, counts->stop(flags.num_executions, *stats.threads_used));
  if (flags.output_execution == 1) stats.outputs_repeat = model.repeats_outputs();
  stats.end_memory = resident_memory();
  stats.peak_memory_bytes = peak_memory_bytes();
}

// After all that is measured: what is executed here has no influence on it.
void execute_untraced(const Flags& flags, Model& model, Stats& stats) {
  now_doing("executed the model without an ETDump");
  model.stop_tracing();
  if (!flags.setup_method.empty()) model.set_up(flags.setup_method, flags.setup_inputs);
  for (int i = 0; i < flags.untraced_executions; ++i) stats.untraced_execution_ns.push_back(model.execute());
}

// Loads the model and sets it up for its executions; fills the statistics of this start.
Model start(const Flags& flags, BackendOptions& options, Stats& stats) {
  stats.threads_used = set_threads(flags.cpu_threads);
  options.set();
  now_doing("loaded the model");
  stats.start_memory = resident_memory();
  const int64_t start = now_ns();
  Model model(flags, options);
  stats.load_ns = now_ns() - start;
  stats.load_memory = resident_memory();
  stats.backend_options = options.read_back();
  check_sme_effective(flags);
  now_doing("executed the model");
  model.set_inputs(flags.inputs);
  if (!flags.setup_method.empty()) stats.setup_ns = model.set_up(flags.setup_method, flags.setup_inputs);
  return model;
}

// The start that fills the cache, with one execution.
FirstStart start_first(const Flags& flags, BackendOptions& options) {
  Stats stats;
  Model model = start(flags, options, stats);
  model.execute();
  return {*stats.load_ns, peak_memory_bytes()};
}

void measure(const Flags& flags, Stats& stats) {
  check_sme_possible(flags);
  catch_runtime_log();
  BackendOptions options(flags.backend_options);
  std::optional<CacheFile> cache;
  if (!flags.cache_file.empty()) {
    cache.emplace(flags.cache_file);
    stats.first_start = start_in_child([&] { return start_first(flags, options); });
    stats.cache_bytes = cache->bytes();
  }
  Model model = start(flags, options, stats);
  if (cache) cache->check_was_read();
  execute_all(flags, model, stats);
  now_doing("wrote the results");
  if (flags.print_output != PrintOutput::none) print(model.describe_outputs(flags.print_output == PrintOutput::all));
  if (!flags.output_file.empty()) model.write_outputs(flags.output_file);
  if (!flags.etdump_path.empty()) stats.etdump_crc32 = model.write_etdump(flags.etdump_path);
  if (flags.untraced_executions > 0) execute_untraced(flags, model, stats);
}

// Returns the exit code for the error.
int report_error(const std::exception& error) {
  std::fprintf(stderr, "executor_runner: %s\n", error.what());
  return dynamic_cast<const UsageError*>(&error) != nullptr ? 2 : 1;
}

int run(const Flags& flags) {
  Stats stats;
  int exit_code = 0;
  try {
    measure(flags, stats);
    now_doing("measured how fast memory is");  // the model's own memory is free again
    if (flags.cache_reads > 0) stats.read_speeds = read_speeds(*stats.threads_used, flags.cache_reads);
    if (flags.memory_reads > 0) {
      stats.memory_read_bytes_per_s = memory_read_bytes_per_s(*stats.threads_used, flags.memory_reads);
    }
  } catch (const std::exception& error) {
    stats.exit_reason = error.what();
    exit_code = report_error(error);
  }
  if (!stats.peak_memory_bytes) stats.peak_memory_bytes = peak_memory_bytes();
  if (!flags.stats_path.empty()) {
    try {
      write_complete(flags.stats_path, stats_json(stats, flags));
    } catch (const RunError& error) {
      if (exit_code == 0) exit_code = report_error(error);
    }
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Flags flags = parse_flags(argc, argv);
    if (flags.help || flags.version || flags.calibrate) {
      print(flags.help ? usage() : flags.version ? version_json() : std::to_string(calibration_ns()) + "\n");
      return 0;
    }
    report_crashes();
    return run(flags);
  } catch (const std::exception& error) {
    return report_error(error);
  }
}
