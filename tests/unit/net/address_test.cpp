// Numeric addresses and the sets of them.
#include "net/address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "support.hpp"

namespace ddl::net {
namespace {

AddressSet set_of(const std::vector<std::string>& networks) {
    auto set = AddressSet::parse(networks);
    EXPECT_TRUE(set.has_value()) << set.error().message;
    return *set;
}

TEST(Address, TextAndBack) {
    for (const char* text : {"10.0.0.1", "127.0.0.1", "::1", "fd00::1", "0.0.0.0", "::"}) {
        const auto address = socket_address(text, 29400);
        ASSERT_TRUE(address.has_value()) << text;
        EXPECT_EQ(numeric_address(*address), text);
    }
}

TEST(Address, MappedFormsAreIPv4) {
    const auto address = socket_address("::ffff:10.1.2.3", 1);
    ASSERT_TRUE(address.has_value());
    EXPECT_EQ(address->ss_family, AF_INET6);
    EXPECT_EQ(numeric_address(*address), "10.1.2.3");
}

TEST(Address, ThePortIsInNetworkOrder) {
    EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(*socket_address("10.0.0.1", 29400)).sin_port, htons(29400));
    EXPECT_EQ(reinterpret_cast<const sockaddr_in6&>(*socket_address("::1", 29400)).sin6_port, htons(29400));
}

TEST(Address, AScopeIsUnderstoodByNameAndNumber) {
    const auto named = socket_address("fe80::1%lo", 1);
    ASSERT_TRUE(named.has_value());
    EXPECT_NE(reinterpret_cast<const sockaddr_in6&>(*named).sin6_scope_id, 0U);
    const auto numbered = socket_address("fe80::1%7", 1);
    ASSERT_TRUE(numbered.has_value());
    EXPECT_EQ(reinterpret_cast<const sockaddr_in6&>(*numbered).sin6_scope_id, 7U);
    EXPECT_EQ(numeric_address(*numbered), "fe80::1");
}

TEST(Address, NamesAndRubbishAreNoAddresses) {
    for (const char* text : {"", "h0", "localhost", "10.0.0", "10.0.0.256", "1.2.3.4.5", "[::1]", ":::", "10.0.0.1 "}) {
        EXPECT_FALSE(socket_address(text, 1).has_value()) << text;
    }
}

TEST(AddressSet, AnAddressIsItself) {
    const AddressSet set = set_of({"10.0.0.5", "fd00::7"});
    EXPECT_TRUE(set.contains("10.0.0.5"));
    EXPECT_TRUE(set.contains("fd00::7"));
    EXPECT_TRUE(set.contains("fd00:0::0007"));
    EXPECT_FALSE(set.contains("10.0.0.6"));
    EXPECT_FALSE(set.contains("fd00::8"));
}

TEST(AddressSet, MappedFormsAreNormalisedOnBothSides) {
    EXPECT_TRUE(set_of({"10.0.0.5"}).contains("::ffff:10.0.0.5"));
    EXPECT_TRUE(set_of({"::ffff:10.0.0.5"}).contains("10.0.0.5"));
    EXPECT_TRUE(set_of({"::ffff:10.0.0.0/120"}).contains("10.0.0.77"));
}

TEST(AddressSet, ScopesDoNotMatter) {
    EXPECT_TRUE(set_of({"fe80::1%eth0"}).contains("fe80::1"));
    EXPECT_TRUE(set_of({"fe80::1"}).contains("fe80::1%eth1"));
}

struct NetworkCase {
    const char* network;
    const char* inside;
    const char* outside;
};

class Networks : public testing::TestWithParam<NetworkCase> {};

TEST_P(Networks, ContainTheirAddressesOnly) {
    const AddressSet set = set_of({GetParam().network});
    EXPECT_TRUE(set.contains(GetParam().inside));
    EXPECT_FALSE(set.contains(GetParam().outside));
}

INSTANTIATE_TEST_SUITE_P(AddressSet, Networks,
                         testing::Values(NetworkCase{"10.0.0.0/24", "10.0.0.255", "10.0.1.0"},
                                         NetworkCase{"10.0.0.77/24", "10.0.0.1", "10.0.1.1"},
                                         NetworkCase{"10.0.0.0/8", "10.255.1.2", "11.0.0.1"},
                                         NetworkCase{"10.0.0.128/25", "10.0.0.128", "10.0.0.127"},
                                         NetworkCase{"10.0.0.4/30", "10.0.0.7", "10.0.0.8"},
                                         NetworkCase{"10.0.0.4/32", "10.0.0.4", "10.0.0.5"},
                                         NetworkCase{"0.0.0.0/0", "192.168.1.1", "fd00::1"},
                                         NetworkCase{"fd00::/64", "fd00::ffff", "fd00:0:0:1::1"},
                                         NetworkCase{"fd00::/7", "fc00::1", "fe80::1"},
                                         NetworkCase{"fd00::1/128", "fd00::1", "fd00::2"},
                                         NetworkCase{"2001:db8::/32", "2001:db8:1::", "10.0.0.1"}));

TEST(AddressSet, AllOfIPv6HoldsIPv4TooInItsMappedForm) {
    EXPECT_TRUE(set_of({"::/0"}).contains("fd00::1"));
    EXPECT_TRUE(set_of({"::/0"}).contains("10.0.0.1"));
}

TEST(AddressSet, AnEmptySetHoldsNothing) {
    EXPECT_FALSE(set_of({}).contains("127.0.0.1"));
    EXPECT_FALSE(set_of({"10.0.0.0/8"}).contains(""));
    EXPECT_FALSE(set_of({"10.0.0.0/8"}).contains("h0"));
}

TEST(AddressSet, BadEntriesAreNamed) {
    for (const char* text : {"h0", "10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/x", "/8", ""}) {
        const auto set = AddressSet::parse({"10.0.0.1", text});
        ASSERT_FALSE(set.has_value()) << text;
        EXPECT_NE(set.error().message.find("'" + std::string(text) + "'"), std::string::npos) << set.error().message;
    }
}

}  // namespace
}  // namespace ddl::net
