#include "os/family.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "os/family_members.hpp"
#include "os/fd.hpp"
#include "os/procfs.hpp"

namespace ddl::os {
namespace {

// No descendant of a subreaper can leave its tree, so that one needs not look at the rest of the machine.
bool is_subreaper() {
    int answer = 0;
    return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &answer) == 0 && answer != 0);
}

std::vector<Candidate> look_around(const FamilyQuery& query) {
    const pid_t self = ::getpid();
    std::vector<Candidate> candidates;
    for (ProcessFacts& facts : is_subreaper() ? descendants_of(self, query.spared) : all_processes()) {
        constexpr pid_t kKernelThreads = 2;
        if (facts.pid == self || facts.pid == kKernelThreads || facts.parent == kKernelThreads) {
            continue;
        }
        Candidate candidate;
        if (!facts.ended) {
            candidate.serial = spawn_serial(settled_environment(facts.pid), query.nonce);
        }
        candidate.facts = std::move(facts);
        candidates.push_back(std::move(candidate));
    }
    return candidates;
}

// False if the process is gone. The pidfd is opened before the second look: what that confirms is what is signalled.
bool signal_pinned(const ProcessFacts& facts, int signal) {
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, facts.pid, 0U)));
    if (!pidfd) {
        return false;
    }
    const auto again = read_process(facts.pid);
    if (!again || again->ended || again->start_ticks != facts.start_ticks) {
        return false;
    }
    return signal == 0 || ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0U) == 0;
}

}  // namespace

std::vector<Member> sweep(const FamilyQuery& query, int signal) {
    const pid_t self = ::getpid();
    std::vector<Member> members;
    for (const ProcessFacts& facts : select_family(look_around(query), query, self)) {
        if (facts.ended) {
            if (facts.parent == self) {
                ::waitpid(facts.pid, nullptr, WNOHANG);
            }
            continue;
        }
        if (signal_pinned(facts, signal)) {
            members.push_back(Member{facts.pid, facts.command, facts.state == 'D' ? read_wait_channel(facts.pid) : ""});
        }
    }
    return members;
}

}  // namespace ddl::os
