// Every flag of the launcher, once: names, kind, what it does here, and whether it counts.
//
// The single source for parsing (cli), PET_*/DDL_* names, nearest-name hints, --help, the classes "used", "harmless
// here" and "refused", and docs/COMPATIBILITY.md. A new flag is one line in the table, its use in plan/, and a test.
// Constant data; it never looks at what was typed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddl::plan {

enum class Flag : std::uint8_t {
    kStandalone,
    kNnodes,
    kNprocPerNode,
    kRdzvEndpoint,
    kRdzvBackend,
    kRdzvId,
    kRdzvConf,
    kJoinTimeout,
    kNodeRank,
    kMasterAddr,
    kMasterPort,
    kLocalAddr,
    kScaleUp,
    kScaleUpDeadline,
    kModule,
    kNoPython,
    kRunPath,
    kRole,
    kVirtualLocalRank,
    kOmp,
    kStdin,
    kWorkerStore,
    kStorePort,
    kStoreAllow,
    kStoreCompat,
    kMaxRestarts,
    kNoRestartExitCodes,
    kFreeNodeLoss,
    kRestartBackoff,
    kCrashLoopWindow,
    kRestartGrace,
    kShutdownTimeout,
    kSignalsToHandle,
    kForwardSignals,
    kSignalRanksOnly,
    kKeepChildren,
    kExitCode,
    kLogDir,
    kRedirects,
    kTee,
    kLogLinePrefixTemplate,
    kLocalRanksFilter,
    kDuplicateStdoutFilters,
    kDuplicateStderrFilters,
    kEvents,
    kResultFile,
    kQuiet,
    kStrict,
    kDryRun,
    kVersion,
    kHelp,
    kPrintCompatibility,
    kMonitorInterval,
    kStartMethod,
    kEventLogHandler,
    kLogsSpecs,
    kNumaBinding,
    kPrintCompletion,
};
inline constexpr std::size_t kFlagCount = static_cast<std::size_t>(Flag::kPrintCompletion) + 1;

enum class FlagGroup : std::uint8_t { kWorkers, kRendezvous, kStore, kEnd, kOutput, kThisCommand, kAccepted, kHidden };

// kHarmless: accepted and named once in a note, because it can have no effect here. kRefused: exit 2 with `meaning`.
enum class FlagClass : std::uint8_t { kUsed, kHarmless, kRefused };

// Where the flag was known first: torchrun's have PET_* variables (`kTorchrunTyped`: none), ours have DDL_* ones
// (`kOursTyped`: none).
enum class FlagOrigin : std::uint8_t { kTorchrun, kTorchrunTyped, kOurs, kOursTyped };

struct FlagInfo {
    Flag flag{};
    std::string_view name;   // "nproc-per-node"; with underscores it is accepted just the same
    char letter = '\0';      // 'r' for -r
    std::string_view value;  // placeholder in the help; empty for a switch
    FlagGroup group = FlagGroup::kHidden;
    FlagClass flag_class = FlagClass::kUsed;
    FlagOrigin origin = FlagOrigin::kOurs;
    std::string_view meaning;  // one line for --help; the reason for harmless and refused ones

    [[nodiscard]] constexpr bool takes_value() const {
        return !value.empty();
    }
    [[nodiscard]] constexpr bool from_torchrun() const {
        return origin == FlagOrigin::kTorchrun || origin == FlagOrigin::kTorchrunTyped;
    }
};

// In the order of Flag.
[[nodiscard]] std::span<const FlagInfo, kFlagCount> flag_table();
[[nodiscard]] const FlagInfo& info(Flag flag);

[[nodiscard]] std::string spelling(Flag flag);       // "--nproc-per-node"
[[nodiscard]] std::string variable_name(Flag flag);  // "PET_NPROC_PER_NODE", "DDL_WORKER_STORE"; "" where there is none

// The flags that a typed long name (without dashes in front, either spelling, maybe shortened) can mean: one for an
// exact or unambiguous name, several for an ambiguous one, none for an unknown one. A shortened name that means exactly
// one of torchrun's flags means that one, whatever flags of ours also start with it.
[[nodiscard]] std::vector<Flag> flags_for_name(std::string_view name);
[[nodiscard]] std::optional<Flag> flag_for_letter(char letter);

// "--nnodes", for an unknown name close enough to it.
[[nodiscard]] std::optional<std::string> nearest_flag(std::string_view name);

}  // namespace ddl::plan
