// The launcher: argv -> command -> plan -> driver. Nothing is decided here.

#include <cstdio>
#include <string>
#include <variant>

#include "cli/options.hpp"
#include "net/bare_store.hpp"
#include "os/host.hpp"
#include "plan/dry_run.hpp"
#include "plan/make_plan.hpp"
#include "run/launch.hpp"

namespace {

using namespace ddl;

int complain(const Error& error) {
    std::fprintf(stderr, "ddlaunch: %s\n", error.message.c_str());
    return plan::kUsageError;
}

int perform(const cli::PrintText& command, const char* /*invoked_as*/) {
    std::fputs(command.text.c_str(), stdout);
    return 0;
}

int perform(const cli::ServeStore& command, const char* /*invoked_as*/) {
    net::BareStoreOptions options;
    options.reach = command.everywhere ? net::Reach::kEverywhere : net::Reach::kLoopback;
    options.port = command.port;
    options.compat = command.compat;
    options.allow = {command.allow.empty(), command.allow};
    options.listening = [](const std::string& line) {
        std::printf("%s\n", line.c_str());
        std::fflush(stdout);
    };
    options.warn = [](const std::string& line) {
        std::fprintf(stderr, "ddlaunch: %s\n", line.c_str());
    };
    const Result<void> served = net::run_bare_store(std::move(options));
    return served ? 0 : complain(served.error());
}

int perform(const cli::Launch& command, const char* invoked_as) {
    const plan::HostFacts facts = run::host_facts(invoked_as);
    const Result<plan::LaunchPlan> plan = plan::make_plan(command.requested, facts);
    if (!plan) {
        return complain(plan.error());
    }
    return command.dry_run ? perform(cli::PrintText{plan::describe(*plan, facts.environment)}, invoked_as)
                           : run::launch(*plan);
}

}  // namespace

int main(int argc, char** argv) {
    const auto command = cli::parse(argc, argv, os::environment());
    return command ? std::visit([&](const auto& c) { return perform(c, argv[0]); }, *command)
                   : complain(command.error());
}
