// docs/COMPATIBILITY.md is what the launcher prints of itself, and complete.
#include "plan/compatibility.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "plan/flag_table.hpp"

namespace ddl::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Compatibility, TheDocumentIsUpToDate) {
    std::ifstream file(DDLAUNCH_COMPATIBILITY_DOCUMENT);
    ASSERT_TRUE(file.is_open()) << DDLAUNCH_COMPATIBILITY_DOCUMENT;
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_EQ(text, compatibility_document()) << "run: ddlaunch --print-compatibility > docs/COMPATIBILITY.md";
}

TEST(Compatibility, NamesEveryFlagAndItsVariable) {
    const std::string text = compatibility_document();
    for (const FlagInfo& entry : flag_table()) {
        if (entry.flag == Flag::kPrintCompatibility) {
            continue;
        }
        EXPECT_THAT(text, HasSubstr(spelling(entry.flag)));
        if (const std::string variable = variable_name(entry.flag); !variable.empty()) {
            EXPECT_THAT(text, HasSubstr("`" + variable + "`"));
        }
    }
}

TEST(Compatibility, TableCellsAreEscaped) {
    const std::string text = compatibility_document();
    EXPECT_THAT(text, HasSubstr("| `--nnodes N\\|MIN:MAX` | `PET_NNODES` | used |"));
    EXPECT_THAT(text, HasSubstr("| `-r`, `--redirects SPEC` |"));
    EXPECT_THAT(text, HasSubstr("| `--start-method METHOD` | `PET_START_METHOD` | no effect here |"));
    EXPECT_THAT(text, HasSubstr("| `--logs-specs NAME` |  | refused |"));
    EXPECT_THAT(text, HasSubstr("| `join_timeout` | used |"));
    EXPECT_THAT(text, Not(HasSubstr("| `--print-compatibility`")));
}

}  // namespace
}  // namespace ddl::plan
