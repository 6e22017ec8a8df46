// How the steps of the derivation read what was asked: origins, the first error, and what is worth a note.
#include "plan/asked.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/quoted.hpp"
#include "unit/plan/plan_fixture.hpp"

namespace ddl::plan::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Result<int> only_seven(std::string_view text) {
    return text == "7" ? Result<int>(7) : fail(plan::quoted(text) + " is not 7");
}

TEST(Asked, TellsGivenFromTypedFromOn) {
    Requested requested = by_variables({{Flag::kStandalone, "0"}, {Flag::kNnodes, "2"}});
    requested.set(Flag::kQuiet, {"1", "-q", true});
    const Asked asked(requested);
    EXPECT_TRUE(asked.given(Flag::kStandalone));
    EXPECT_FALSE(asked.on(Flag::kStandalone)) << "a variable may switch it off";
    EXPECT_FALSE(asked.typed(Flag::kNnodes));
    EXPECT_TRUE(asked.typed(Flag::kQuiet));
    EXPECT_TRUE(asked.on(Flag::kQuiet));
    EXPECT_FALSE(asked.given(Flag::kRole));
    EXPECT_EQ(asked.text(Flag::kNnodes), "2");
    EXPECT_EQ(asked.text(Flag::kRole), "");
    EXPECT_THAT(asked.program(), ElementsAre("train.py"));
}

TEST(Asked, BlamesWhereTheValueCameFrom) {
    const Requested typed = request({{Flag::kNnodes, "2"}});
    const Requested variable = by_variables({{Flag::kNnodes, "2"}, {Flag::kStorePort, "1"}});
    EXPECT_EQ(Asked(typed).origin(Flag::kNnodes), "--nnodes");
    EXPECT_EQ(Asked(variable).origin(Flag::kNnodes), "PET_NNODES");
    EXPECT_EQ(Asked(variable).origin(Flag::kStorePort), "DDL_STORE_PORT");
    EXPECT_EQ(Asked(variable).origin(Flag::kRole), "--role") << "of what nobody gave, the flag to give";
}

TEST(Asked, AValueIsParsedOnceGivenAndElseTheFallback) {
    const Requested requested = request({{Flag::kNnodes, "7"}, {Flag::kRole, ""}});
    Asked asked(requested);
    EXPECT_EQ(asked.value(Flag::kNnodes, 1, only_seven), 7);
    EXPECT_EQ(asked.value(Flag::kMaxRestarts, 3, only_seven), 3);
    EXPECT_FALSE(asked.error().has_value());
    EXPECT_EQ(asked.value(Flag::kRole, 3, only_seven), 3) << "an empty text is a text";
    ASSERT_TRUE(asked.error().has_value());
    EXPECT_EQ(asked.error()->message, "--role: \"\" is not 7");
}

TEST(Asked, TheFirstErrorStays) {
    const Requested requested = request({{Flag::kNnodes, "8"}, {Flag::kRole, "9"}});
    Asked asked(requested);
    EXPECT_EQ(asked.value(Flag::kNnodes, 1, only_seven), 1);
    EXPECT_EQ(asked.value(Flag::kRole, 1, only_seven), 1);
    asked.refuse(Flag::kQuiet, "too late");
    asked.refuse("also too late");
    EXPECT_EQ(asked.error()->message, "--nnodes: \"8\" is not 7");
}

TEST(Asked, OnlyWhatWasTypedIsWorthANote) {
    Requested requested = by_variables({{Flag::kNodeRank, "0"}});
    requested.set(Flag::kStartMethod, {"fork", "--start-method", true});
    requested.set(Flag::kRdzvConf, {"timeout=1", "--rdzv-conf", true});
    Asked asked(requested);
    EXPECT_THAT(asked.no_effect(), IsEmpty());
    asked.note_no_effect(Flag::kNodeRank);
    asked.note_no_effect(Flag::kStartMethod);
    asked.note_no_effect(Flag::kMonitorInterval);
    asked.note_no_effect(Flag::kRdzvConf, "timeout");
    EXPECT_THAT(asked.no_effect(), ElementsAre("--start-method", "--rdzv-conf timeout"));
}

TEST(Quoted, ReplacesControlCharactersAndCutsLongTexts) {
    EXPECT_EQ(plan::quoted("a"), "\"a\"");
    EXPECT_EQ(plan::quoted(""), "\"\"");
    EXPECT_EQ(plan::quoted(std::string("\0\t\r\n\x7F\x1B", 6)), "\"??????\"");
    EXPECT_EQ(plan::quoted("\xC3\xA4"), "\"\xC3\xA4\"") << "letters beyond ASCII stay";
    EXPECT_EQ(plan::quoted(std::string(120, 'x')), "\"" + std::string(120, 'x') + "\"");
    EXPECT_EQ(plan::quoted(std::string(121, 'x')), "\"" + std::string(120, 'x') + "...\"");
}

}  // namespace
}  // namespace ddl::plan::testing
