// Loads a method of a program, sets its inputs, executes it and reads its outputs.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/module/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "inputs.h"

class Model {
 public:
  // Loads the method; throws UsageError if the file is missing, is not a program, or does not have the method.
  // If `traced`, all executions are recorded for write_etdump. `with_setup` lets the method `set_up` executes fill the
  // state that both methods share.
  Model(const std::string& path, const std::string& method, bool traced, bool with_setup);

  // Sets the inputs of the executions; throws UsageError, see Inputs.
  void set_inputs(const InputSource& source);

  // Executes another method, or the same one, once; nothing of it is recorded. Returns the wall time of its execution in
  // nanoseconds, without loading; throws UsageError for an unknown method or its inputs, RunError if it fails.
  int64_t set_up(const std::string& method, const InputSource& source);

  // Executes once and returns the wall time in nanoseconds; throws RunError.
  int64_t execute();

  // Writes PREFIX-N.bin for each output N of the last execution that is a tensor.
  void write_outputs(const std::string& prefix) const;

  // Returns one line for each output, with all of its values or the first and last five.
  std::string describe_outputs(bool all_values) const;

  // Writes the recorded events: one run_data for loading, then one for each execution.
  void write_etdump(const std::string& path);

 private:
  void load(const std::string& method, executorch::etdump::ETDumpGen* tracer);
  int64_t execute(const std::string& method, const Inputs& inputs);

  std::string path_;
  std::string method_;
  std::unique_ptr<executorch::etdump::ETDumpGen> tracer_;
  std::unique_ptr<executorch::extension::Module> module_;
  std::optional<Inputs> inputs_;
  std::vector<executorch::runtime::EValue> outputs_;
};
