// Facts about this machine that plan and run need as values: names, addresses, cpus, devices, environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ddl::os {

[[nodiscard]] std::string host_name();                         // gethostname, first label
[[nodiscard]] std::vector<std::string> interface_addresses();  // numeric, no scope suffix; loopback included
[[nodiscard]] int usable_cpus();                               // size of the affinity mask
[[nodiscard]] int
visible_gpus();  // CUDA_VISIBLE_DEVICES if set (empty or -1: 0), else /dev/nvidia[0-9]*; never a CUDA context
[[nodiscard]] bool own_network_namespace_in_container();
[[nodiscard]] std::vector<std::string> environment();  // NAME=VALUE
[[nodiscard]] std::string random_hex(int bytes);       // for nonces; at most 256
// Where small files lie that last as long as a launch: in memory (/dev/shm) where that can be written, since a journal
// that is busy delays every launch; else /tmp.
[[nodiscard]] std::string scratch_base();
[[nodiscard]] std::string tail_of_file(const std::string& path, int lines, int max_bytes);

}  // namespace ddl::os
