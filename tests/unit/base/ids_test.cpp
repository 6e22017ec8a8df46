#include "base/ids.hpp"

#include <gtest/gtest.h>

namespace ddl {
namespace {

TEST(Generation, OrdersByTermThenCounter) {
    EXPECT_LT((Generation{0, 9}), (Generation{1, 1}));
    EXPECT_LT((Generation{1, 1}), (Generation{1, 2}));
    EXPECT_EQ((Generation{1, 2}), (Generation{1, 2}));
}

TEST(Generation, NumberGrowsWithEveryRoundAndEveryTerm) {
    EXPECT_EQ((Generation{0, 0}).number(), 0U);
    EXPECT_EQ((Generation{0, 7}).number(), 7U);
    EXPECT_LT((Generation{0, 999'999}).number(), (Generation{1, 0}).number());
    EXPECT_EQ((Generation{2, 3}).number(), 2'000'003U);
}

}  // namespace
}  // namespace ddl
