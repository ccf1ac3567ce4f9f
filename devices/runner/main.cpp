// executor_runner: loads a method of an ExecuTorch program, executes it and writes measurements.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "errors.h"
#include "files.h"
#include "flags.h"
#include "kernel_profile.h"
#include "model.h"
#include "runtime_log.h"
#include "sme2.h"
#include "stats.h"
#include "threads.h"

namespace {

void check_sme_possible(const Flags& flags) {
  if (flags.sme2.value_or(Sme::none) <= sme_hardware()) return;
  const std::string reason = " is not possible: the processor or the operating system does not support ";
  throw UsageError(*flags.sme2 == Sme::sme2 ? "--sme2=on" + reason + "SME2" : "--sme2=sme1" + reason + "SME");
}

// Prevents measuring a variant other than the requested one.
void check_sme_effective(const Flags& flags) {
  if (!flags.sme2 || sme_hardware() == Sme::none) return;
  if (!sme_told()) throw RunError("--sme2 has no effect: XNNPACK did not query SME2 through the replaced function");
  if (*sme_told() != *flags.sme2) throw RunError("--sme2 has no effect: XNNPACK received another answer");
}

void measure(const Flags& flags, Stats& stats) {
  check_sme_possible(flags);
  catch_runtime_log();
  stats.threads_used = set_threads(flags.cpu_threads);

  const int64_t start = now_ns();
  Model model(flags.model_path, flags.method_name, !flags.etdump_path.empty(), !flags.setup_method.empty());
  stats.load_ns = now_ns() - start;
  check_sme_effective(flags);
  model.set_inputs(flags.inputs);
  if (!flags.setup_method.empty()) stats.setup_ns = model.set_up(flags.setup_method, flags.setup_inputs);

  stats.execution_ns.reserve(static_cast<size_t>(flags.num_executions));
  std::optional<KernelProfile> profile;
  if (!flags.kernel_profile_path.empty()) profile.emplace();
  for (int i = 0; i < flags.num_executions; ++i) stats.execution_ns.push_back(model.execute());
  if (profile) write_complete(flags.kernel_profile_path, profile->stop());

  if (flags.print_output != PrintOutput::none) {
    std::fputs(model.describe_outputs(flags.print_output == PrintOutput::all).c_str(), stdout);
  }
  if (!flags.output_file.empty()) model.write_outputs(flags.output_file);
  if (!flags.etdump_path.empty()) model.write_etdump(flags.etdump_path);
}

int report_error(const std::exception& error, int exit_code) {
  std::fprintf(stderr, "executor_runner: %s\n", error.what());
  return exit_code;
}

int run(const Flags& flags) {
  Stats stats;
  stats.threads_requested = flags.cpu_threads;
  stats.sme2_requested = flags.sme2;
  int exit_code = 0;
  try {
    measure(flags, stats);
  } catch (const UsageError& error) {
    stats.exit_reason = error.what();
    exit_code = report_error(error, 2);
  } catch (const std::exception& error) {
    stats.exit_reason = error.what();
    exit_code = report_error(error, 1);
  }
  if (!flags.stats_path.empty()) {
    try {
      write_complete(flags.stats_path, stats_json(stats));
    } catch (const RunError& error) {
      if (exit_code == 0) exit_code = report_error(error, 1);
    }
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Flags flags = parse_flags(argc, argv);
    if (flags.help || flags.version) return std::fputs((flags.help ? usage() : version_json()).c_str(), stdout) < 0;
    return run(flags);
  } catch (const UsageError& error) {
    return report_error(error, 2);
  }
}
