// Endpoints in every form that users write, ports and networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/grammar.hpp"

namespace ddl::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::string reason(const Result<T>& result) {
    return result ? "no error" : result.error().message;
}

struct Accepted {
    const char* text;
    const char* host;
    int port;
};

TEST(EndpointGrammar, TakesNamesAddressesAndBrackets) {
    const Accepted table[] = {
        {"h0", "h0", 29400},
        {"h0:1234", "h0", 1234},
        {" h0:1234 ", "h0", 1234},
        {"h0.cluster.local:29500", "h0.cluster.local", 29500},
        {"node_0-ib:1", "node_0-ib", 1},
        {"10.0.0.1", "10.0.0.1", 29400},
        {"10.0.0.1:65535", "10.0.0.1", 65535},
        {"localhost:0", "localhost", 0},
        {"[fd00::1]", "fd00::1", 29400},
        {"[fd00::1]:29500", "fd00::1", 29500},
        {"[::1]:5", "::1", 5},
        {"[::]:5", "::", 5},
        {"[::ffff:10.0.0.1]:5", "::ffff:10.0.0.1", 5},
        {"[fe80::1%eth0]:5", "fe80::1%eth0", 5},
        {"[1:2:3:4:5:6:7:8]:9", "1:2:3:4:5:6:7:8", 9},
    };
    for (const Accepted& row : table) {
        const Result<Endpoint> endpoint = parse_endpoint(row.text, 29400);
        ASSERT_TRUE(endpoint.has_value()) << row.text << ": " << reason(endpoint);
        EXPECT_EQ(endpoint->host, row.host) << row.text;
        EXPECT_EQ(endpoint->port, row.port) << row.text;
    }
}

TEST(EndpointGrammar, BareIpv6IsTakenWhereItCanBeReadInOneWayOnly) {
    EXPECT_EQ(parse_endpoint("fd00::1", 29400), (Endpoint{"fd00::1", 29400}));
    EXPECT_EQ(parse_endpoint("::1", 29400), (Endpoint{"::1", 29400}));
    EXPECT_EQ(parse_endpoint("1:2:3:4:5:6:7:8", 29400), (Endpoint{"1:2:3:4:5:6:7:8", 29400}));
    EXPECT_EQ(parse_endpoint("fd00::1:29400", 1), (Endpoint{"fd00::1", 29400}));
    EXPECT_EQ(parse_endpoint("1:2:3:4:5:6:7:8:9000", 1), (Endpoint{"1:2:3:4:5:6:7:8", 9000}));
}

TEST(EndpointGrammar, BareIpv6ThatCanBeReadInTwoWaysIsRefused) {
    EXPECT_EQ(reason(parse_endpoint("fd00::1:5000", 29400)),
              "\"fd00::1:5000\" can be read with and without a port; try [fd00::1]:5000 or [fd00::1:5000]");
}

TEST(EndpointGrammar, SaysWhatIsWrong) {
    const std::string no_host = " has no host name or address in front; try h0:29400";
    const std::string ipv6 = " is not an IPv6 endpoint; try [fd00::1]:29400";
    const std::string shape = " is not HOST:PORT; try h0:29400 or [fd00::1]:29400";
    EXPECT_EQ(reason(parse_endpoint("", 1)), "\"\"" + no_host);
    EXPECT_EQ(reason(parse_endpoint(":29400", 1)), "\":29400\"" + no_host);
    EXPECT_EQ(reason(parse_endpoint("h 0:1", 1)), "\"h 0:1\"" + no_host);
    EXPECT_EQ(reason(parse_endpoint("h0/x", 1)), "\"h0/x\"" + no_host);
    EXPECT_EQ(reason(parse_endpoint("h0:", 1)), "\"\" is not a port (0 to 65535)");
    EXPECT_EQ(reason(parse_endpoint("h0:http", 1)), "\"http\" is not a port (0 to 65535)");
    EXPECT_EQ(reason(parse_endpoint("h0:65536", 1)), "\"65536\" is not a port (0 to 65535)");
    EXPECT_EQ(reason(parse_endpoint("h0:-1", 1)), "\"-1\" is not a port (0 to 65535)");
    EXPECT_EQ(reason(parse_endpoint("h0:+1", 1)), "\"+1\" is not a port (0 to 65535)");
    EXPECT_EQ(reason(parse_endpoint("[fd00::1]:", 1)), "\"\" is not a port (0 to 65535)");
    EXPECT_EQ(reason(parse_endpoint("[fd00::1", 1)), "\"[fd00::1\"" + ipv6);
    EXPECT_EQ(reason(parse_endpoint("[fd00::1]x", 1)), "\"[fd00::1]x\"" + ipv6);
    EXPECT_EQ(reason(parse_endpoint("[h0]:1", 1)), "\"[h0]:1\"" + ipv6);
    EXPECT_EQ(reason(parse_endpoint("[]:1", 1)), "\"[]:1\"" + ipv6);
    EXPECT_EQ(reason(parse_endpoint("a:b:c", 1)), "\"a:b:c\"" + shape);
    EXPECT_EQ(reason(parse_endpoint("h0:1:2", 1)), "\"h0:1:2\"" + shape);
    EXPECT_EQ(reason(parse_endpoint("::1::2", 1)), "\"::1::2\"" + shape);
    EXPECT_EQ(reason(parse_endpoint("tcp://h0:1", 1)), "\"tcp://h0:1\" is a URL; try HOST:PORT");
    EXPECT_EQ(reason(parse_endpoint("h0,h1:1", 1)),
              "\"h0,h1:1\" is a list, but one endpoint is needed; try the first of them");
}

TEST(EndpointListGrammar, ThePortOfTheLastIsThatOfAllWithout) {
    using Endpoints = std::vector<Endpoint>;
    EXPECT_EQ(*parse_endpoints("h0", 29400), (Endpoints{{"h0", 29400}}));
    EXPECT_EQ(*parse_endpoints("h0,h1,h2", 29400), (Endpoints{{"h0", 29400}, {"h1", 29400}, {"h2", 29400}}));
    EXPECT_EQ(*parse_endpoints("h0, h1 ,h2:5", 29400), (Endpoints{{"h0", 5}, {"h1", 5}, {"h2", 5}}));
    EXPECT_EQ(*parse_endpoints("h0:1,h1,h2:5", 29400), (Endpoints{{"h0", 1}, {"h1", 5}, {"h2", 5}}));
    EXPECT_EQ(*parse_endpoints("h0:1,h1", 29400), (Endpoints{{"h0", 1}, {"h1", 29400}}));
    EXPECT_EQ(*parse_endpoints("fd00::1,[fd00::2]:7", 29400), (Endpoints{{"fd00::1", 7}, {"fd00::2", 7}}));
    EXPECT_EQ(*parse_endpoints("h0:1,h0:2", 29400), (Endpoints{{"h0", 1}, {"h0", 2}}));
}

TEST(EndpointListGrammar, SaysWhatIsWrong) {
    const std::string no_host = " has no host name or address in front; try h0:29400";
    EXPECT_EQ(reason(parse_endpoints("", 1)), "\"\"" + no_host);
    EXPECT_EQ(reason(parse_endpoints("h0,", 1)), "\"\"" + no_host);
    EXPECT_EQ(reason(parse_endpoints("h0,,h1", 1)), "\"\"" + no_host);
    EXPECT_EQ(reason(parse_endpoints("h0:x,h1", 1)), "\"x\" is not a port (0 to 65535)");
    EXPECT_EQ(reason(parse_endpoints("h0,h1,h0", 1)), "\"h0,h1,h0\" names h0:1 twice; leave one of them out");
    EXPECT_EQ(reason(parse_endpoints("h0,h0:1", 9)), "\"h0,h0:1\" names h0:1 twice; leave one of them out");
    EXPECT_EQ(reason(parse_endpoints("a,b,c,d,e,f,g,h", 1)), "\"a,b,c,d,e,f,g,h\" are 8 endpoints; try at most 7");
}

TEST(HostGrammar, HasNoPort) {
    EXPECT_EQ(parse_host("h0"), "h0");
    EXPECT_EQ(parse_host("10.0.0.1"), "10.0.0.1");
    EXPECT_EQ(parse_host("fd00::1:5000"), "fd00::1:5000");
    EXPECT_EQ(parse_host("[fd00::1]"), "fd00::1");
    const std::string shape = " is not a host name or an address without a port; try h0 or 10.0.0.1";
    EXPECT_EQ(reason(parse_host("h0:29500")), "\"h0:29500\"" + shape);
    EXPECT_EQ(reason(parse_host("[h0]")), "\"[h0]\"" + shape);
    EXPECT_EQ(reason(parse_host("")), "\"\"" + shape);
    EXPECT_EQ(reason(parse_host("a b")), "\"a b\"" + shape);
}

TEST(Loopback, IsRecognisedByNameAndAddress) {
    for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "ip6-localhost"}) {
        EXPECT_TRUE(is_loopback_host(host)) << host;
    }
    for (const char* host : {"h0", "10.0.0.1", "localhost.example.com", "127.example.com", "::2", "128.0.0.1", ""}) {
        EXPECT_FALSE(is_loopback_host(host)) << host;
    }
}

TEST(PortRangeGrammar, OnePortIsFixed) {
    const Result<PortRange> one = parse_port_range("29500");
    ASSERT_TRUE(one.has_value());
    EXPECT_TRUE(one->fixed());
    EXPECT_EQ(one->first, 29500);
    const Result<PortRange> several = parse_port_range("29500-29599");
    ASSERT_TRUE(several.has_value());
    EXPECT_FALSE(several->fixed());
    EXPECT_EQ(several->first, 29500);
    EXPECT_EQ(several->last, 29599);
}

TEST(PortRangeGrammar, SaysWhatIsWrong) {
    const std::string shape = " is neither a port nor a range of ports; try 29500 or 29500-29599";
    EXPECT_EQ(reason(parse_port_range("0")), "\"0\"" + shape);
    EXPECT_EQ(reason(parse_port_range("")), "\"\"" + shape);
    EXPECT_EQ(reason(parse_port_range("65536")), "\"65536\"" + shape);
    EXPECT_EQ(reason(parse_port_range("1-2-3")), "\"1-2-3\"" + shape);
    EXPECT_EQ(reason(parse_port_range("a-b")), "\"a-b\"" + shape);
    EXPECT_EQ(reason(parse_port_range("9-8")), "\"9-8\" has its bounds the wrong way round; try 8-9");
}

TEST(NetworksGrammar, AddressesNetworksAndAny) {
    EXPECT_THAT(*parse_networks("any"), ElementsAre("any"));
    EXPECT_THAT(*parse_networks("10.0.0.0/8"), ElementsAre("10.0.0.0/8"));
    EXPECT_THAT(*parse_networks("10.1.2.3, fd00::/8"), ElementsAre("10.1.2.3", "fd00::/8"));
    const std::string shape = " is not an address or a network; try 10.0.0.0/8 or any";
    EXPECT_EQ(reason(parse_networks("10.0.0.0/33")), "\"10.0.0.0/33\"" + shape);
    EXPECT_EQ(reason(parse_networks("fd00::/129")), "\"fd00::/129\"" + shape);
    EXPECT_EQ(reason(parse_networks("10.0.0/8")), "\"10.0.0/8\"" + shape);
    EXPECT_EQ(reason(parse_networks("10.0.0.256")), "\"10.0.0.256\"" + shape);
    EXPECT_EQ(reason(parse_networks("h0")), "\"h0\"" + shape);
    EXPECT_EQ(reason(parse_networks("10.0.0.1/")), "\"10.0.0.1/\"" + shape);
    EXPECT_THAT(reason(parse_networks("10.0.0.1,")), HasSubstr(shape));
}

}  // namespace
}  // namespace ddl::plan
