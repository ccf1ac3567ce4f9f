// The command line: the flags of the stock executor_runner and those of the farm.
#pragma once

#include <optional>
#include <string>
#include <vector>

enum class PrintOutput { none, summary, all };
enum class Sme2 { on, off };

struct Flags {
  std::string model_path;
  std::string method_name = "forward";
  int num_executions = 1;
  int cpu_threads = -1;  // -1: one thread per fast core
  std::vector<std::string> inputs;
  std::string output_file;
  PrintOutput print_output = PrintOutput::summary;
  std::string etdump_path;
  std::string stats_path;
  std::string kernel_profile_path;
  std::optional<Sme2> sme2;
  bool version = false;
  bool help = false;
};

// Reads `--flag=value` and `--flag value`; throws UsageError on anything else.
Flags parse_flags(int argc, char** argv);

// The text of --help.
std::string usage();
