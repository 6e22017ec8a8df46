// Endpoints, ports and networks. No resolver and no system call: a host is text until net looks it up.
#include <algorithm>

#include "base/text.hpp"
#include "plan/grammar.hpp"
#include "plan/quoted.hpp"

namespace ddl::plan {

namespace {

constexpr int kMaxPort = 65'535;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_ipv4(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, '.');
    return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
               return !part.empty() && part.size() <= 3 && std::all_of(part.begin(), part.end(), is_digit) &&
                      parse_integer(part).value_or(256) <= 255;
           });
}

// The number of 16-bit groups in "a:b:c" (a dotted quad at the end counts two); -1 when it isn't that.
int count_groups(std::string_view text) {
    if (text.empty()) {
        return 0;
    }
    int groups = 0;
    const std::vector<std::string_view> parts = split(text, ':');
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string_view part = parts[i];
        if (i + 1 == parts.size() && is_ipv4(part)) {
            groups += 2;
        } else if (!part.empty() && part.size() <= 4 && std::all_of(part.begin(), part.end(), is_hex)) {
            ++groups;
        } else {
            return -1;
        }
    }
    return groups;
}

bool is_ipv6(std::string_view text) {
    text = text.substr(0, text.find('%'));
    const std::size_t gap = text.find("::");
    if (gap == std::string_view::npos) {
        return count_groups(text) == 8;
    }
    const int before = count_groups(text.substr(0, gap));
    const int after = count_groups(text.substr(gap + 2));
    return before >= 0 && after >= 0 && before + after < 8;
}

bool is_host_name(std::string_view text) {
    return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
    });
}

Result<std::uint16_t> parse_port(std::string_view text) {
    const std::optional<std::int64_t> port = parse_integer(text);
    if (!port || *port < 0 || *port > kMaxPort || !std::all_of(text.begin(), text.end(), is_digit)) {
        return fail(quoted(text) + " is not a port (0 to 65535)");
    }
    return static_cast<std::uint16_t>(*port);
}

Result<Endpoint> with_port(std::string_view host, std::string_view port_text) {
    const Result<std::uint16_t> port = parse_port(port_text);
    if (!port) {
        return tl::unexpected(port.error());
    }
    return Endpoint{std::string(host), *port};
}

Result<Endpoint> parse_bracketed(std::string_view text, std::uint16_t default_port) {
    const std::size_t close = text.find(']');
    const std::string_view host = text.substr(1, close == std::string_view::npos ? close : close - 1);
    const std::string_view rest = close == std::string_view::npos ? "?" : text.substr(close + 1);
    if (!is_ipv6(host) || (!rest.empty() && rest.front() != ':')) {
        return fail(quoted(text) + " is not an IPv6 endpoint; try [fd00::1]:29400");
    }
    return rest.empty() ? Result<Endpoint>(Endpoint{std::string(host), default_port}) : with_port(host, rest.substr(1));
}

Result<Endpoint> parse_bare_ipv6(std::string_view text, std::uint16_t default_port) {
    const std::size_t colon = text.rfind(':');
    const std::string_view front = text.substr(0, colon);
    const std::string_view back = text.substr(colon + 1);
    const bool whole_fits = is_ipv6(text);
    const bool split_fits = is_ipv6(front) && parse_port(back).has_value() && !back.empty();
    if (whole_fits == split_fits) {
        return fail(quoted(text) + (whole_fits ? " can be read with and without a port; try [" + std::string(front) +
                                                     "]:" + std::string(back) + " or [" + std::string(text) + "]"
                                               : std::string(" is not HOST:PORT; try h0:29400 or [fd00::1]:29400")));
    }
    return whole_fits ? Result<Endpoint>(Endpoint{std::string(text), default_port}) : with_port(front, back);
}

Result<std::string> parse_network(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string_view address = text.substr(0, slash);
    const int bits = is_ipv4(address) ? 32 : is_ipv6(address) ? 128 : -1;
    const std::optional<std::int64_t> length =
        slash == std::string_view::npos ? std::optional<std::int64_t>(bits) : parse_integer(text.substr(slash + 1));
    if (bits < 0 || !length || *length < 0 || *length > bits) {
        return fail(quoted(text) + " is not an address or a network; try 10.0.0.0/8 or any");
    }
    return std::string(text);
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
    text = trim(text);
    if (text.find("://") != std::string_view::npos) {
        return fail(quoted(text) + " is a URL; try HOST:PORT");
    }
    if (text.find(',') != std::string_view::npos) {
        return fail(quoted(text) + " is a list, but one endpoint is needed; try the first of them");
    }
    if (text.starts_with('[')) {
        return parse_bracketed(text, default_port);
    }
    const auto colons = std::count(text.begin(), text.end(), ':');
    if (colons > 1) {
        return parse_bare_ipv6(text, default_port);
    }
    const std::size_t colon = text.find(':');
    const std::string_view host = text.substr(0, colon);
    if (!is_host_name(host)) {
        return fail(quoted(text) + " has no host name or address in front; try h0:29400");
    }
    return colon == std::string_view::npos ? Result<Endpoint>(Endpoint{std::string(host), default_port})
                                           : with_port(host, text.substr(colon + 1));
}

Result<std::vector<Endpoint>> parse_endpoints(std::string_view text, std::uint16_t default_port) {
    const std::vector<std::string_view> parts = split(text, ',');
    if (parts.size() > kMaxEndpoints) {
        return fail(quoted(text) + " are " + std::to_string(parts.size()) + " endpoints; try at most " +
                    std::to_string(kMaxEndpoints));
    }
    const Result<Endpoint> last = parse_endpoint(parts.back(), default_port);
    std::vector<Endpoint> endpoints;
    for (const std::string_view part : parts) {
        Result<Endpoint> endpoint = parse_endpoint(part, last ? last->port : default_port);
        if (!endpoint) {
            return tl::unexpected(endpoint.error());
        }
        if (std::find(endpoints.begin(), endpoints.end(), *endpoint) != endpoints.end()) {
            return fail(quoted(text) + " names " + host_and_port(endpoint->host, endpoint->port) +
                        " twice; leave one of them out");
        }
        endpoints.push_back(std::move(*endpoint));
    }
    return endpoints;
}

Result<std::string> parse_host(std::string_view text) {
    text = trim(text);
    const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
    const std::string_view host = bracketed ? text.substr(1, text.size() - 2) : text;
    if (is_ipv6(host) || (!bracketed && is_host_name(host))) {
        return std::string(host);
    }
    return fail(quoted(text) + " is not a host name or an address without a port; try h0 or 10.0.0.1");
}

bool is_numeric_address(std::string_view host) {
    return is_ipv4(host) || is_ipv6(host);
}

bool is_loopback_host(std::string_view host) {
    return host == "localhost" || host == "ip6-localhost" || host == "::1" ||
           (is_ipv4(plain_address(host)) && plain_address(host).starts_with("127."));
}

Result<PortRange> parse_port_range(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, '-');
    const Result<int> first = parse_count(trim(parts.front()), 1, kMaxPort);
    const Result<int> last = parse_count(trim(parts.back()), 1, kMaxPort);
    if (parts.size() > 2 || !first || !last) {
        return fail(quoted(text) + " is neither a port nor a range of ports; try 29500 or 29500-29599");
    }
    if (*first > *last) {
        return fail(quoted(text) + " has its bounds the wrong way round; try " + std::to_string(*last) + "-" +
                    std::to_string(*first));
    }
    return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

Result<std::vector<std::string>> parse_networks(std::string_view text) {
    if (trim(text) == "any") {
        return std::vector<std::string>{"any"};
    }
    std::vector<std::string> networks;
    for (const std::string_view part : split(text, ',')) {
        Result<std::string> network = parse_network(trim(part));
        if (!network) {
            return tl::unexpected(network.error());
        }
        networks.push_back(std::move(*network));
    }
    return networks;
}

}  // namespace ddl::plan
