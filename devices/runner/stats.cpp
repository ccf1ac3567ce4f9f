#include "stats.h"

#include <chrono>
#include <sstream>

#include "json.h"
#include "platform/processor.h"
#include "platform/sme2.h"

namespace {

template <typename Number>
std::string or_null(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "null";
}

std::string list_json(const std::vector<int64_t>& numbers) {
  std::ostringstream json;
  for (size_t i = 0; i < numbers.size(); ++i) json << (i ? ", " : "") << numbers[i];
  return "[" + json.str() + "]";
}

std::string sme2_or_null(const std::optional<Sme>& requested) {
  if (!requested) return "null";
  return *requested == Sme::sme2 ? "\"on\"" : *requested == Sme::sme1 ? "\"sme1\"" : "\"off\"";
}

std::string hardware_json() {
  const Sme hardware = sme_hardware();
  return "\"sme_hardware\": " + json_bool(hardware >= Sme::sme1) +
         ", \"sme2_hardware\": " + json_bool(hardware == Sme::sme2);
}

std::string told_json() {
  const Sme told = sme_reported().value_or(Sme::none);
  return "\"sme_reported\": " + json_bool(told >= Sme::sme1) + ", \"sme2_reported\": " + json_bool(told == Sme::sme2);
}

}  // namespace

std::string stats_json(const Stats& stats) {
  std::ostringstream json;
  json << "{\"runner_version\": \"" RUNNER_VERSION "\", \"load_ns\": " << or_null(stats.load_ns);
  json << ", \"setup_ns\": " << or_null(stats.setup_ns);
  json << ", \"execution_ns\": " << list_json(stats.execution_ns);
  json << ", \"untraced_execution_ns\": " << list_json(stats.untraced_execution_ns);
  json << ", \"etdump_crc32\": " << or_null(stats.etdump_crc32);
  json << ", \"model_peak_memory_bytes\": " << or_null(stats.model_peak_memory_bytes);
  json << ", \"peak_memory_bytes\": " << or_null(stats.peak_memory_bytes);
  json << ", \"memory_read_bytes_per_s\": " << or_null(stats.memory_read_bytes_per_s);
  json << ", \"outputs_repeat\": " << (stats.outputs_repeat ? json_bool(*stats.outputs_repeat) : "null");
  json << ", \"threads_requested\": " << stats.threads_requested;
  json << ", \"threads_used\": " << or_null(stats.threads_used);
  json << ", \"sme2_requested\": " << sme2_or_null(stats.sme2_requested);
  json << ", " << hardware_json() << ", " << told_json();
  json << ", \"exit_reason\": " << json_string(stats.exit_reason) << "}\n";
  return json.str();
}

std::string version_json() {
  std::ostringstream json;
  json << "{\"runner_version\": \"" RUNNER_VERSION "\", \"executorch_version\": \"" EXECUTORCH_VERSION "\"";
  json << ", \"platform\": \"" << kPlatform << "\", " << hardware_json() << "}\n";
  return json.str();
}

int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}
