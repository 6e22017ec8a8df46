// The launcher: argv -> command -> plan -> run. Nothing is decided here.

#include <cstdio>
#include <string>
#include <variant>

#include "cli/options.hpp"
#include "os/host.hpp"
#include "os/inherited.hpp"
#include "plan/dry_run.hpp"
#include "plan/make_plan.hpp"
#include "run/launch.hpp"

namespace {

using namespace ddl;

int complain(const Error& error) {
    std::fprintf(stderr, "ddlaunch: %s\n", error.message.c_str());
    return plan::kUsageError;
}

int print(const std::string& text) {
    return std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}

int perform(const cli::PrintText& command, const char* /*invoked_as*/) {
    return print(command.text);
}

int perform(const cli::ServeStore& command, const char* /*invoked_as*/) {
    const Result<void> served = run::serve_store({command.port, command.everywhere, command.compat, command.allow});
    return served ? 0 : complain(served.error());
}

int perform(const cli::Launch& command, const char* invoked_as) {
    const plan::HostFacts facts = run::host_facts(invoked_as);
    const Result<plan::LaunchPlan> plan = plan::make_plan(command.requested, facts);
    if (!plan) {
        return complain(plan.error());
    }
    return command.dry_run ? print(plan::describe(*plan, facts)) : run::launch(*plan);
}

}  // namespace

int main(int argc, char** argv) {
    os::repair_inherited_state();
    const auto command = cli::parse(argc, argv, os::environment());
    return command ? std::visit([&](const auto& c) { return perform(c, argv[0]); }, *command)
                   : complain(command.error());
}
