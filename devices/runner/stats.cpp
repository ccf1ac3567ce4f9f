#include "stats.h"

#include <chrono>

#include "json.h"
#include "platform/processor.h"
#include "platform/sme2.h"

namespace {

void add_hardware(JsonObject& object) {
  const Sme hardware = sme_hardware();
  object.add("sme_hardware", hardware >= Sme::sme1).add("sme2_hardware", hardware == Sme::sme2);
}

void add_first_start(JsonObject& object, const Stats& stats) {
  std::optional<int64_t> load_ns, peak_memory_bytes;
  if (stats.first_start) {
    load_ns = stats.first_start->load_ns;
    peak_memory_bytes = stats.first_start->peak_memory_bytes;
  }
  object.add("first_load_ns", load_ns).add("first_peak_memory_bytes", peak_memory_bytes);
  object.add("cache_bytes", stats.cache_bytes);
}

void add_read_speeds(JsonObject& object, const Stats& stats) {
  std::vector<JsonObject> speeds;
  for (const ReadSpeed& each : stats.read_speeds) {
    speeds.push_back(JsonObject().add("bytes", each.bytes).add("bytes_per_s", each.bytes_per_s));
  }
  object.add("read_speeds", speeds.empty() ? std::nullopt : std::optional(speeds));
}

// Adds what was resident at a moment of the session, null if the system does not tell.
void add_memory(JsonObject& object, const std::string& moment, const std::optional<ResidentMemory>& memory) {
  object.add(moment + "_anonymous_bytes", memory ? std::optional(memory->anonymous) : std::nullopt);
  object.add(moment + "_file_bytes", memory ? std::optional(memory->of_files) : std::nullopt);
  if (moment == "start") return;  // a process that has just started has nothing in swap
  object.add(moment + "_swapped_bytes", memory ? std::optional(memory->swapped) : std::nullopt);
}

void add_mappings(JsonObject& object, const std::optional<std::vector<Mapping>>& mappings) {
  if (!mappings) return;
  std::vector<JsonObject> listed;
  for (const Mapping& each : *mappings) {
    listed.emplace_back().add("name", each.name).add("resident_bytes", each.resident_bytes);
  }
  object.add("mappings", listed);
}

std::optional<std::string> sme2_flag(const std::optional<Sme>& requested) {
  if (!requested) return std::nullopt;
  return *requested == Sme::sme2 ? "on" : *requested == Sme::sme1 ? "sme1" : "off";
}

}  // namespace

std::string stats_json(const Stats& stats, const Flags& flags) {
  const Sme reported = sme_reported().value_or(Sme::none);
  JsonObject object;
  object.add("runner_version", RUNNER_VERSION).add("load_ns", stats.load_ns).add("setup_ns", stats.setup_ns);
  object.add("execution_ns", stats.execution_ns).add("untraced_execution_ns", stats.untraced_execution_ns);
  object.add("etdump_crc32", stats.etdump_crc32).add("model_peak_memory_bytes", stats.model_peak_memory_bytes);
  add_memory(object, "start", stats.start_memory);
  add_memory(object, "load", stats.load_memory);
  add_memory(object, "model", stats.model_memory);
  add_memory(object, "end", stats.end_memory);
  add_mappings(object, stats.mappings);
  object.add("peak_memory_bytes", stats.peak_memory_bytes);
  object.add("load_mode", flags.load_mode).add("backend_options", stats.backend_options);
  add_first_start(object, stats);
  object.add("memory_read_bytes_per_s", stats.memory_read_bytes_per_s).add("outputs_repeat", stats.outputs_repeat);
  add_read_speeds(object, stats);
  object.add("threads_requested", flags.cpu_threads).add("threads_used", stats.threads_used);
  object.add("sme2_requested", sme2_flag(flags.sme2));
  add_hardware(object);
  object.add("sme_reported", reported >= Sme::sme1).add("sme2_reported", reported == Sme::sme2);
  return object.add("exit_reason", stats.exit_reason).text() + "\n";
}

std::string version_json() {
  JsonObject object;
  object.add("runner_version", RUNNER_VERSION).add("executorch_version", EXECUTORCH_VERSION).add("platform", kPlatform);
  add_hardware(object);
  return object.text() + "\n";
}

int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}
