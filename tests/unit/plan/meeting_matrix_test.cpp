// Every combination of the flags that say where and how nodes meet: a plan that can work, or one line that helps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "plan/grammar.hpp"
#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

constexpr const char* kAbsent = nullptr;

struct Axis {
    Flag flag;
    std::vector<const char*> texts;
};

const std::vector<Axis>& axes() {
    static const std::vector<Axis> all = {
        {Flag::kStandalone, {kAbsent, "1"}},
        {Flag::kNnodes, {kAbsent, "1", "1:1", "2", "1:2"}},
        {Flag::kRdzvBackend, {kAbsent, "c10d", "static"}},
        {Flag::kRdzvEndpoint, {kAbsent, "localhost:0", "127.0.0.1:29400", "h0", "h0:6000", "10.0.0.5:0"}},
        {Flag::kMasterAddr, {kAbsent, "localhost", "h0"}},
        {Flag::kMasterPort, {kAbsent, "0", "6000"}},
        {Flag::kNodeRank, {kAbsent, "0", "1"}},
        {Flag::kRdzvConf, {kAbsent, "is_host=1", "is_host=0"}},
        {Flag::kWorkerStore, {kAbsent, "worker"}},
    };
    return all;
}

struct Combination {
    Requested requested;
    std::string text;  // for messages

    [[nodiscard]] bool has(Flag flag) const {
        return requested[flag].has_value();
    }
};

// The `number`th combination, as digits of a mixed base.
Combination combination(std::size_t number, bool typed) {
    Combination made;
    made.requested.program = {"train.py"};
    for (const Axis& axis : axes()) {
        const char* text = axis.texts[number % axis.texts.size()];
        number /= axis.texts.size();
        if (text != kAbsent) {
            made.requested.set(axis.flag, {text, typed ? spelling(axis.flag) : variable_name(axis.flag), typed});
            made.text += " " + spelling(axis.flag) + "=" + text;
        }
    }
    return made;
}

std::size_t combinations() {
    std::size_t count = 1;
    for (const Axis& axis : axes()) {
        count *= axis.texts.size();
    }
    return count;
}

void check_refusal(const std::string& message, const Combination& made) {
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 300U) << message;
    const bool blames_what_was_given = std::any_of(axes().begin(), axes().end(), [&](const Axis& axis) {
        return made.has(axis.flag) && message.starts_with(made.requested[axis.flag]->origin + ": ");
    });
    EXPECT_TRUE(blames_what_was_given) << message << "\n for" << made.text;
}

void check_local(const LaunchPlan& plan, const std::string& text) {
    EXPECT_EQ(plan.rendezvous.max_nodes, 1) << text;
    EXPECT_EQ(plan.rendezvous.node_rank, std::nullopt) << text;
    EXPECT_EQ(plan.loopback_only, plan.master_addr.empty() || is_loopback_host(plan.master_addr)) << text;
    EXPECT_TRUE(plan.store_ports.first == 0 || plan.store_ports.fixed()) << text;
}

void check_dynamic(const LaunchPlan& plan, const std::string& text) {
    EXPECT_FALSE(plan.loopback_only) << text;
    EXPECT_NE(plan.rendezvous.endpoint.port, 0) << text;
    EXPECT_FALSE(plan.rendezvous.endpoint.host.empty()) << text;
    if (plan.rendezvous.max_nodes > 1 && is_loopback_host(plan.rendezvous.endpoint.host)) {
        EXPECT_TRUE(plan.rendezvous.is_host.has_value()) << "every node would host for itself:" << text;
    }
    if (plan.store_ports.fixed()) {
        EXPECT_FALSE(plan.store_ports.first == plan.rendezvous.endpoint.port &&
                     plan.master_addr == plan.rendezvous.endpoint.host)
            << "agents and rank 0 on one port:" << text;
    }
}

void check_static(const LaunchPlan& plan, const std::string& text) {
    ASSERT_TRUE(plan.rendezvous.node_rank.has_value()) << text;
    EXPECT_EQ(plan.rendezvous.min_nodes, plan.rendezvous.max_nodes) << text;
    EXPECT_LT(*plan.rendezvous.node_rank, plan.rendezvous.max_nodes) << text;
    EXPECT_EQ(plan.worker_store, WorkerStore::kAgent) << text;
    EXPECT_EQ(plan.store_ports.first, plan.rendezvous.endpoint.port) << text;
    EXPECT_TRUE(plan.store_ports.fixed()) << text;
    EXPECT_EQ(plan.rendezvous.is_host.value_or(*plan.rendezvous.node_rank == 0), *plan.rendezvous.node_rank == 0)
        << text;
}

void check_plan(const LaunchPlan& plan, const Combination& made) {
    const std::string& text = made.text;
    EXPECT_GE(plan.rendezvous.min_nodes, 1) << text;
    EXPECT_LE(plan.rendezvous.min_nodes, plan.rendezvous.max_nodes) << text;
    EXPECT_FALSE(plan.rendezvous.job_id.empty()) << text;
    EXPECT_GT(plan.rendezvous.join_timeout, Duration::zero()) << text;
    if (made.has(Flag::kWorkerStore) && plan.rendezvous.kind != Rendezvous::kStatic) {
        EXPECT_EQ(plan.worker_store, WorkerStore::kWorker) << text;
    }
    switch (plan.rendezvous.kind) {
        case Rendezvous::kLocal:
            return check_local(plan, text);
        case Rendezvous::kDynamic:
            return check_dynamic(plan, text);
        case Rendezvous::kStatic:
            return check_static(plan, text);
        case Rendezvous::kEtcd:
            ADD_FAILURE() << "nobody asked for etcd:" << text;
    }
}

// Which flags have no effect is for people who typed them; it must not change what is planned. One exception is meant:
// a typed endpoint contradicts --standalone, a variable's gives way to it.
void check_same_by_variables(const LaunchPlan& typed, std::size_t number) {
    const Combination made = combination(number, false);
    const Result<LaunchPlan> plan = make_plan(made.requested, machine());
    ASSERT_TRUE(plan) << plan.error().message << "\n for" << made.text;
    EXPECT_TRUE(plan->notes.empty()) << plan->notes.front() << "\n for" << made.text;
    EXPECT_EQ(plan->rendezvous.kind, typed.rendezvous.kind) << made.text;
    EXPECT_EQ(plan->rendezvous.endpoint, typed.rendezvous.endpoint) << made.text;
    EXPECT_EQ(plan->rendezvous.node_rank, typed.rendezvous.node_rank) << made.text;
    EXPECT_EQ(plan->store_ports.first, typed.store_ports.first) << made.text;
    EXPECT_EQ(plan->master_addr, typed.master_addr) << made.text;
}

TEST(MeetingMatrix, EveryCombinationCanWorkOrIsRefusedInOneLine) {
    std::array<std::size_t, 4> kinds{};
    std::size_t refused = 0;
    for (std::size_t number = 0; number < combinations(); ++number) {
        const Combination made = combination(number, true);
        const Result<LaunchPlan> plan = make_plan(made.requested, machine());
        if (!plan) {
            ++refused;
            check_refusal(plan.error().message, made);
        } else {
            ++kinds[static_cast<std::size_t>(plan->rendezvous.kind)];
            check_plan(*plan, made);
            if (number % 5 == 0) {
                check_same_by_variables(*plan, number);
            }
        }
        if (::testing::Test::HasFailure()) {
            return;  // one is enough to look at
        }
    }
    for (const Rendezvous kind : {Rendezvous::kLocal, Rendezvous::kDynamic, Rendezvous::kStatic}) {
        EXPECT_GT(kinds[static_cast<std::size_t>(kind)], 100U);
    }
    EXPECT_GT(refused, 100U);
}

// What is refused for a value on the command line is refused for the same value in a variable, in the same words.
TEST(MeetingMatrix, RefusalsDifferOnlyInWhomTheyBlame) {
    for (std::size_t number = 0; number < combinations(); number += 7) {
        const Combination typed = combination(number, true);
        const Combination by_variable = combination(number, false);
        const Result<LaunchPlan> first = make_plan(typed.requested, machine());
        const Result<LaunchPlan> second = make_plan(by_variable.requested, machine());
        if (second) {
            continue;
        }
        ASSERT_FALSE(first) << "only variables refused:" << typed.text << "\n" << second.error().message;
        const auto reason = [](const std::string& message) {
            return message.substr(message.find(": "), 30);
        };
        if (!typed.has(Flag::kStandalone)) {
            EXPECT_EQ(reason(first.error().message), reason(second.error().message)) << typed.text;
        }
    }
}

}  // namespace
}  // namespace ddl::plan::testing
