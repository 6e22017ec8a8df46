#include "net/http_module.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace ddl::net {
namespace {

constexpr char kFile[] = "ddlaunch-etcd.so";

std::vector<std::string> module_folders() {
    if (const char* named = std::getenv("DDLAUNCH_MODULE_DIR"); named != nullptr && *named != '\0') {
        return {named};
    }
    char program[PATH_MAX];
    const ssize_t size = ::readlink("/proc/self/exe", program, sizeof program);
    const std::string path(program, size > 0 ? static_cast<std::size_t>(size) : 0);
    const std::string folder = path.substr(0, path.rfind('/'));
    return {folder, folder + "/../lib/ddlaunch"};
}

std::string why_not(const std::string& file) {
    const char* text = ::dlerror();
    const std::string why = text != nullptr ? text : "unknown error";
    const bool library = why.find("libcurl") != std::string::npos;
    return "rendezvous by etcd needs " + file + ", which cannot be loaded: " + why +
           (library ? "; try: apt-get install libcurl4" : "");
}

Result<const DdlHttpModule*> load(const std::string& file) {
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        return fail(why_not(file));
    }
    void* symbol = ::dlsym(handle, kDdlHttpEntry);
    if (symbol == nullptr) {
        return fail(why_not(file));
    }
    DdlHttpEntry entry = nullptr;
    std::memcpy(&entry, &symbol, sizeof entry);
    const DdlHttpModule* module = entry();
    if (module->version != kDdlHttpVersion) {
        return fail(file + " is of another release of ddlaunch (interface " + std::to_string(module->version) +
                    ", expected " + std::to_string(kDdlHttpVersion) + "); install both from the same one");
    }
    return module;
}

}  // namespace

Result<const DdlHttpModule*> load_http_module(const std::vector<std::string>& folders) {
    for (const std::string& folder : folders) {
        const std::string file = folder + "/" + kFile;
        if (::access(file.c_str(), F_OK) == 0) {
            return load(file);
        }
    }
    std::string looked;
    for (const std::string& folder : folders) {
        looked += (looked.empty() ? "" : " and ") + folder;
    }
    return fail(std::string("rendezvous by etcd needs ") + kFile + ", which is not in " + looked +
                "; set DDLAUNCH_MODULE_DIR to its folder, or build with libcurl4-openssl-dev and run with libcurl4");
}

Result<const DdlHttpModule*> load_http_module() {
    return load_http_module(module_folders());
}

}  // namespace ddl::net
