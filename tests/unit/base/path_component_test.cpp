#include "base/path_component.hpp"

#include <gtest/gtest.h>

#include <set>

namespace ddl {
namespace {

TEST(PathComponent, LeavesHarmlessNamesAlone) {
    EXPECT_EQ(path_component("job-1_a.b"), "job-1_a.b");
}

TEST(PathComponent, IsOneShortComponentAndKeepsNamesApart) {
    std::set<std::string> seen;
    for (const std::string& name :
         {std::string("a/b"), std::string("a_b"), std::string("a b"), std::string(".."), std::string("."),
          std::string(), std::string(300, 'x'), std::string(301, 'x'), std::string("..\n"), std::string("\xc3\xa4")}) {
        const std::string component = path_component(name);
        EXPECT_LE(component.size(), 100U);
        EXPECT_FALSE(component.empty());
        EXPECT_EQ(component.find_first_of("/ \n"), std::string::npos) << component;
        EXPECT_NE(component[0], '.');
        EXPECT_TRUE(seen.insert(component).second) << component << " stands for two names";
    }
}

}  // namespace
}  // namespace ddl
