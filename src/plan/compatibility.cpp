#include "plan/compatibility.hpp"

#include <array>
#include <string_view>

#include "plan/flag_table.hpp"
#include "plan/rdzv_conf.hpp"

namespace ddl::plan {

namespace {

struct VariableNote {
    std::string_view name;
    std::string_view meaning;
};

constexpr std::array<VariableNote, 17> kGiven = {{
    {"RANK, WORLD_SIZE", "in the job"},
    {"LOCAL_RANK, LOCAL_WORLD_SIZE", "on this node; LOCAL_RANK=0 with --virtual-local-rank"},
    {"GROUP_RANK, GROUP_WORLD_SIZE", "of the node among the nodes"},
    {"ROLE_NAME, ROLE_RANK, ROLE_WORLD_SIZE", "the role and the place in it"},
    {"MASTER_ADDR", "where rank 0 lives: an address as given, else numeric (torchrun: a full host name)"},
    {"MASTER_PORT", "of the workers' store; a fresh one for every round unless a flag fixes it"},
    {"TORCHELASTIC_RESTART_COUNT", "failures of the whole job so far, equal on all ranks (torchrun: of one node)"},
    {"TORCHELASTIC_MAX_RESTARTS", "--max-restarts"},
    {"TORCHELASTIC_RUN_ID", "--rdzv-id, else a made-up one (torchrun with several nodes: none)"},
    {"TORCHELASTIC_USE_AGENT_STORE", "True; False with --worker-store=worker"},
    {"TORCHELASTIC_ERROR_FILE", "where a worker may say why it failed"},
    {"TORCHELASTIC_SIGNALS_TO_HANDLE", "--signals-to-handle"},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "inherited, else 1"},
    {"OMP_NUM_THREADS", "inherited; else 1 with several workers; --omp decides otherwise"},
    {"CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES", "inherited; one device each with --virtual-local-rank"},
    {"DDLAUNCH_GENERATION", "ours: grows with every round, for checkpoints and logs"},
    {"DDLAUNCH_TOKEN", "ours: never handed on to workers"},
}};

constexpr std::array<VariableNote, 10> kRead = {{
    {"PET_*", "defaults of torchrun's flags; switches take 1/0, true/false, yes/no, on/off"},
    {"DDL_*", "defaults of our own flags"},
    {"DDL_ETCD_PASSWORD", "the password for `user` in --rdzv-conf; never handed on to workers"},
    {"PYTHON_EXEC", "the Python for scripts and modules"},
    {"VIRTUAL_ENV, PATH",
     "where else a Python is looked for: one next to a launcher in a virtual environment goes before VIRTUAL_ENV, one "
     "next to any other launcher after it, PATH comes last"},
    {"OMP_NUM_THREADS", "if set, left alone"},
    {"CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES", "see above"},
    {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1 means --worker-store=worker"},
    {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "default of --shutdown-timeout"},
    {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "default of --log-line-prefix-template"},
}};

std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        out += c == '|' ? std::string("\\|") : std::string(1, c);
    }
    return out;
}

std::string names(const FlagInfo& entry) {
    std::string text = entry.letter == '\0' ? "`" : std::string("`-") + entry.letter + "`, `";
    text += spelling(entry.flag);
    return text + (entry.takes_value() ? " " + std::string(entry.value) : "") + "`";
}

std::string_view class_name(const FlagInfo& entry) {
    switch (entry.flag_class) {
        case FlagClass::kHarmless:
            return "no effect here";
        case FlagClass::kRefused:
            return "refused";
        case FlagClass::kUsed:
            break;
    }
    return "used";
}

std::string flag_rows(bool from_torchrun) {
    std::string text = "| flag | variable | | meaning here |\n|---|---|---|---|\n";
    for (const FlagInfo& entry : flag_table()) {
        if (entry.from_torchrun() != from_torchrun || entry.flag == Flag::kPrintCompatibility) {
            continue;
        }
        const std::string variable = variable_name(entry.flag);
        text += "| " + cell(names(entry)) + " | " + (variable.empty() ? "" : "`" + variable + "`") + " | ";
        text += std::string(class_name(entry)) + " | " + cell(entry.meaning) + " |\n";
    }
    return text;
}

template <std::size_t kCount>
std::string variable_rows(const std::array<VariableNote, kCount>& notes) {
    std::string text = "| variable | |\n|---|---|\n";
    for (const VariableNote& note : notes) {
        text += "| " + std::string(note.name) + " | " + cell(note.meaning) + " |\n";
    }
    return text;
}

std::string conf_rows() {
    std::string text = "| key | | meaning here |\n|---|---|---|\n";
    for (const RdzvConfKey& key : rdzv_conf_keys()) {
        text += "| `" + std::string(key.name) + "` | " + (key.used ? "used" : "no effect here") + " | " +
                std::string(key.meaning) + " |\n";
    }
    return text;
}

}  // namespace

std::string compatibility_document() {
    return "# Compatibility with torchrun\n\n"
           "This page is printed by `ddlaunch --print-compatibility`; a test keeps it up to date.\n\n"
           "Long flags are accepted with dashes and with underscores, as `--flag VALUE` and `--flag=VALUE`, and may "
           "be shortened as long as they stay unambiguous; a shortened flag of torchrun's keeps its meaning whatever "
           "flags ddlaunch adds. Options end at the first word that is not one, or after `--`. The command line goes "
           "before variables, variables before defaults.\n\n"
           "Typed flags without an effect here are named in one note per run (`--quiet`: none; `--strict`: an "
           "error). Contradictory, unknown and refused ones end the launch with exit code 2.\n\n"
           "## torchrun's flags\n\n" +
           flag_rows(true) + "\n## Keys of --rdzv-conf\n\n" + conf_rows() + "\n## Further flags of ddlaunch\n\n" +
           flag_rows(false) + "\n## What a worker finds in its environment\n\n" + variable_rows(kGiven) +
           "\n## Variables that are read\n\n" + variable_rows(kRead) +
           "\n## Differences on purpose\n\n"
           "- `--nnodes` above 1 without `--rdzv-endpoint` or `--master-addr` is refused, as is an endpoint called "
           "`localhost` unless it is said who hosts (`--node-rank`, or `is_host` in `--rdzv-conf`).\n"
           "- `--rdzv-endpoint` without `--rdzv-backend` means c10d.\n"
           "- `--standalone` keeps the id given by `--rdzv-id`, and is refused with several nodes.\n"
           "- Unknown signals, unknown keys of `--rdzv-conf` and workers below 1 are refused.\n"
           "- `--redirects` and `--tee` take ranks of several digits and ranges: `0-3:3,10:1`.\n"
           "- `--max-restarts` counts for the whole job, not for each node.\n"
           "- A file that starts with `#!` or is an ELF program and may be executed is executed; names in `.py` "
           "always go to Python.\n"
           "- `etcd` and `etcd-v2` both speak version 3 of etcd's API, need `--rdzv-id`, and take several endpoints.\n";
}

}  // namespace ddl::plan
