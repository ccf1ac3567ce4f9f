// Loads a method of a program, sets its inputs, executes it and reads its outputs.
#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "inputs.h"
#include "tracer.h"

class Model {
 public:
  // Loads the method of the flags; throws UsageError if a file is missing, is not a program, or does not have the
  // method. All executions are recorded for write_etdump if an ETDump is requested. `options` must outlive the model.
  Model(const Flags& flags, BackendOptions& options);

  // Sets the inputs of the executions; throws UsageError, see Inputs.
  void set_inputs(const InputSource& source);

  // Executes another method, or the same one, once for each group of inputs; nothing of it is recorded. Returns the wall
  // time of these executions in nanoseconds, without loading. Throws UsageError for an unknown method or its inputs,
  // RunError if it fails.
  int64_t set_up(const std::string& method, const InputSource& source);

  // Executes once and returns the wall time in nanoseconds; throws RunError.
  int64_t execute();

  // Keeps the outputs of the last execution for the next three.
  void keep_outputs();

  // Whether the last execution returned what was kept, bit for bit; if not, the method changes its own state.
  bool repeats_outputs() const;

  // Writes PREFIX-N.bin for each output N that is a tensor.
  void write_outputs(const std::string& prefix) const;

  // Returns one line for each output, with all of its values or the first and last five.
  std::string describe_outputs(bool all_values) const;

  // What the execution so far recorded; null if the model is not traced.
  const Tracer* tracer() const { return tracer_.get(); }

  // Writes the recorded events, one run_data for loading and one for each execution; returns the CRC-32 of the file.
  uint32_t write_etdump(const std::string& path);

  // Loads the method again, with fresh state, and records nothing from here on.
  void stop_tracing();

 private:
  void load(const std::string& method, Tracer* tracer);
  int64_t execute(const std::string& method, const Inputs& inputs);

  std::string path_;
  std::string method_;
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<executorch::extension::Module> module_;
  std::optional<Inputs> inputs_;
  std::vector<executorch::runtime::EValue> outputs_;  // of the last execution: views of the method's memory
  std::vector<executorch::runtime::EValue> kept_;
  std::vector<executorch::extension::TensorPtr> kept_tensors_;
};
