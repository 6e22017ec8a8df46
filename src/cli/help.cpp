#include "cli/help.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "plan/flag_table.hpp"

namespace ddl::cli {

namespace {

using plan::FlagGroup;

constexpr std::size_t kColumn = 39;

constexpr std::array<std::pair<FlagGroup, std::string_view>, 7> kGroups = {{
    {FlagGroup::kWorkers, "Workers"},
    {FlagGroup::kRendezvous, "Nodes and where they meet"},
    {FlagGroup::kStore, "The workers' store (MASTER_ADDR:MASTER_PORT)"},
    {FlagGroup::kEnd, "Failures, signals and the end"},
    {FlagGroup::kOutput, "Output"},
    {FlagGroup::kThisCommand, "This command"},
    {FlagGroup::kAccepted, "Accepted from torchrun's command lines, without effect here"},
}};

std::string help_line(const plan::FlagInfo& entry) {
    std::string text = entry.letter == '\0' ? "      " : std::string("  -") + entry.letter + ", ";
    text += plan::spelling(entry.flag);
    if (entry.takes_value()) {
        text += ' ';
        text += entry.value;
    }
    text.append(text.size() + 2 <= kColumn ? kColumn - text.size() : 2, ' ');
    return text.append(entry.meaning) + "\n";
}

}  // namespace

std::string help_text() {
    std::string text =
        "Starts, supervises and restarts the workers of a distributed training job.\n"
        "\n"
        "  ddlaunch [flags] SCRIPT.py|PROGRAM [its arguments]\n"
        "  ddlaunch [flags] -m MODULE [its arguments]\n"
        "  ddlaunch store --port N        a store for PyTorch's TCPStore clients, nothing else\n"
        "\n"
        "One machine:    ddlaunch --standalone --nproc-per-node 4 train.py\n"
        "Several nodes:  ddlaunch --nnodes 2 --nproc-per-node 4 --rdzv-endpoint h0:29400 train.py   (on each)\n";
    for (const auto& [group, title] : kGroups) {
        text.append("\n").append(title).append("\n");
        for (const plan::FlagInfo& entry : plan::flag_table()) {
            if (entry.group == group) {
                text += help_line(entry);
            }
        }
    }
    return text +
           "\nFlags end at the first word that is not one, or after --. Underscores do for dashes, and unambiguous\n"
           "beginnings for whole names. Defaults can come from PET_<NAME> (torchrun's flags) and DDL_<NAME> (others):\n"
           "PET_NNODES=2, DDL_WORKER_STORE=worker.\n";
}

}  // namespace ddl::cli
