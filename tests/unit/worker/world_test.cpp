#include "ddlaunch/worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace ddlaunch {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

const Variables kComplete = {{"RANK", "5"},
                             {"WORLD_SIZE", "6"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"GROUP_RANK", "2"},
                             {"GROUP_WORLD_SIZE", "3"},
                             {"MASTER_ADDR", "10.0.0.1"},
                             {"MASTER_PORT", "29500"},
                             {"DDLAUNCH_GENERATION", "4"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_MAX_RESTARTS", "3"},
                             {"TORCHELASTIC_RUN_ID", "job"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

class Worlds : public testing::Test {
protected:
    void SetUp() override {
        for (const auto& [name, value] : kComplete) {
            ::unsetenv(name.c_str());
        }
    }
    void TearDown() override {
        SetUp();
    }

    static World from(const Variables& variables) {
        for (const auto& [name, value] : variables) {
            ::setenv(name.c_str(), value.c_str(), 1);
        }
        return World::from_environment();
    }

    static Variables with(const std::string& name, const std::string& value) {
        Variables variables = kComplete;
        variables[name] = value;
        return variables;
    }

    static std::string error_from(const Variables& variables) {
        try {
            static_cast<void>(from(variables));
        } catch (const EnvironmentError& error) {
            return error.what();
        }
        return "no error";
    }
};

TEST_F(Worlds, WithoutALauncherAWorldOfOne) {
    const World world = from({});
    EXPECT_FALSE(world.launched);
    EXPECT_EQ(world.rank, 0);
    EXPECT_EQ(world.world_size, 1);
    EXPECT_THROW(static_cast<void>(world.connect_store()), StoreError);
}

TEST_F(Worlds, AStrayMasterAddressIsNoJob) {
    EXPECT_FALSE(from({{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}}).launched);
}

TEST_F(Worlds, EverythingIsRead) {
    const World world = from(kComplete);
    EXPECT_TRUE(world.launched);
    EXPECT_EQ(world.rank, 5);
    EXPECT_EQ(world.world_size, 6);
    EXPECT_EQ(world.local_rank, 1);
    EXPECT_EQ(world.local_world_size, 2);
    EXPECT_EQ(world.node, 2);
    EXPECT_EQ(world.nodes, 3);
    EXPECT_EQ(world.master_addr, "10.0.0.1");
    EXPECT_EQ(world.master_port, 29500);
    EXPECT_EQ(world.generation, 4U);
    EXPECT_EQ(world.restart_count, 2);
    EXPECT_EQ(world.max_restarts, 3);
    EXPECT_EQ(world.job_id, "job");
    EXPECT_TRUE(world.store_is_served);
}

TEST_F(Worlds, WhatOnlySomeLaunchersSayMayBeMissing) {
    Variables least = kComplete;
    for (const char* name : {"GROUP_WORLD_SIZE", "DDLAUNCH_GENERATION", "TORCHELASTIC_RESTART_COUNT",
                             "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"}) {
        least.erase(name);
    }
    const World world = from(least);
    EXPECT_TRUE(world.launched);
    EXPECT_EQ(world.nodes, 0);
    EXPECT_EQ(world.generation, 0U);
    EXPECT_FALSE(world.store_is_served);
}

TEST_F(Worlds, EachMissingNameIsNamed) {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
        SetUp();
        Variables incomplete = kComplete;
        incomplete.erase(name);
        EXPECT_THAT(error_from(incomplete), HasSubstr(std::string(name) + " missing"));
    }
}

TEST_F(Worlds, AnEmptyVariableIsMissing) {
    EXPECT_THAT(error_from(with("MASTER_ADDR", "")), HasSubstr("MASTER_ADDR missing"));
}

TEST_F(Worlds, HalfASetNamesBothHalves) {
    const std::string error = error_from({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
    EXPECT_THAT(error, HasSubstr("LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT missing"));
    EXPECT_THAT(error, HasSubstr("RANK, WORLD_SIZE set"));
}

TEST_F(Worlds, NumbersAreNumbers) {
    EXPECT_THAT(error_from(with("RANK", "one")), HasSubstr("RANK=one is not a number"));
    EXPECT_THAT(error_from(with("WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE=0 is not a number between 1"));
    EXPECT_THAT(error_from(with("MASTER_PORT", "65536")), HasSubstr("MASTER_PORT=65536"));
    EXPECT_THAT(error_from(with("LOCAL_RANK", "-1")), HasSubstr("LOCAL_RANK=-1"));
    EXPECT_THAT(error_from(with("TORCHELASTIC_RESTART_COUNT", "x")), HasSubstr("TORCHELASTIC_RESTART_COUNT=x"));
}

TEST_F(Worlds, PlacesFitIntoSizes) {
    EXPECT_THAT(error_from(with("RANK", "6")), HasSubstr("RANK=6 is not below WORLD_SIZE=6"));
    EXPECT_THAT(error_from(with("LOCAL_RANK", "2")), HasSubstr("LOCAL_RANK=2 is not below LOCAL_WORLD_SIZE=2"));
    EXPECT_THAT(error_from(with("GROUP_RANK", "3")), HasSubstr("GROUP_RANK=3 is not below GROUP_WORLD_SIZE=3"));
    EXPECT_THAT(error_from(with("LOCAL_WORLD_SIZE", "7")), HasSubstr("LOCAL_WORLD_SIZE=7 is more than WORLD_SIZE=6"));
}

}  // namespace
}  // namespace ddlaunch
